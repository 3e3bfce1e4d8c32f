"""Facts that imported messages plainly state: learned with them, forgotten with them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.property.forgetting_world import STORES, World, world
from tests.unit.bundle_cast import outcomes
from tests.unit.import_cast import KNOWN, chatgpt, node, said, written

from keepsaid.adapters.redaction.redactor import PatternRedactor
from keepsaid.domain.bundle import BundleEntry, ImportVerdict
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import OWNER, Kind, Memory, person_scope
from keepsaid.domain.message import Trust
from keepsaid.interfaces.transfer_shapes import import_shape
from keepsaid.memory.stating import StatedFacts
from keepsaid.services.importing import ImportRequest, LocalMemory, import_memories
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT

_AT = 1_900_000_000_000
_CITY = "I live in Oslo."


@pytest.fixture(params=STORES)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[World]:
    """A world on either operational store."""
    async with world(request.param, tmp_path) as made:
        yield made


def _export(folder: Path, *lines: tuple[str, str], conversation: str = "c", at: int = 1_700_000_000) -> Path:
    """An export of ChatGPT: a conversation of these lines, each of a role and a text."""
    messages = [said(f"m{n}", *line, create_time=at + n) for n, line in enumerate(lines)]
    nodes = [node(f"n{n}", f"n{n - 1}" if n else None, one) for n, one in enumerate(messages)]
    file = folder / conversation / "conversations.json"
    return written(file, [chatgpt(conversation, nodes, f"n{len(lines) - 1}")])


def _here(stage: World) -> LocalMemory:
    return LocalMemory(stage.memories, VirtualClock(_AT), StatedFacts(stage.memories))


async def _take_in(here: LocalMemory, path: Path) -> dict[str, Any]:
    asked = ImportRequest(path, "chatgpt", **KNOWN)
    return import_shape(await import_memories(asked, here, PatternRedactor(), _AT), asked, dry_run=False)


async def _facts(stage: World) -> list[Memory]:
    return [one for one in await stage.known() if one.new.kind is not Kind.EPISODE]


async def test_plain_statement_of_the_user_fills_its_slot_at_once(stage: World, tmp_path: Path) -> None:
    path = _export(tmp_path, ("user", f"{_CITY} Is it cold?"), ("assistant", "I live in Rome. My name is Robo."))
    assert outcomes(await _take_in(_here(stage), path)) == (2, 0, 0, 0)
    [fact] = await _facts(stage)
    new = fact.new
    assert (new.attribute, new.value, new.subject_id) == ("lives in", "Oslo", OWNER)
    assert (new.scope, new.trust, new.derived) == (person_scope(OWNER), Trust.KNOWN, True)
    assert (new.said_at, [(one.kind, one.ref) for one in new.sources]) == (
        1_700_000_000_000,
        [("import", "chatgpt:c/m0")],
    )
    before = await stage.known()
    assert outcomes(await _take_in(_here(stage), path)) == (0, 2, 0, 0)
    assert await stage.known() == before


async def test_newest_statement_holds_in_whatever_order_conversations_stand(stage: World, tmp_path: Path) -> None:
    await _take_in(_here(stage), _export(tmp_path, ("user", "I live in Rome."), conversation="new"))
    old = _export(tmp_path, ("user", _CITY), conversation="old", at=1_600_000_000)
    await _take_in(_here(stage), old)
    [fact] = await _facts(stage)
    assert fact.new.value == "Rome"
    history = await stage.memories.revisions.history(AUDIT, fact.id)
    assert {one.new.value: one.state for one in history} == {"Rome": "active", "Oslo": "superseded"}


@pytest.mark.parametrize("chosen", [Kind.FACT, Kind.EPISODE])
async def test_message_and_fact_are_forgotten_together(stage: World, tmp_path: Path, chosen: Kind) -> None:
    stays = "The shed at the lake in Oslo is where we used to live, or so I think."
    path = _export(tmp_path, ("user", _CITY), ("user", stays))
    await _take_in(_here(stage), path)
    known = {one.new.kind: one.id for one in await stage.known() if one.text != stays}
    assert set(known) == {Kind.FACT, Kind.EPISODE}
    assert await stage.forget(ForgetSelector((known[chosen],))) is not None
    for _ in range(2):
        assert await stage.texts() == [stays]
        await _take_in(_here(stage), path)


async def test_old_wish_to_remember_brings_back_nothing_that_was_forgotten(stage: World, tmp_path: Path) -> None:
    wish = "user", "Please remember that my boat is called Wanda."
    await _take_in(_here(stage), _export(tmp_path, wish))
    [fact] = await _facts(stage)
    assert not fact.new.asked
    await stage.forget(ForgetSelector((fact.id,)))
    await _take_in(_here(stage), _export(tmp_path, wish, conversation="d"))
    assert await _facts(stage) == []


async def test_import_that_ends_before_its_messages_are_kept_continues(stage: World, tmp_path: Path) -> None:
    class Breaking(LocalMemory):
        async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
            await StatedFacts(stage.memories).learn_imported([one.memory.new for one in records], _AT)
            raise InterruptedError

    path = _export(tmp_path, ("user", _CITY))
    with pytest.raises(InterruptedError):
        await _take_in(Breaking(stage.memories, VirtualClock(_AT), None), path)
    assert [one.new.kind for one in await stage.known()] == [Kind.FACT]
    assert outcomes(await _take_in(_here(stage), path)) == (1, 0, 0, 0)
    assert sorted(str(one.new.kind) for one in await stage.known()) == ["episode", "fact"]


async def test_nothing_is_learned_where_collection_is_off(stage: World, tmp_path: Path) -> None:
    await _take_in(LocalMemory(stage.memories, VirtualClock(_AT), None), _export(tmp_path, ("user", _CITY)))
    assert await _facts(stage) == []
