"""A thumbs-down on an answer marks the memory that it rests on: only if no other can be meant, and once a delivery."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.deaths import dying_at
from tests.unit.http_cast import site
from tests.unit.test_telegram import settings, texts, until
from tests.unit.turn_cast import Remembers, Stage, staged

from keepsaid.domain.commits import IntakeResult, MarkReplyShown, Received, RecordFeedback
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Candidate, Hit, Injection, Kind, Memory, NewMemory
from keepsaid.domain.message import REACTION, STRANGER, Content, Inbound, Lane, Origin, ProviderMarks, Trust, lane_key
from keepsaid.domain.receipt import Cause, FeedbackState, JudgeMemory
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.pipeline.feedback import ReactionFeedback
from keepsaid.testing.model_script import Say
from keepsaid.testing.providers.telegram import TelegramServer

HERE = Lane("chat", "me", "room", lane_key("room"))
MEMORY, PINNED, OTHER = 4711, 4712, 4713
BOILER = "The boiler is serviced every May."


class Recalling(Remembers):
    """Injects some memories, each with the cause for which it was chosen."""

    def __init__(self, chosen: dict[int, Cause]) -> None:
        super().__init__()
        self.chosen = chosen

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        await recent
        given = []
        for number, cause in self.chosen.items():
            new = NewMemory(f"k{number}", Kind.FACT, f"fact {number}", "global", Trust.OWNER)
            given.append(Candidate(Hit(Memory(number, new, "active", 0), "text", 1, 2.5), True, "why", cause))
        return Injection("[Relevant to this message]\n- facts", tuple(given))


@asynccontextmanager
async def answered(chosen: dict[int, Cause]) -> AsyncIterator[tuple[Stage, ReactionFeedback]]:
    """An answer, known as `r1` on its medium, of a turn that was shown these memories."""
    async with staged(Say("in May"), memory=Recalling(chosen)) as stage:
        await stage.say("when?")
        assert await stage.work() == "done"
        [reply] = await stage.replies()
        assert await stage.store.apply(MarkReplyShown(reply.id, 5, "r1"))
        yield stage, ReactionFeedback(stage.store, stage.clock, {"chat"})


def reaction(text: str = "👎", to: str | None = "r1", **changes: object) -> Inbound:
    origin = Origin("chat", "me", "room", "ann", "Ann", trust=Trust.KNOWN)
    marks = ProviderMarks("d1", None, to)
    return replace(Inbound(origin, Content(b"{}", text, REACTION), marks), **changes)  # type: ignore[arg-type]


def received(number: int = 77) -> Received:
    return Received(IntakeResult.STORED, number, HERE, 2)


async def flagged(stage: Stage) -> list[int]:
    return [one.memory_id for one in await stage.store.list_active_feedback(HERE)]


@pytest.mark.parametrize("text", ["👎", "👎🏽", ":-1:", ":thumbsdown::skin-tone-2:", "🎉 👎"])
async def test_a_thumbs_down_marks_the_only_memory_of_the_answer(text: str) -> None:
    async with answered({MEMORY: Cause.RELEVANT}) as (stage, feedback):
        await feedback.record(reaction(text), received())
        [told] = await stage.store.list_active_feedback(HERE)
        assert (told.memory_id, told.turn_id, told.state) == (MEMORY, stage.claimed.turn_id, FeedbackState.WRONG)
        assert "ann" in told.by


@pytest.mark.parametrize(
    ("chosen", "marked"),
    [
        ({}, []),
        ({MEMORY: Cause.RELEVANT, OTHER: Cause.RELEVANT}, []),
        ({PINNED: Cause.PINNED}, []),
        ({PINNED: Cause.PINNED, MEMORY: Cause.RELEVANT}, [MEMORY]),
        ({PINNED: Cause.PINNED, MEMORY: Cause.RELEVANT, OTHER: Cause.RELEVANT}, []),
    ],
)
async def test_it_marks_nothing_if_another_memory_can_be_meant(chosen: dict[int, Cause], marked: list[int]) -> None:
    async with answered(chosen) as (stage, feedback):
        await feedback.record(reaction(), received())
        assert await flagged(stage) == marked


_STRANGER = Origin("chat", "me", "room", "eve", trust=Trust.EXTERNAL)


@pytest.mark.parametrize(
    "given",
    [
        reaction(""),
        reaction("👍"),
        reaction("no"),
        reaction(to="r2"),
        reaction(to=None),
        reaction(by_bot=True),
        reaction(content=Content(b"{}", "👎")),
        reaction(content=Content(b"{}", "👎", STRANGER)),
        reaction(origin=_STRANGER),
        reaction(origin=Origin("chat", "me", "den", "ann", trust=Trust.KNOWN)),
        reaction(origin=Origin("chat", "you", "room", "ann", trust=Trust.KNOWN)),
        reaction(origin=Origin("other", "me", "room", "ann", trust=Trust.OWNER)),
    ],
)
async def test_nothing_else_marks_anything(given: Inbound) -> None:
    """Another emoji, one taken back, another message, a bot, a stranger, another place, no `feedback`."""
    async with answered({MEMORY: Cause.RELEVANT}) as (stage, feedback):
        await feedback.record(given, received())
        assert await flagged(stage) == []


async def test_a_stranger_in_a_direct_chat_who_is_let_in_may_mark_as_by_the_command() -> None:
    async with answered({MEMORY: Cause.RELEVANT}) as (stage, feedback):
        await feedback.record(reaction(origin=replace(_STRANGER, direct=True)), received())
        assert await flagged(stage) == [MEMORY]


async def test_a_delivery_that_comes_again_does_not_mark_what_was_withdrawn() -> None:
    async with answered({MEMORY: Cause.RELEVANT}) as (stage, feedback):
        await feedback.record(reaction(), received())
        word = JudgeMemory(stage.claimed.turn_id, MEMORY, "ann", "withdraw")
        assert await stage.store.apply(RecordFeedback(word, 9))
        again = ReactionFeedback(stage.store, stage.clock, {"chat"})
        await again.record(reaction(), received()._replace(intake=IntakeResult.DUPLICATE))
        assert await flagged(stage) == []
        await again.record(reaction(), received(78))
        assert await flagged(stage) == [MEMORY], "another delivery is another word"


@pytest.mark.parametrize("point", ["commit.RecordFeedback.before", "commit.RecordFeedback.after"])
async def test_a_death_between_message_and_mark_is_made_good_when_the_delivery_comes_again(point: str) -> None:
    async with answered({MEMORY: Cause.RELEVANT}) as (stage, feedback):
        with dying_at(point):
            await feedback.record(reaction(), received())
        assert await flagged(stage) == ([MEMORY] if point.endswith("after") else [])
        await feedback.record(reaction(), received()._replace(intake=IntakeResult.DUPLICATE))
        assert await flagged(stage) == [MEMORY]


@pytest.mark.parametrize("is_on", [True, False])
async def test_with_the_setting_the_next_turn_goes_without_the_memory(tmp_path: Path, is_on: bool) -> None:
    """By a bot of Telegram: found from the message that got the thumb, also after a restart."""
    more = {"channels": {"telegram": {"feedback": is_on}}, "memory": {"deadline_ms": 5_000}}
    async with TelegramServer() as telegram:
        async with site(tmp_path, **settings(telegram, **more)) as at:
            boiler = (await at.instance.services.memories.add(BOILER, "fact")).id
            telegram.say("when is the boiler serviced?")
            await telegram.wait_for(lambda: any(BOILER in text for text in texts(telegram)))
            await until(at, "SELECT 1 FROM reply WHERE state = 'sent'")
        async with site(tmp_path, **settings(telegram, **more)) as at:
            telegram.react(telegram.sent[-1].number, "👍")
            telegram.react(telegram.sent[-1].number)
            telegram.react(telegram.sent[-1].number, "👎")
            await telegram.wait_for(lambda: telegram.waiting == 0)
            assert at.rows("SELECT text FROM message WHERE event = 'reaction' ORDER BY id") == [("👍",), ("",), ("👎",)]
            found = list(await at.instance.operations.feedback(boiler))
            telegram.say("again: when is the boiler serviced?")
            await telegram.wait_for(lambda: len(texts(telegram)) == 2)
            assert (BOILER in texts(telegram)[-1]) == (not is_on)
            assert [one.state for one in found] == ([FeedbackState.WRONG] if is_on else [])
            if is_on:
                story = (await at.client.get(f"/v1/turns/{show('turn', found[0].turn_id)}", headers=at.owner)).json()
                assert [one["memory"] for one in story["turn"]["feedback"]] == [show("memory", boiler)]
