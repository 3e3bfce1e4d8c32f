"""Who says in one chat the code that was shown in the other is one person; who said something lets others hear it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.unit.memory_cast import message

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.adapters.system.machine import one_time_code
from keepsaid.domain.command import DONE, REFUSED, Command, read_command
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Kind, Listener, NewMemory, conversation_scope, person_of
from keepsaid.domain.message import Lane, Origin, Trust
from keepsaid.pipeline.turn.memory_commands import CODE_MS, Claims
from keepsaid.testing.clock import CountingIds, VirtualClock

ANN = Origin("chat", "bot", "dm:ann", "ann", "Ann", direct=True, trust=Trust.KNOWN)
BEN = Origin("post", "bot", "dm:7", "7", "Ann", direct=True, trust=Trust.KNOWN)
CAT = Origin("chat", "bot", "dm:cat", "cat", "Ann", direct=True, trust=Trust.KNOWN)
ME = Origin("terminal", "default", "me", "me", direct=True, trust=Trust.OWNER)
LANE = Lane("chat", "bot", "dm:ann", "root:dm:ann")


@dataclass(frozen=True)
class Desk:
    """Claims on a store, and the clock their codes grow old by."""

    store: SqliteMemories
    claims: Claims
    clock: VirtualClock
    notes: InMemoryOperations

    def restarted(self) -> Desk:
        claims = Claims(self.store.people, self.store.sharing, self.clock, one_time_code, self.notes)
        return replace(self, claims=claims)

    async def say(self, who: Origin, arguments: str = "") -> tuple[str, str]:
        told = await self.claims.join(message(1, "/join", who), arguments)
        return told.outcome, told.text

    async def code(self, who: Origin) -> str:
        outcome, text = await self.say(who)
        assert outcome == DONE
        return text.partition("/join ")[2].split()[0]

    async def widen(self, who: Origin, arguments: str) -> tuple[str, str]:
        told = await self.claims.widen(message(1, "/widen", who), arguments)
        return told.outcome, told.text

    async def same(self, who: Origin) -> tuple[str, ...]:
        return await self.store.people.joined_with(person_of(who))


@asynccontextmanager
async def desk(folder: Path) -> AsyncIterator[Desk]:
    store, clock = await open_memories(folder / "memory.db", CountingIds()), VirtualClock(1_000)
    try:
        notes = InMemoryOperations()
        yield Desk(store, Claims(store.people, store.sharing, clock, one_time_code, notes), clock, notes)
    finally:
        await store.close()


def refusals(*told: tuple[str, str]) -> Iterator[str]:
    return (text for outcome, text in told if outcome == REFUSED)


async def test_a_code_shown_here_and_said_there_joins_both(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        code = await at.code(ANN)
        assert await at.same(ANN) == (person_of(ANN),)
        outcome, text = await at.say(BEN, code.lower())
        assert (outcome, text.partition(".")[0]) == (DONE, "You are one person to me now, here and there")
        assert await at.same(BEN) == (person_of(ANN), person_of(BEN))
        [person] = await at.store.people.everybody()
        assert {one.by for one in person.identities} == {person_of(BEN)}
        assert (await at.say(BEN, code))[0] == DONE, "said again after a crash, it comes to the same"
        assert len(list(refusals(await at.say(CAT, code)))) == 1
        assert await at.same(CAT) == (person_of(CAT),)
        assert (await at.say(BEN, "undo"))[0] == DONE
        assert await at.same(ANN) == (person_of(ANN),)
        assert (await at.say(BEN, "undo"))[0] == REFUSED


async def test_a_restart_loses_no_code_and_what_is_noted_is_none(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        old, code = await at.code(ANN), await at.code(ANN)
        assert not [text for (text,) in at.notes.database.rows("SELECT text FROM note") if code in text]
        assert (await at.restarted().say(BEN, old))[0] == REFUSED
        assert (await at.restarted().say(BEN, code))[0] == DONE
        assert (await at.restarted().say(BEN, code))[0] == DONE
        assert (await at.restarted().say(CAT, code))[0] == REFUSED
        assert await at.same(BEN) == (person_of(ANN), person_of(BEN))


async def test_a_code_is_good_for_ten_minutes_and_the_last_one_counts(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        first, second = await at.code(ANN), await at.code(ANN)
        assert (await at.say(BEN, first))[0] == REFUSED
        await at.clock.advance(CODE_MS)
        assert (await at.say(BEN, second))[0] == REFUSED
        assert (await at.say(BEN, "ABCDEFGH"))[0] == REFUSED
        third = await at.code(ANN)
        assert (await at.say(ANN, third))[0] == REFUSED
        await at.clock.advance(CODE_MS - 1)
        assert (await at.say(BEN, third))[0] == DONE


async def test_no_code_leads_to_the_owner_nor_a_stranger_nor_is_shown_before_others(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        room, stranger = replace(ANN, direct=False), replace(BEN, trust=Trust.EXTERNAL)
        code = await at.code(ANN)
        for who in (room, stranger, ME):
            assert list(refusals(await at.say(who), await at.say(who, code))) != []
        assert await at.store.people.everybody() == ()
        await at.store.people.join((person_of(ANN), OWNER), OWNER, 5)
        assert (await at.say(BEN, code))[0] == REFUSED
        assert await at.same(BEN) == (person_of(BEN),)


async def test_who_said_something_lets_others_hear_it_and_nobody_else_does(tmp_path: Path) -> None:
    async with desk(tmp_path) as at:
        said = NewMemory(
            "message:1", Kind.FACT, "I am moving to Lisbon", conversation_scope(LANE), Trust.KNOWN, LANE,
            speaker_id=person_of(ANN), chat_of=person_of(ANN),
        )  # fmt: skip
        [id_] = await at.store.keep([said], 1)
        name, elsewhere = show("memory", id_), Listener(None, person_of(ANN), direct=True)
        nobodys = "There is no such memory of what you said."
        for who, arguments in ((BEN, f"{name} person"), (ANN, "mem_0000000000zzz person"), (ANN, "mem_x global")):
            assert await at.widen(who, arguments) == (REFUSED, nobodys)
        assert (await at.widen(replace(ANN, trust=Trust.EXTERNAL), f"{name} person"))[0] == REFUSED
        assert await at.store.find(elsewhere, (), 9) == ()
        assert (await at.widen(ANN, f"{name} person so that I find it"))[0] == DONE
        assert [one.id for one in await at.store.find(elsewhere, (), 9)] == [id_]
        [told] = await at.store.sharing.list_shares(elsewhere, id_)
        assert (told.by, told.reason) == (person_of(ANN), "so that I find it")
        assert (await at.widen(ANN, f"{name} conversation"))[0] == REFUSED
        assert await at.store.revisions.archive([id_], 9) == (id_,)
        assert await at.widen(ANN, f"{name} global") == (REFUSED, f"No: {name} is archived.")
        assert await at.widen(BEN, f"{name} global") == (REFUSED, nobodys)


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/join", Command("join")),
        ("/join ABCDEFGH", Command("join", "ABCDEFGH")),
        ("/join undo", Command("join", "undo")),
        ("/join the call please", None),
        ("/widen mem_01hz00000000a person", Command("widen", "mem_01hz00000000a person")),
        ("/widen mem_01hz00000000a global why not", Command("widen", "mem_01hz00000000a global why not")),
        ("/widen the road", None),
    ],
)
def test_talk_about_joining_is_no_command(text: str, command: Command | None) -> None:
    assert read_command(text) == command


def test_codes_are_not_guessed() -> None:
    codes = {one_time_code() for _ in range(1_000)}
    assert len(codes) == 1_000
    assert all(read_command(f"/join {code}") for code in codes)
