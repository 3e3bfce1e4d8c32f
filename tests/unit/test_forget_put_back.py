"""Tombstones beside the stores: lost, damaged or behind, a start forgets what the stores and the file say together."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path

import pytest
from tests.unit.test_forgetter import forgotten, running, say, texts

from keepsaid.app.instance import Instance
from keepsaid.app.stores import accept_stores, reading, try_lock_home
from keepsaid.config import Config, Home
from keepsaid.domain.forgetting import ForgetSelector, MoveForgetting
from keepsaid.domain.maintenance import DAY_MS
from keepsaid.errors import StoreError

_SECRET = "my code is zebraquix"
_KEPT = "the dentist is in Braga"
_STORES = ("buffer.db", "memory.db")


def put_back(home: Path, old: Path, *names: str) -> None:
    """Copy older stores into the home, and accept them."""
    for name in names:
        shutil.copy(old / name, home / "data" / name)
    accept_stores(Home.at(home), Config())


async def settle(instance: Instance) -> None:
    """Wait until nothing is left to be forgotten."""
    assert await instance.forgetter.settled(240_000)


def held(home: Path) -> list[str]:
    """Files of the data directory that hold the secret."""
    return sorted(file.name for file in (home / "data").iterdir() if b"zebraquix" in file.read_bytes())


@pytest.fixture
async def home(tmp_path: Path) -> Path:
    """A home that forgot the secret, beside an older copy of its stores."""
    home = tmp_path / "home"
    async with running(home) as instance:
        await say(instance, _KEPT)
        gone = await say(instance, _SECRET)
    shutil.copytree(home / "data", tmp_path / "old")
    async with running(home) as instance:
        await forgotten(instance, ForgetSelector(messages=(gone,)))
    return home


async def test_both_stores_put_back_are_forgotten_again(home: Path, tmp_path: Path) -> None:
    put_back(home, tmp_path / "old", *_STORES)
    assert held(home) == ["buffer.db", "memory.db"]
    async with running(home) as instance:
        await settle(instance)
        assert await texts(instance) == {_KEPT}
        assert [one.how for one in await instance.operations.forgettings.newest(9)] == ["restored"]
    assert held(home) == []


@pytest.mark.parametrize("raw", [None, b"", b"damaged\n", b"\0" * 82, b"deadbeef"])
async def test_a_lost_or_damaged_file_is_written_again_from_the_stores(
    home: Path, raw: bytes | None, caplog: pytest.LogCaptureFixture
) -> None:
    file = home / "data" / "forgotten.hashes"
    before = set(file.read_bytes().splitlines())
    if raw is None:
        file.unlink()
    else:
        file.write_bytes(raw)
    with caplog.at_level(logging.WARNING):
        async with running(home) as instance:
            assert await texts(instance) == {_KEPT}
            assert [one.how for one in await instance.operations.forgettings.newest(9)] == ["id"], "nothing came back"
    assert "tombstones were missing beside forgotten.key" in caplog.text
    assert set(file.read_bytes().splitlines()) == before
    caplog.clear()
    async with running(home):
        assert "forgotten.key" not in caplog.text


@pytest.mark.parametrize("put", _STORES)
async def test_without_the_file_one_store_reminds_the_other(home: Path, tmp_path: Path, put: str) -> None:
    (home / "data" / "forgotten.hashes").unlink()
    put_back(home, tmp_path / "old", put)
    async with running(home) as instance:
        await settle(instance)
        assert await texts(instance) == {_KEPT}
    assert held(home) == []


async def test_a_reader_beside_a_process_that_forgets_again_is_refused(home: Path, tmp_path: Path) -> None:
    put_back(home, tmp_path / "old", *_STORES)
    with try_lock_home(Home.at(home), Config()) as is_alone:
        assert is_alone
        with pytest.raises(StoreError, match="another process") as refused:
            async with reading(Home.at(home), Config()):
                raise AssertionError
    assert "run the command again" in refused.value.hint
    async with reading(Home.at(home), Config()) as stores:
        assert sum((await stores.memories.counts()).values()) == 1
    assert held(home) == []


async def test_a_reader_is_served_while_a_forgetting_is_undone(home: Path) -> None:
    async with running(home) as instance:
        kept = await say(instance, "the train leaves at nine")
        begun = await instance.services.forgetting.forget_selected(ForgetSelector(messages=(kept,)), "owner", DAY_MS)
        assert begun is not None
        await settle(instance)
    async with running(home) as instance:
        await instance.operations.apply(MoveForgetting(begun.id, "undo", instance.clock.now_ms()))
        await instance.memories.undo_log.put_back(begun.id)
        async with reading(Home.at(home), Config()) as stores:
            assert sum((await stores.memories.counts()).values()) == 2
    async with running(home) as instance:
        await settle(instance)
        assert await texts(instance) == {_KEPT, "the train leaves at nine"}
        assert await instance.memories.forgetful.kept.read() == frozenset(
            await instance.memories.forgetful.tombstones()
        )


async def test_an_undo_leaves_tombstones_of_other_requests(home: Path, tmp_path: Path) -> None:
    async with running(home) as instance:
        kept = await say(instance, "the train leaves at nine")
        begun = await instance.services.forgetting.forget_selected(ForgetSelector(messages=(kept,)), "owner", DAY_MS)
        assert begun is not None
        await settle(instance)
        assert await instance.forgetter.undo(begun.id) is not None
    put_back(home, tmp_path / "old", *_STORES)
    async with running(home) as instance:
        await settle(instance)
        assert await texts(instance) == {_KEPT}
    assert held(home) == []


async def test_a_half_undone_request_is_ended_before_another_that_shares_its_tombstones(home: Path) -> None:
    said = "the train leaves at nine"
    async with running(home) as instance:
        first, second = await say(instance, said), await say(instance, said)
        begun = await instance.services.forgetting.forget_selected(ForgetSelector(messages=(first,)), "owner", DAY_MS)
        assert begun is not None
        await settle(instance)
        await instance.operations.apply(MoveForgetting(begun.id, "undo", instance.clock.now_ms()))
        await instance.memories.undo_log.put_back(begun.id)  # and here it is killed
        await forgotten(instance, ForgetSelector(messages=(second,)))
    async with running(home) as instance:
        await settle(instance)
        states = [(one.how, one.state) for one in await instance.operations.forgettings.newest(9)]
        assert states == [("id", "done"), ("id", "undone"), ("id", "done")], "nothing was put in place"
        memory = frozenset(await instance.memories.forgetful.tombstones())
        assert memory == frozenset(await instance.operations.forgettings.tombstones())
        assert memory == await instance.memories.forgetful.kept.read()
