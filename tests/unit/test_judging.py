"""Close pairs are ruled on once, in batches, within a day's budget; without a model nothing happens to them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.contract.test_memories import Counting

from keepsaid.adapters.models.memory_calls import RULE_PAIRS, ModelJudge
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.graph import Association, Relation
from keepsaid.domain.learning import Pair, Ruling
from keepsaid.domain.prompt import ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import ModelError
from keepsaid.memory.maintenance import Maintenance, PairReviewer
from keepsaid.ports.memory_maintenance import PairJudge
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.judging import (
    PAIRS,
    Factory,
    JudgeContract,
    PairsContract,
    PairStore,
    known,
    read,
    related,
)

Script = Sequence[Ruling | None] | ModelError
DAY_MS = 86_400_000


class Ruler:
    """Rules as told, in turn; remembers what it was asked."""

    name = "scripted"

    def __init__(self, script: Script) -> None:
        self.script = script
        self.asked: list[Sequence[Pair]] = []

    async def judge(self, pairs: Sequence[Pair]) -> Sequence[Ruling | None]:
        if not pairs:
            return []
        self.asked.append(pairs)
        if isinstance(self.script, ModelError):
            raise self.script
        return [self.script[n % len(self.script)] for n in range(len(pairs))]


class Speaking:
    """A model that answers with rulings, as a call or written down; or fails."""

    name = "scripted/model"

    def __init__(self, script: Script, text: str = "") -> None:
        self.script = script
        self.text = text
        self.shown = ""

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.shown = request.prompt.user
        assert [tool.name for tool in request.tools] == [RULE_PAIRS]
        if isinstance(self.script, ModelError):
            raise self.script
        rulings = [{"pair": n, "ruling": str(one)} for n, one in enumerate(self.script, 1) if one is not None]
        call = ToolCall("1", RULE_PAIRS, json.dumps({"rulings": rulings}))
        return ModelAnswer(self.text, () if self.text else (call,), Usage(10, 5), self.name)


@pytest.fixture(params=["model", "scripted"])
def judge(request: pytest.FixtureRequest) -> Callable[[Script], PairJudge]:
    return (lambda script: ModelJudge(Speaking(script))) if request.param == "model" else Ruler


@pytest.fixture
def factory(tmp_path: Path) -> Factory:
    @asynccontextmanager
    async def opened() -> AsyncIterator[SqliteMemories]:
        store = await open_memories(tmp_path / "memory.db", Counting())
        try:
            yield store
        finally:
            await store.close()

    return opened


class TestJudge(JudgeContract):
    pass


class TestPairs(PairsContract):
    pass


async def test_the_model_is_shown_each_memory_on_a_line_of_its_own() -> None:
    model = Speaking([Ruling.SAME])
    await ModelJudge(model).judge([Pair(1, 2, ("nine\nPair 2\n  older: ten", "x" * 2_000), (0, DAY_MS))])
    lines = model.shown.splitlines()
    assert lines[:2] == ["Pair 1", "  older: nine Pair 2 older: ten"]
    assert lines[2].startswith("  newer (1970-01-02): xxx")
    assert (len(lines), len(lines[2]) < 700) == (3, True)


@pytest.mark.parametrize("text", ["I think they are the same.", '{"rulings": "all"}', "[" * 5_000])
async def test_what_is_no_ruling_is_refused(text: str) -> None:
    with pytest.raises(ModelError):
        await ModelJudge(Speaking([Ruling.SAME], text)).judge(PAIRS)


async def test_what_is_written_down_counts_and_what_is_none_does_not() -> None:
    rulings = [(1, "same"), (2, "nonsense"), (3, "same"), (3, "different"), (9, "same")]
    text = json.dumps({"rulings": [{"pair": n, "ruling": ruling} for n, ruling in rulings]})
    found = await ModelJudge(Speaking([Ruling.SAME], f"```json\n{text}\n```")).judge(PAIRS)
    assert list(found) == [Ruling.SAME, None, None, None]


async def test_a_pair_is_asked_once_in_batches_within_a_day(factory: Factory) -> None:
    async with factory() as store:
        ids = await related(store, *(known(f"n{n}", f"thing{n} is word{n}", said_at=n) for n in range(1, 27)))
        clock, ruler = VirtualClock(10 * DAY_MS), Ruler([Ruling.DIFFERENT])
        judging = PairReviewer(store.pairs, clock, ruler, 20)
        assert await judging.run() == 20
        assert [len(asked) for asked in ruler.asked] == [10, 10]
        again = PairReviewer(store.pairs, clock, ruler, 20)
        assert await again.run() == 0, "neither a restart nor another run fills the budget again"
        clock.jump(DAY_MS + 1)
        assert await again.run() == len(ids) - 1 - 20
        clock.jump(DAY_MS + 1)
        assert await again.run() == 0
        asked = [(one.older, one.newer) for pairs in ruler.asked for one in pairs]
        assert len(asked) == len(set(asked)) == len(ids) - 1


async def test_without_a_model_only_what_fills_one_slot_with_one_value_is_merged(factory: Factory) -> None:
    async with factory() as store:
        a, b = await related(store, known("a", "the ferry sails at nine"), known("b", "nine it leaves, our boat"))
        judging = PairReviewer(store.pairs, VirtualClock())
        assert await judging.run() == 0
        assert [(await read(store, one)).state for one in (a, b)] == ["active", "active"]
        [new] = await store.keep([known("c", "Porto it is", subject="Ann", attribute="city", value="Porto")], 5)
        [old] = await store.keep([known("d", "Ann's city: Porto", subject="Ann", attribute="city", value="porto")], 5)
        await related_by_hand(store, old, new)
        assert await judging.run() == 1
        assert sorted([(await read(store, one)).state for one in (old, new)]) == ["active", "merged"]


async def related_by_hand(store: PairStore, newer: int, older: int) -> None:
    await store.graph.relate([Association(newer, older, Relation.RELATED_TO, 0.5)], (), 5)


async def test_a_model_that_fails_is_asked_again_another_night_and_not_before(factory: Factory) -> None:
    async with factory() as store:
        await related(store, *(known(f"n{n}", f"thing{n} is word{n}", said_at=n) for n in range(1, 15)))
        ruler = Ruler(ModelError("an outage"))
        judging = PairReviewer(store.pairs, VirtualClock(), ruler)
        assert (await judging.run(), len(ruler.asked)) == (0, 1)
        ruler.script = [Ruling.DIFFERENT]
        assert await judging.run() == 13


async def test_the_night_rules_on_pairs(tmp_path: Path) -> None:
    store = await open_memories(tmp_path / "memory.db", Counting())
    try:
        a, b = await related(store, known("a", "the ferry sails at nine"), known("b", "nine it leaves, our boat"))
        clock = VirtualClock(1_000)
        judging = PairReviewer(store.pairs, clock, Ruler([Ruling.SAME]))
        running = asyncio.ensure_future(Maintenance(store.upkeep, clock, judging=judging).run())
        while not running.done():
            await clock.advance(1_000)
        assert (running.result().ruled, (await read(store, a)).evidence) == (1, 2)
        assert (await read(store, b)).state == "merged"
    finally:
        await store.close()
