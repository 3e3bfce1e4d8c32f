"""Killed while the stores of an older backup are forgotten again, the next life ends it before anybody reads."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.crash.cast import CAST
from tests.crash.test_forgetting import ended, held, restarted, secret, told

from keepsaid.app.opening import opened
from keepsaid.app.stores import accept_stores, reading
from keepsaid.config import Config, Home
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.order import Order

_KEPT = "The train to Porto leaves at nine"
_WITHIN_S = 240.0
_SEARCH, _ADD = ("memory", "search", "zebraquix0x"), ("memory", "add", "The ferry is late", "--kind", "fact")
_COMMITS = (
    ("HideMemories", 1), ("RequestForgetting", 1), ("HideMemories", 2), ("ScrubForgotten", 1), ("MoveForgetting", 1),
    ("EraseMemories", 1), ("MoveForgetting", 2), ("MoveForgetting", 3), ("EmptyLog", 1), ("MoveForgetting", 4),
)  # fmt: skip
_DEATHS = [(f"commit.{name}.{side}", count) for name, count in _COMMITS for side in ("before", "after")]


@pytest.mark.parametrize("command", [_SEARCH, _ADD], ids=["read", "write"])
async def test_killed_while_it_is_forgotten_again_the_next_life_ends_it(
    forks: Nursery, tmp_path: Path, command: tuple[str, ...]
) -> None:
    place = tmp_path / "home"
    home = Home.at(place)
    await told(home, [_KEPT, secret(0)])
    shutil.copytree(home.data, tmp_path / "old")
    async with opened(home, Config()) as instance:
        await instance.start()
        assert await instance.services.forgetting.forget_selected(ForgetSelector(text="zebraquix0x"), "owner")
        await ended(instance)
    assert held(place) == []
    for name in ("buffer.db", "memory.db"):
        shutil.copy(tmp_path / "old" / name, home.data / name)
    accept_stores(home, Config())
    shutil.copytree(place, tmp_path / "put back")
    for point, count in _DEATHS:
        shutil.rmtree(place)
        shutil.copytree(tmp_path / "put back", place)
        assert held(place)
        log = str(tmp_path / "lives.log")
        life = forks.fork(Order(command, str(place), log, log, {point: count}, lease_ms=CAST.lease_ms))
        code = await asyncio.to_thread(life.wait, _WITHIN_S)
        assert (code, life.reached) == (-9, point), f"{point} was not passed {count} times"
        async with reading(home, Config()) as stores:
            found = await stores.memories.counts()
            assert sum(found.values()) == 1, f"{point} {count} left it readable"
        texts, states = await restarted(home)
        assert set(texts) == {_KEPT}, f"{point} {count}"
        assert set(states) == {"done"}
        assert held(place) == [], f"{point} {count} left bytes"
