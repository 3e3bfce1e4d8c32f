"""What people plainly say of themselves fills its slot with the turn that hears it, beside a model as well."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.test_forget_command import Listening
from tests.unit.test_remember import FRIEND, FRIEND_IN_GROUP, OWNER, STRANGER, say, tell

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.memory import Kind, Listener
from keepsaid.domain.message import Lane, Trust, lane_key
from keepsaid.domain.prompt import Role
from keepsaid.domain.session import Passage, Utterance
from keepsaid.memory.extraction import KnownSlots
from keepsaid.ports.model import Model

_EVERYTHING = Listener(None, everything=True)


@asynccontextmanager
async def running(root: Path, model: Model | None, **collection: object) -> AsyncIterator[Instance]:
    config = Config(server={"port": 0}, collection=collection, channels={"terminal": {"window_ms": 0}})
    async with opened(Home.at(root), config, model) as instance:
        await instance.start()
        yield instance


async def stated(instance: Instance) -> list[tuple[str, str, str, str]]:
    """Scope, attribute, value and state of every fact that has a slot, oldest first."""
    await instance.recorder.catch_up()
    found = await instance.memories.find(_EVERYTHING, (Kind.FACT, Kind.IDENTITY), 50)
    histories = [await instance.memories.revisions.history(_EVERYTHING, one.id) for one in found if one.new.attribute]
    rows = {one.id: one for history in histories for one in history}
    return [
        (one.new.scope, one.new.attribute, one.new.value, one.state)
        for one in sorted(rows.values(), key=lambda m: m.id)
    ]


@pytest.mark.parametrize("model", [None, Listening()])
async def test_a_move_closes_the_slot_with_its_own_turn(tmp_path: Path, model: Model | None) -> None:
    async with running(tmp_path, model) as instance:
        story = await tell(instance, "I live in Lisbon")
        [old] = story["remembered"]
        assert (old["text"], old["replaces"]) == ("ann: I live in Lisbon", [])
        moved = await tell(instance, "By the way, I've moved to Porto last week.")
        [new] = moved["remembered"]
        assert new["replaces"] == [old["id"]]
        assert await stated(instance) == [
            ("person:owner", "lives in", "Lisbon", "superseded"),
            ("person:owner", "lives in", "Porto", "active"),
        ]
        assert await say(instance, "/undo") == (
            "undone: [fact] ann: By the way, I've moved to Porto last week\n"
            f"active again: [fact] ann: I live in Lisbon ({old['id']})\n"
            f"What was said stays; to delete it: /forget {moved['id']}"
        )


async def test_idioms_and_values_of_another_kind_replace_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        for text in ("I live in Lisbon", "My phone is +351 912 345 678", "My wife is Ana"):
            await tell(instance, text)
        before = await stated(instance)
        for text in ("I live on the couch", "My phone is dead", "my wife is angry", "I moved to the sofa"):
            assert (await tell(instance, text))["remembered"] == []
        assert await stated(instance) == before
        assert {value for _, _, value, state in before if state == "active"} == {"Lisbon", "+351 912 345 678", "Ana"}


async def test_a_memory_that_a_person_adds_fills_its_slot(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        first = await instance.services.memories.add("I live in Lisbon", "fact")
        again = await instance.services.memories.add("I live in Lisbon", "fact")
        assert first.id == again.id
        await say(instance, "/remember I moved to Porto")
        assert [row[2:] for row in await stated(instance)] == [("Lisbon", "superseded"), ("Porto", "active")]


async def test_each_person_has_slots_of_their_own_and_a_group_hears_its_own(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        await tell(instance, "I live in Lisbon")
        await tell(instance, "I live in Oslo", FRIEND)
        await tell(instance, "I moved to Bergen", FRIEND_IN_GROUP)
        await tell(instance, "I live in Paris", STRANGER)
        rows = await stated(instance)
        assert ("person:owner", "lives in", "Lisbon", "active") in rows
        assert ("person:http:default:bob", "lives in", "Oslo", "superseded") in rows
        assert ("person:http:default:bob", "lives in", "Bergen", "active") in rows
        assert "Paris" not in {value for _, _, value, _ in rows}, "strangers are not believed"


async def test_what_was_forgotten_is_not_stated_again_by_repeating_it(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        await tell(instance, "I live in Lisbon")
        await say(instance, "/forget that")
        assert await say(instance, "/forget yes") == "It is forgotten."
        await tell(instance, "I live in Lisbon")
        assert await stated(instance) == []
        await tell(instance, "Remember that I live in Lisbon")
        assert [row[2:] for row in await stated(instance)] == [("Lisbon", "active")]


async def test_nothing_is_stated_where_extraction_is_off_or_in_incognito(tmp_path: Path) -> None:
    async with running(tmp_path / "off", None, extractor="none") as instance:
        await tell(instance, "I live in Lisbon")
        assert await stated(instance) == []
    async with running(tmp_path / "incognito", None) as instance:
        await say(instance, "/incognito")
        await tell(instance, "I live in Lisbon")
        assert await stated(instance) == []


async def test_a_statement_is_one_memory_whatever_the_speaker_is_called(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        await tell(instance, "I live in Lisbon", replace(OWNER, name="Ann"))
        await tell(instance, "I moved to Porto", replace(OWNER, channel="http", conversation="dm", name="Ann Olsen"))
        assert [row[2:] for row in await stated(instance)] == [("Lisbon", "superseded"), ("Porto", "active")]


async def test_an_extractor_is_shown_what_is_known_of_those_who_speak_and_may_be_read_there(tmp_path: Path) -> None:
    async with running(tmp_path, None) as instance:
        await tell(instance, "I live in Lisbon")
        await tell(instance, "I live in Oslo", FRIEND)
        slots = KnownSlots(instance.memories)
        here = Lane("terminal", "default", "me", lane_key("me"))
        said = Utterance(1, Role.USER, "I like it", "message:1", "ann", "ann", Trust.OWNER, direct=True)
        assert await slots.lines(Passage(here, 1, 1, (said,))) == ("ann | lives in | Lisbon",)
        group = Lane("terminal", "default", "room", lane_key("room"))
        assert await slots.lines(Passage(group, 1, 1, (replace(said, direct=False),))) == ()
