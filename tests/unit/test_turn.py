"""Turns against a real model server: steps, replay, outages, refusals, and what is never stored."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from keepsaid.adapters.models.clients import build
from keepsaid.adapters.models.provider import ProviderChat
from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import VoidLeases
from keepsaid.domain.memory import Candidate, Hit, Injection, Kind, Memory, NewMemory
from keepsaid.domain.message import Content, Inbound, Origin, Trust
from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.reply import Reply
from keepsaid.domain.route import Routes
from keepsaid.domain.turn import Claimed, Recent, ToolClass
from keepsaid.domain.views import MessageFilter, TurnStory
from keepsaid.engine.attempt import Attempt, Patience
from keepsaid.engine.progress import ProgressHub
from keepsaid.pipeline.buffer.receive import Door, Limits
from keepsaid.pipeline.context.assemble import Budget
from keepsaid.pipeline.flow import Course, Flow, Mind, Stores
from keepsaid.pipeline.lane.lease import Leases, LeaseTerms
from keepsaid.pipeline.turn.run import TurnLimits
from keepsaid.ports.model import Tool
from keepsaid.ports.points import arm
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.testing.model_script import BAD_KEY, NO_QUOTA, RATE_LIMITED, Call, Empty, Garble, Hang, Say, Script
from keepsaid.testing.model_server import ModelServer

SECRET_WORD = "quetzalcoatl"
WINDOWS = {"chat": Window(0)}


class Killed(BaseException):
    """The process died here."""


class Remembers:
    """Injects one memory into every turn, and notes what it was told the prompt shows."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    async def remind(self, claimed: Claimed, recent: Awaitable[Recent]) -> Injection:
        self.shown = [record.text for record in (await recent).records]
        new = NewMemory("k", Kind.FACT, f"the word is {SECRET_WORD}", "global", Trust.OWNER)
        hit = Hit(Memory(4711, new, "active", 0), "text", 1, 2.5)
        block = f"[Relevant to this message]\n[Fact] the word is {SECRET_WORD}"
        return Injection(block, (Candidate(hit, True, "shares a word"),))

    async def read(self) -> str:
        return "# SOUL.md\nBe brief."


@dataclass
class Stage:
    """A road whose model is a real adapter against a scripted server."""

    server: ModelServer
    chat: ProviderChat
    clock: VirtualClock
    store: RamOperations
    tools: Sequence[Tool] = ()
    limits: TurnLimits = TurnLimits(call_s_max=5)
    budget: Budget = Budget()
    memory: Remembers = field(default_factory=Remembers)

    def __post_init__(self) -> None:
        self.ids = CountingIds()
        self.hub = ProgressHub()
        self.revive()

    def revive(self) -> None:
        """A new process over the same store."""
        mind = Mind(self.chat, self.memory, self.memory, lambda _: self.tools, self.hub)
        course = Course(Routes(), WINDOWS, self.budget, self.limits)
        self.flow = Flow(Stores(self.store, self.store, self.store), mind, course, self.clock, self.ids)
        self.leases = Leases(self.store, self.clock, self.ids, f"owner-{self.ids.next()}", LeaseTerms())
        self.attempt = Attempt(self.store, self.hub, self.clock, self.ids, Patience())
        self.door = Door(self.store, self.clock, self.ids, WINDOWS, Limits())

    async def say(self, text: str = "hello") -> None:
        origin = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
        await self.flow.receive(self.door, Inbound(origin, Content(text.encode(), text)))
        await self.flow.route()

    async def work(self) -> str:
        """Claim the next batch and try it once."""
        (lease,) = await self.flow.claim(self.leases, 1)
        claimed = await self.flow.open(lease)
        self.claimed = claimed
        return await self.attempt.at(claimed, lambda: self.flow.answer(claimed))

    async def turn(self) -> TurnStory:
        story = await self.store.turn(self.claimed.turn_id)
        assert story is not None
        return story

    async def replies(self) -> list[Reply]:
        return list(await self.store.unseen("chat", "room"))


@asynccontextmanager
async def staged(*reactions: object, **changes: object) -> AsyncIterator[Stage]:
    script = Script(*reactions)  # type: ignore[arg-type]
    async with ModelServer(script) as server:
        chat = ProviderChat("openai/scripted", lambda: build("openai", "scripted", "key", server.url))
        try:
            yield Stage(server, chat, VirtualClock(), RamOperations(), **changes)  # type: ignore[arg-type]
        finally:
            await chat.close()


def a_tool(run: Callable[[dict[str, Json]], str], kind: ToolClass = ToolClass.PURE) -> Tool:
    async def called(arguments: dict[str, Json]) -> str:
        return run(arguments)

    return Tool(
        "look_up", "Look something up", {"type": "object", "properties": {"q": {"type": "string"}}}, called, kind
    )


async def test_an_answer_is_committed_with_transcript_reply_and_trace() -> None:
    async with staged(Say("hi Ann", usage=(120, 7))) as stage:
        await stage.say("hello there")
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert [(record.role, record.text) for record in turn.records] == [
        (Role.USER, "hello there"),
        (Role.ASSISTANT, "hi Ann"),
    ]
    assert [reply.draft.text for reply in turn.replies] == ["hi Ann"]
    assert (turn.usage.tokens_in, turn.usage.tokens_out) == (120, 7)
    assert turn.state == "committed"


async def test_memory_is_told_what_the_prompt_shows_and_no_more() -> None:
    async with staged(Say("yes"), Say("no"), budget=Budget(recent_tokens=5)) as stage:
        for text in ("a text of seven short words, or so", "and now"):
            await stage.say(text)
            assert await stage.work() == "done"
        sent = [
            entry["content"] for entry in stage.server.requests[-1].body["messages"] if entry["role"] == "assistant"
        ]
    assert stage.memory.shown == sent == ["yes"]


async def test_what_was_injected_is_seen_by_the_model_and_stored_nowhere_but_in_the_trace() -> None:
    async with staged(Say("yes"), Say("again")) as stage:
        for text in ("first", "second"):
            await stage.say(text)
            assert await stage.work() == "done"
        seen = [request.raw.decode() for request in stage.server.requests]
        turn = await stage.turn()
    assert all(raw.count(SECRET_WORD) == 1 for raw in seen), "once a turn, and not again from history"
    assert SECRET_WORD not in repr(turn.records) + repr(turn.steps) + repr(turn.replies)
    assert SECRET_WORD in json.dumps(turn.trace)


async def test_a_tool_is_called_and_its_result_is_kept_with_its_call() -> None:
    asked: list[dict[str, Json]] = []

    def run(arguments: dict[str, Json]) -> str:
        asked.append(arguments)
        return "found it"

    async with staged(Call("look_up", {"q": "x"}), Say("done"), tools=(a_tool(run),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert asked == [{"q": "x"}]
    assert [record.role for record in turn.records] == [Role.USER, Role.ASSISTANT, Role.TOOL, Role.ASSISTANT]
    assert turn.records[1].calls[0].id == turn.records[2].call_id
    assert [step.state for step in turn.steps] == ["finished"] * 3


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("look_up", "{not json"), "not valid JSON"),
        (Call("look_up", "[1]"), "must be an object"),
        (Call("no_such_tool", {}), "there is no tool"),
    ],
)
async def test_a_wrong_call_is_told_to_the_model(call: Call, told: str) -> None:
    async with staged(call, Say("sorry"), tools=(a_tool(lambda _: "x"),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        assert told in stage.server.requests[-1].raw.decode()


async def test_a_failing_tool_is_the_models_to_work_around() -> None:
    def run(_: dict[str, Json]) -> str:
        raise RuntimeError("secret detail")

    async with staged(Call("look_up", {}), Say("ok"), tools=(a_tool(run),)) as stage:
        await stage.say()
        assert await stage.work() == "done"
        raw = stage.server.requests[-1].raw.decode()
    assert "look_up failed (RuntimeError)" in raw
    assert "secret detail" not in raw


async def killed_at(stage: Stage, point: str, times: int = 1) -> None:
    """Work until the process dies at the n-th passage of a point, then start a new one."""
    left = times

    def kill(name: str) -> None:
        nonlocal left
        if name == point:
            left -= 1
            if not left:
                raise Killed

    arm(kill)
    try:
        with pytest.raises(Killed):
            await stage.work()
    finally:
        arm(None)
    stage.revive()
    await stage.store.apply(VoidLeases("new owner", stage.clock.now_ms(), "it died", (900, 901)))


async def test_an_answer_used_by_a_later_step_is_never_sampled_again() -> None:
    async with staged(Call("look_up", {"q": "x"}), Say("final"), Say("WRONG"), tools=(a_tool(lambda _: "r"),)) as stage:
        await stage.say()
        await killed_at(stage, "tool.after")
        assert await stage.work() == "done"
        turn = await stage.turn()
        assert len(stage.server.requests) == 2, "the first model step was replayed"
    assert turn.replies[0].draft.text == "final"


@pytest.mark.parametrize("point", ["model.after", "commit.TurnCommit.before"])
async def test_a_crash_around_the_last_answer_gives_one_reply(point: str) -> None:
    async with staged(Say("one"), Say("two")) as stage:
        await stage.say()
        await killed_at(stage, point)
        assert await stage.work() == "done"
        assert len(await stage.replies()) == 1
        texts = [record.text for record in (await stage.turn()).records if record.role is Role.ASSISTANT]
    assert texts == ["two"]


@pytest.mark.parametrize(
    ("point", "asked"), [("model.after", 3), ("commit.StepEnd.before", 3), ("commit.StepEnd.after", 2)]
)
async def test_an_answer_with_calls_is_kept_before_they_are_made(point: str, asked: int) -> None:
    used: list[dict[str, Json]] = []

    def run(arguments: dict[str, Json]) -> str:
        used.append(arguments)
        return "r"

    again = [Call("look_up", {"q": "again"})] * (asked - 2)
    async with staged(Call("look_up", {"q": "first"}), *again, Say("final"), tools=(a_tool(run),)) as stage:
        await stage.say()
        await killed_at(stage, point)
        assert used == []
        assert await stage.work() == "done"
        assert len(stage.server.requests) == asked
    assert used == [{"q": "again" if again else "first"}]


async def test_a_retry_shows_the_model_the_same_bytes() -> None:
    async with staged(Say("one"), Say("two")) as stage:
        await stage.say()
        await killed_at(stage, "model.after")
        await stage.work()
        first, second = (json.loads(request.raw)["messages"] for request in stage.server.requests)
        shown = stage.store.state.turns[stage.claimed.turn_id].chosen
    assert first == second
    assert shown == (4711,), "the retried turn still says which memories it was shown"


async def test_an_unsafe_call_without_result_is_parked_and_never_repeated() -> None:
    done: list[str] = []

    def run(_: dict[str, Json]) -> str:
        done.append("effect")
        return "ok"

    async with staged(Call("look_up", {}), Say("x"), tools=(a_tool(run, ToolClass.UNSAFE),)) as stage:
        await stage.say()
        await killed_at(stage, "tool.after")
        assert await stage.work() == "review"
        (notice,) = await stage.replies()
    assert done == ["effect"]
    assert notice.draft.notice
    assert "inbox requeue" in notice.draft.text


async def test_an_outage_charges_nothing_and_is_waited_out() -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        assert await stage.work() == "waiting"
        assert await stage.flow.claim(stage.leases, 1) == ()
        await stage.clock.advance(7_000)
        assert await stage.work() == "done"
        turn = await stage.turn()
    assert turn.batch.attempts == 0
    assert turn.batch.deferrals == 1


async def test_an_outage_is_named_while_it_lasts(caplog: pytest.LogCaptureFixture) -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        assert await stage.work() == "waiting"
        batch = (await stage.turn()).batch
    assert batch.error == "openai/scripted asks for fewer requests"
    assert batch.ready_at == stage.clock.now_ms() + 7_000
    [warned] = [record for record in caplog.records if record.levelname == "WARNING"]
    assert warned.getMessage() == "turn waits: openai/scripted asks for fewer requests; trying again in 7 s"
    assert (vars(warned)["code"], vars(warned)["batch"]) == ("KS-MDL-OUTAGE", batch.id)


async def test_a_clock_set_back_does_not_shorten_the_wait_for_an_outage() -> None:
    async with staged(replace(RATE_LIMITED, retry_after=7), Say("finally")) as stage:
        await stage.say()
        stage.clock.jump(-3_600_000)
        assert await stage.work() == "waiting"
        assert await stage.flow.claim(stage.leases, 1) == ()
        await stage.clock.advance(7_000)
        assert await stage.work() == "done"


async def test_an_outage_that_does_not_end_is_told() -> None:
    async with staged(*[RATE_LIMITED] * 40) as stage:
        await stage.say()
        began, how = stage.clock.now_ms(), "waiting"
        while how == "waiting":
            await stage.clock.advance(60_000)
            how = await stage.work()
        assert how == "dead"
        assert stage.clock.now_ms() - began >= 900_000
        (notice,) = await stage.replies()
    assert "asks for fewer requests" in notice.draft.text


async def test_a_new_process_in_an_outage_makes_it_no_longer() -> None:
    async with staged(*[RATE_LIMITED] * 30, Say("finally")) as stage:
        await stage.say()
        for _ in range(30):
            assert await stage.work() == "waiting"
            await stage.store.apply(VoidLeases("the next", stage.clock.now_ms(), "", ()))
            await stage.clock.advance(1_000)
        assert await stage.work() == "done"


@pytest.mark.parametrize(("refusal", "words"), [(BAD_KEY, "refused the key"), (NO_QUOTA, "no credit left")])
async def test_a_refusal_that_only_a_person_can_mend_is_told_at_once(refusal: object, words: str) -> None:
    async with staged(refusal) as stage:
        await stage.say()
        assert await stage.work() == "dead"
        (notice,) = await stage.replies()
        assert len(stage.server.requests) == 1
    assert words in notice.draft.text
    assert "Your message is kept" in notice.draft.text


async def test_a_malformed_answer_is_asked_for_once_more() -> None:
    async with staged(Garble("not json"), Say("better")) as stage:
        await stage.say()
        assert await stage.work() == "done"


async def test_nothing_said_three_times_over_is_dead_and_told() -> None:
    async with staged(*[Empty()] * 6) as stage:
        await stage.say()
        ends = []
        for _ in range(3):
            ends.append(await stage.work())
            await stage.clock.advance(60_000)
        assert ends == ["queued", "queued", "dead"]
        assert len(await stage.replies()) == 1


async def test_a_hanging_model_is_an_outage() -> None:
    async with staged(Hang(), limits=TurnLimits(call_s_max=0.2)) as stage:
        await stage.say()
        assert await stage.work() == "waiting"


async def test_a_model_that_never_stops_calling_is_stopped() -> None:
    async with staged(*[Call("look_up", {})] * 50, tools=(a_tool(lambda _: "more"),)) as stage:
        await stage.say()
        assert await stage.work() == "queued"
        turn = await stage.store.turn(stage.claimed.turn_id)
    assert turn is not None
    assert len(stage.server.requests) == stage.limits.steps_max


async def test_dropped_and_done_messages_are_told_apart() -> None:
    async with staged(Say("ok")) as stage:
        await stage.say()
        await stage.work()
        (story,) = await stage.store.find(MessageFilter())
    assert story.state == "done"
    assert story.turn_id == stage.claimed.turn_id
