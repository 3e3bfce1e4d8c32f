from __future__ import annotations

import pytest
from tests.unit.memory_cast import LANE, FixedRecall, memory

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Kind, Listener
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ToolClass
from keepsaid.errors import ToolError
from keepsaid.memory.tools import memory_search

OWNER_HERE = Listener(LANE, "owner", direct=True)


async def test_it_lists_one_memory_a_line() -> None:
    recall = FixedRecall(memory(7, "my cat\nis Misha"), memory(8, "feeds cats", kind=Kind.FACT, speaker="", said_at=0))
    tool = memory_search(recall, OWNER_HERE)
    assert (tool.name, tool.kind) == ("memory_search", ToolClass.PURE)
    assert await tool.run({"query": "cat"}) == (
        f"{show('memory', 7)} [Episode] Bob, 2026-11-20: my cat is Misha\n{show('memory', 8)} [Fact] feeds cats"
    )


async def test_it_hears_other_lanes_and_never_everything() -> None:
    recall = FixedRecall()
    everything = Listener(LANE, "owner", direct=True, everything=True)
    await memory_search(recall, OWNER_HERE).run({"query": "cat"})
    await memory_search(recall, everything).run({"query": "cat", "limit": 3})
    crossing = Listener(LANE, "owner", direct=True, cross=True)
    assert recall.asked == [(crossing, "cat", 10), (crossing, "cat", 3)]


async def test_it_says_what_was_not_found_and_not_searched() -> None:
    assert await memory_search(FixedRecall(), OWNER_HERE).run({"query": "cat"}) == "Nothing found."
    recall = FixedRecall(missing=("text: slower than 100 ms", "vector: no embedder"))
    answer = await memory_search(recall, OWNER_HERE).run({"query": "cat"})
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
    ],
)
async def test_wrong_arguments_are_told(arguments: dict[str, Json]) -> None:
    with pytest.raises(ToolError):
        await memory_search(FixedRecall(), OWNER_HERE).run(arguments)
