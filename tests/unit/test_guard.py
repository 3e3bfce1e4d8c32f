"""The window guard: what a full window costs a lane, and that it never holds up a turn or loses a call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import pytest

from keepsaid.adapters.models.provider import ProviderChat, build
from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.commits import Commit, StepEnd, StepStart, TurnCommit
from keepsaid.domain.compaction import CompactionTerms, CutContext, CutReason
from keepsaid.domain.context import LaneTail
from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Prompt, Role
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.errors import ModelTooLong
from keepsaid.pipeline.prompt.guard import Fitting, Guard, Windows
from keepsaid.pipeline.prompt.layers import of_lines
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.ports.store_views import R
from keepsaid.testing.builders import consulted, lane_of, outcome, said, step
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.model_script import TOO_LONG, Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid_testkit.contracts.store_driver import StoreDriver

WINDOW = Windows(tokens=1_000, by_model={"test/large": 100_000})


class Slow(InMemoryOperations):
    """A store whose commits never come back while it hangs."""

    hangs = False

    async def apply(self, commit: Commit[R]) -> R:
        if self.hangs:
            await asyncio.Event().wait()
        return await super().apply(commit)


@dataclass
class Narrow:
    """A model that takes prompts up to a number of records, and says what it was sent."""

    records_max: int = 1_000
    name: str = "test/model"
    sent: list[Prompt] = field(default_factory=list)

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        self.sent.append(request.prompt)
        if len(request.prompt.history) > self.records_max:
            raise ModelTooLong("too long")
        return ModelAnswer("ok")


def made(tail: LaneTail) -> Prompt:
    layer = of_lines("recent", [record.text for record in tail.recent.records])
    return Prompt("policy", tail.recent.records, "", "new", (layer,), summary=tail.standing_for)


class House:
    """A lane over a store, its guard, and what the guard named."""

    def __init__(self) -> None:
        self.store = Slow()
        self.road = StoreDriver(self.store)
        self.named: list[tuple[Lane, float]] = []
        self.model = Narrow()
        self.clock = VirtualClock()
        self.windows = WINDOW
        self.terms = CompactionTerms(messages=1_000, tokens=1_000_000)

    async def talk(self, turns: int, words: int = 10) -> None:
        for n in range(turns):
            await self.road.settle(said(f"say {n} " + "word " * words), "ok")

    async def tail(self) -> LaneTail:
        return await self.store.context(lane_of(), 1_000)

    async def fitting(self, make: Callable[[LaneTail], Prompt] = made) -> Fitting:
        guard = Guard(self.store, self.clock, self._name, self.windows, self.terms)
        return Fitting(guard, lane_of(), self.model, make, await self.tail())

    def _name(self, lane: Lane, share: float) -> None:
        self.named.append((lane, share))

    async def answered(self, fitting: Fitting) -> ModelAnswer:
        return await fitting.answer(ModelRequest(fitting.prompt), lambda _: None)


@pytest.fixture
def house() -> House:
    return House()


async def test_a_prompt_that_fits_is_left_alone(house: House) -> None:
    await house.talk(3)
    fitting = await house.fitting()
    assert await fitting.fit() == made(await house.tail())
    await fitting.settle()
    assert (house.named, (await house.tail()).version) == ([], 0)


@pytest.mark.parametrize(("tokens", "share"), [(799, None), (800, 0.3), (849, 0.3), (850, 0.5), (949, 0.5)])
async def test_a_window_that_fills_names_a_share_for_the_background(
    house: House, tokens: int, share: float | None
) -> None:
    await house.talk(2)
    fitting = await house.fitting(
        lambda tail: replace(made(tail), layers=(replace(made(tail).layers[0], tokens=tokens),))
    )
    await fitting.fit()
    await fitting.settle()
    assert house.named == ([] if share is None else [(lane_of(), share)])
    assert (await house.tail()).version == 0


async def test_a_full_window_loses_the_older_half_at_once_until_it_fits(house: House) -> None:
    await house.talk(12, words=150)
    prompt = await (await house.fitting()).fit()
    tail = await house.tail()
    assert sum(layer.tokens for layer in prompt.layers) < 950
    assert prompt.history == tail.recent.records
    assert (tail.version, tail.left_out + len(tail.positions)) == (len(cuts(house)), 24)
    assert (
        prompt.summary
        == f"[System: {tail.left_out} older messages were left out here, because the prompt would not have fitted]"
    )
    assert [first for first, _ in cuts(house)] == [1, *(last + 1 for _, last in cuts(house)[:-1])]
    unmarked = "SELECT id FROM session WHERE ended_at IS NULL AND invalidated_at IS NULL"
    assert house.store.database.rows(unmarked) == []


def cuts(house: House) -> list[tuple[int, int]]:
    return house.store.database.rows("SELECT first, last FROM lane_cut ORDER BY version")


async def test_two_messages_stay_whatever_they_cost(house: House) -> None:
    await house.talk(6, words=2_000)
    prompt = await (await house.fitting()).fit()
    assert [record.role for record in prompt.history] == [Role.USER, Role.ASSISTANT]


async def test_a_larger_window_has_room(house: House) -> None:
    await house.talk(12, words=150)
    house.model.name = "test/large"
    assert len((await (await house.fitting()).fit()).history) == 24


async def test_what_a_provider_charged_counts_as_well_as_the_estimate(house: House) -> None:
    await house.talk(5)
    await house.road.queue(said())
    claimed = await house.road.claim_one()
    ids = claimed.turn_id, claimed.batch.id, claimed.batch.fence
    await house.store.apply(StepStart(claimed.turn_id, claimed.batch.fence, step(1), 0))
    await house.store.apply(StepEnd(claimed.turn_id, claimed.batch.fence, 1, "x", Usage(960, 1), 0))
    await house.store.apply(TurnCommit(*ids, outcome(), None, 0))
    assert (await house.tail()).used == 960
    fitting = await house.fitting()
    await fitting.fit()
    tail = await house.tail()
    assert (tail.version, tail.left_out) == (1, 6)
    assert fitting.tokens < 960, "what was charged was for another prompt"


async def test_a_call_stays_with_its_result(house: House) -> None:
    house.windows = Windows(tokens=20)
    for _ in range(4):
        await house.road.queue(said())
        claimed = await house.road.claim_one()
        end = replace(outcome(), records=consulted())
        await house.store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 0))
    prompt = await (await house.fitting()).fit()
    assert prompt.history[0].role is not Role.TOOL
    called = {call.id for record in prompt.history for call in record.calls}
    assert {record.call_id for record in prompt.history if record.role is Role.TOOL} <= called


async def test_a_store_that_hangs_holds_the_turn_no_longer_than_the_limit(house: House) -> None:
    await house.talk(12, words=150)
    house.windows = replace(WINDOW, limit_s=0.01)
    house.store.hangs = True
    prompt = await (await house.fitting()).fit()
    assert len(prompt.history) == 24


async def test_what_another_has_done_meanwhile_stands(house: House) -> None:
    await house.talk(12, words=150)
    fitting = await house.fitting()
    await house.store.apply(CutContext(lane_of(), 0, 24, CutReason.RESET, 0))
    assert (await fitting.fit()).history == ()
    assert (await house.tail()).version == 1


async def test_too_long_is_cut_and_tried_once_more(house: House) -> None:
    await house.talk(6)
    house.model.records_max = 6
    fitting = await house.fitting()
    assert (await house.answered(fitting)).text == "ok"
    assert [len(prompt.history) for prompt in house.model.sent] == [12, 6]
    assert (await house.answered(fitting)).text == "ok"
    assert [len(prompt.history) for prompt in house.model.sent] == [12, 6, 6]


async def test_too_long_again_is_no_loop(house: House) -> None:
    await house.talk(6)
    house.model.records_max = 2
    fitting = await house.fitting()
    for _ in range(2):
        with pytest.raises(ModelTooLong):
            await house.answered(fitting)
    assert [len(prompt.history) for prompt in house.model.sent] == [12, 6, 6]


async def test_where_nothing_can_be_cut_nothing_is_sent_again(house: House) -> None:
    await house.talk(1)
    house.model.records_max = 1
    with pytest.raises(ModelTooLong):
        await house.answered(await house.fitting())
    assert len(house.model.sent) == 1


LOCAL = Refuse(400, "bad_request", "the request exceeds the available context size")


@pytest.mark.parametrize("refusal", [TOO_LONG, LOCAL])
async def test_what_a_provider_says_is_understood(house: House, refusal: Refuse) -> None:
    await house.talk(6)
    async with ModelServer(Script(refusal, Say("ok"))) as server:
        chat = ProviderChat("openai/scripted", lambda: build("openai", "scripted", "key", server.url))
        guard = Guard(house.store, house.clock, lambda *_: None)
        answer = await Fitting(guard, lane_of(), chat, made, await house.tail()).answer(
            ModelRequest(made(await house.tail())), lambda _: None
        )
        await chat.close()
        sent = [len(request.messages) for request in server.requests]
    assert answer.text == "ok"
    assert sent[1] < sent[0]
    assert (await house.tail()).left_out == 6
