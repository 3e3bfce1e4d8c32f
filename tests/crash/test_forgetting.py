"""Killed at any step of a forgetting, the next start ends it: nothing is half forgotten."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.history import FileHistory
from tests.crash.cast import CAST

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.ids import show
from keepsaid.domain.memory import OWNER, Listener
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.order import Order
from keepsaid_testkit.crash.points import kind_of, points

_WITHIN_S = 240.0
_LOOK_S = 0.05
_EVERYTHING = Listener(None, everything=True)
_UNDOING = ("commit.PutBack", "commit.Drop")
_KEPT = "The train to Porto leaves at nine"


def deaths() -> list[tuple[str, int]]:
    """Every point of a forgetting, and those that are passed more than once."""
    names = [name for name in points() if kind_of(name) == "K12" and not name.startswith(_UNDOING)]
    again = [("commit.HideMemories.after", 2), ("commit.ScrubForgotten.before", 2)]
    return [
        *((name, 1) for name in names),
        *again,
        *((f"commit.MoveForgetting.{s}", n) for n in (2, 3, 4, 5) for s in ("before", "after")),
    ]


def secret(n: int) -> str:
    """What is told, with a word that nothing else says."""
    return f"The code of locker {n} is zebraquix{n}x and nobody knows it"


async def told(home: Home, texts: Sequence[str]) -> None:
    """Type and say things, each in a room of its own, and wait until they are remembered."""
    home.make()
    for text in texts:
        FileHistory(str(home.typed_file)).store_string(text)
    async with opened(home, Config()) as instance:
        await instance.start()
        for n, text in enumerate(texts):
            origin = Origin("terminal", "me", f"room {n}", "ann", "Ann", direct=True, trust=Trust.OWNER)
            await instance.receive(Inbound(origin, Content(text.encode(), text)))
        while (await instance.memories.counts()).get("episode", 0) < len(texts):
            await instance.clock.wait(asyncio.Event(), 1_000 * _LOOK_S)


async def ended(instance: Instance) -> None:
    """Wait until nothing is left to be forgotten."""
    async with asyncio.timeout(_WITHIN_S):
        while await instance.operations.forgettings.unfinished():
            await instance.clock.wait(asyncio.Event(), 1_000 * _LOOK_S)


async def restarted(home: Home) -> tuple[list[str], list[str]]:
    """What is found once a new runtime has ended what was begun, and the states of all requests."""
    async with opened(home, Config()) as instance:
        await instance.start()
        await ended(instance)
        hits = await instance.search.recall(_EVERYTHING, "train code locker zebraquix", 50)
        states = [one.state for one in await instance.operations.forgettings.newest(100)]
        return [hit.memory.text for hit in hits.hits], states


def held(home: Path) -> list[tuple[str, int]]:
    """Files of a home that hold one of the words."""
    files = [(file.name, file.read_bytes().lower()) for file in home.rglob("*") if file.is_file()]
    return [(name, n) for name, raw in files for n in range(len(deaths())) if b"zebraquix%dx" % n in raw]


async def names(home: Home, count: int) -> tuple[set[str], set[int]]:
    """Rooms that have their names, and which of the sentences are not remembered when the owner says them again."""
    async with opened(home, Config()) as instance:
        lanes = await instance.operations.lanes(1_000)
        silent = await instance.memories.forgetful.echoes.in_texts([(OWNER, secret(n)) for n in range(count)])
        rooms = {line.lane.conversation for line in lanes if not line.lane.conversation.startswith("forgotten:")}
        return rooms, {n for n, one in enumerate(silent) if one}


async def test_killed_at_any_step_the_next_start_ends_it(forks: Nursery, tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    dying = deaths()
    await told(home, [_KEPT, *map(secret, range(len(dying)))])
    assert held(tmp_path / "home")
    log = str(tmp_path / "lives.log")
    for n, (point, count) in enumerate(dying):
        arguments = ("memory", "forget", "--filter", f"zebraquix{n}x", "--yes")
        life = forks.fork(Order(arguments, str(tmp_path / "home"), log, log, {point: count}, lease_ms=CAST.lease_ms))
        code = await asyncio.to_thread(life.wait, _WITHIN_S)
        assert (code, life.reached) == (-9, point), f"{point} was not passed {count} times"
    texts, states = await restarted(home)
    unasked = next(n for n, (point, _) in enumerate(dying) if point == "commit.RequestForgetting.before")
    assert set(texts) == {_KEPT, secret(unasked)}, "what died before its request was on disk was not asked for"
    assert set(states) == {"done"}
    assert len(states) == len(dying) - 1
    assert {n for _, n in held(tmp_path / "home")} == {unasked}
    assert ("history", unasked) in held(tmp_path / "home")
    rooms, silent = await names(home, len(dying))
    assert rooms == {"room 0", f"room {unasked + 1}"}
    assert silent == {n for n in range(len(dying)) if n != unasked}


async def test_killed_while_it_is_undone_the_next_start_ends_that(forks: Nursery, tmp_path: Path) -> None:
    home = Home.at(tmp_path / "home")
    dying = [name for name in points() if name.startswith("commit.PutBack")]
    said = [_KEPT, *map(secret, range(len(dying)))]
    await told(home, said)
    log = str(tmp_path / "lives.log")
    for n, point in enumerate(dying):
        async with opened(home, Config()) as instance:
            begun = await instance.services.forgetting.forget_selected(
                ForgetSelector(text=f"zebraquix{n}x"), "owner", 86_400_000
            )
            assert begun is not None
            assert begun.state == "done"
        arguments = ("memory", "restore", show("forgetting", begun.id))
        life = forks.fork(Order(arguments, str(tmp_path / "home"), log, log, {point: 1}, lease_ms=CAST.lease_ms))
        code = await asyncio.to_thread(life.wait, _WITHIN_S)
        assert (code, life.reached) == (-9, point)
    texts, states = await restarted(home)
    assert set(texts) == set(said)
    assert set(states) == {"undone"}
