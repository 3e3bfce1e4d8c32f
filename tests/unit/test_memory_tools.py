from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.memory_cast import LANE, FixedRecall, memory

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Kind, Listener, Memory, Narrowing
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.turn import ToolClass
from keepsaid.errors import ToolError
from keepsaid.memory.tools import memory_open, memory_search
from keepsaid.pipeline.turn.run import opened_in

OWNER_HERE = Listener(LANE, "owner", direct=True)
DAY = 86_400_000


class Books:
    """A library that tells what it was asked, and gives what fits by kind; around stand two others."""

    def __init__(self, *stored: Memory) -> None:
        self.stored = {one.id: one for one in stored}
        self.asked: list[tuple[Listener, Narrowing]] = []

    async def narrowed(self, listener: Listener, ids: Sequence[int], to: Narrowing) -> Sequence[int]:
        self.asked.append((listener, to))
        return [one for one in ids if to.kind in (None, self.stored[one].new.kind)]

    async def filling(self, listener: Listener, slots: Sequence[bytes], limit: int) -> Sequence[int]:
        raise AssertionError("tools ask for no slot themselves")

    async def keyed(self, listener: Listener, key: str) -> Sequence[Memory]:
        return [one for one in self.stored.values() if one.new.key == key]

    async def sources(self, listener: Listener, memory: Memory, limit: int) -> Sequence[Memory]:
        return [memory] if memory.new.kind is Kind.EPISODE else []

    async def around(self, listener: Listener, memory: Memory, each: int) -> Sequence[Memory]:
        return [one for one in self.stored.values() if abs(one.id - memory.id) <= each]

    async def get(self, listener: Listener, memory_id: int) -> Memory | None:
        return self.stored.get(memory_id)


async def test_it_lists_one_memory_a_line() -> None:
    recall = FixedRecall(memory(7, "my cat\nis Misha"), memory(8, "feeds cats", kind=Kind.FACT, speaker="", said_at=0))
    tool = memory_search(recall, Books(), OWNER_HERE)
    assert (tool.name, tool.kind) == ("memory_search", ToolClass.PURE)
    assert await tool.run({"query": "cat"}) == (
        f"{show('memory', 7)} [Episode] Bob, 2026-11-20: my cat is Misha\n{show('memory', 8)} [Fact] feeds cats"
    )


async def test_it_hears_what_its_listener_hears_and_never_everything() -> None:
    recall = FixedRecall()
    crossing = Listener(LANE, "owner", direct=True, cross=True, asked=True)
    await memory_search(recall, Books(), OWNER_HERE).run({"query": "cat"})
    await memory_search(recall, Books(), replace(crossing, everything=True)).run({"query": "cat", "limit": 3})
    here = replace(OWNER_HERE, asked=True)
    assert recall.asked == [(here, "cat", 10), (crossing, "cat", 3)]


async def test_it_says_what_was_not_found_and_not_searched() -> None:
    assert await memory_search(FixedRecall(), Books(), OWNER_HERE).run({"query": "cat"}) == "Nothing found."
    recall = FixedRecall(missing=("text: slower than 100 ms", "vector: no embedder"))
    answer = await memory_search(recall, Books(), OWNER_HERE).run({"query": "cat"})
    assert answer == "Nothing found.\nNot searched: text: slower than 100 ms; vector: no embedder."


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": ""},
        {"query": " \n"},
        {"query": 7},
        {"query": "cat", "limit": 0},
        {"query": "cat", "limit": 51},
        {"query": "cat", "limit": True},
        {"query": "cat", "limit": "10"},
        {"query": "cat", "limit": None},
        {"query": "cat", "kind": "feeling"},
        {"query": "cat", "person": ""},
        {"query": "cat", "person": 7},
        {"query": "cat", "since": "last week"},
        {"query": "cat", "until": 7},
        {"query": "cat", "since": "2026-05-05", "until": "2026-05-04"},
        {"query": "cat", "as_of": "2026-13-01"},
        {"query": "cat", "mode": "recent"},
    ],
)
async def test_wrong_arguments_are_told(arguments: dict[str, Json]) -> None:
    with pytest.raises(ToolError):
        await memory_search(FixedRecall(), Books(), OWNER_HERE).run(arguments)


async def test_a_narrower_search_looks_deeper_and_keeps_to_what_fits() -> None:
    stored = [memory(n, f"cat {n}", kind=Kind.FACT if n % 2 else Kind.TODO, speaker="Zoë Ash") for n in range(1, 9)]
    recall, books = FixedRecall(*stored), Books(*stored)
    tool = memory_search(recall, books, OWNER_HERE)
    told = await tool.run({"query": "cat", "kind": "fact", "person": "ZOË", "limit": 2, "since": "1970-01-03"})
    assert [line[:17] for line in told.splitlines()] == [show("memory", 1), show("memory", 3)]
    crossing = replace(OWNER_HERE, asked=True)
    assert recall.asked == [(crossing, "cat", 200)]
    assert books.asked == [(crossing, Narrowing(Kind.FACT, "ZOË", since=2 * DAY))]
    assert await tool.run({"query": "cat", "person": "Bob"}) == "Nothing found."


async def test_a_day_lasts_until_its_end_and_a_time_has_its_zone() -> None:
    books = Books()
    tool = memory_search(FixedRecall(), books, OWNER_HERE)
    await tool.run({"query": "cat", "until": "1970-01-02", "as_of": "1970-01-02T01:00+01:00"})
    assert books.asked[0][1] == Narrowing(until=2 * DAY - 1, as_of=DAY)


async def test_a_memory_is_opened_with_what_was_said_around_it() -> None:
    books = Books(*(memory(n, f"cat {n}", speaker="Bob") for n in (1, 2, 3)), memory(9, "cats purr", kind=Kind.FACT))
    tool = memory_open(books, books, OWNER_HERE)
    first, heading, *said = (await tool.run({"id": show("memory", 2), "around": 1})).splitlines()
    assert (first[:17], heading) == (show("memory", 2), "Said there:")
    assert [(line[0], line[-5:]) for line in said] == [(" ", "cat 1"), (">", "cat 2"), (" ", "cat 3")]
    assert "Said there" not in await tool.run({"id": show("memory", 9)})


@pytest.mark.parametrize("arguments", [{}, {"id": "mem_x"}, {"id": 7}, {"id": show("memory", 2), "around": 11}])
async def test_what_cannot_be_opened_is_told(arguments: dict[str, Json]) -> None:
    with pytest.raises(ToolError):
        await memory_open(Books(), Books(), OWNER_HERE).run(arguments)
    with pytest.raises(ToolError, match="no memory mem_0000000000007 that can be read here"):
        await memory_open(Books(), Books(), OWNER_HERE).run({"id": show("memory", 7)})


async def test_answers_are_bounded() -> None:
    books = Books(*(memory(n, f"{n} " + "cat " * 400) for n in range(1, 60)))
    told = await memory_search(FixedRecall(*books.stored.values()), books, OWNER_HERE).run(
        {"query": "cat", "limit": 50}
    )
    assert len(told) < 16_100
    assert told.endswith("more do not fit.)")


def test_what_a_turn_opened_is_read_from_its_records() -> None:
    def call(id_: str, name: str = "memory_open") -> ToolCall:
        return ToolCall(id_, name, "{}")

    records = (
        Record(Role.ASSISTANT, "", (call("a"), call("b"), call("c", "memory_search"))),
        Record(Role.TOOL, f"{show('memory', 7)} [Fact] cats purr", call_id="a"),
        Record(Role.TOOL, "error: there is no memory", call_id="b"),
        Record(Role.TOOL, f"{show('memory', 8)} [Fact] found", call_id="c"),
        Record(Role.ASSISTANT, "", (call("a"),)),
        Record(Role.TOOL, f"{show('memory', 7)} [Fact] cats purr", call_id="a"),
    )
    assert opened_in(records) == (7,)


async def test_what_was_archived_is_searched_when_asked_for() -> None:
    recall, archive = FixedRecall(memory(1, "fresh")), FixedRecall(memory(2, "faded", state="archived"))
    tool = memory_search(recall, Books(), OWNER_HERE, archive)
    assert "faded" in await tool.run({"query": "x", "archived": True})
    assert "fresh" in await tool.run({"query": "x", "archived": False})
    with pytest.raises(ToolError, match="archived must be true or false"):
        await tool.run({"query": "x", "archived": "yes"})
