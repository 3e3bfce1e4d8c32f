"""The tool `react`: which message gets the emoji, a turn without words, a crash, and messages that join the turn."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from tests.unit.turn_cast import Stage, a_tool, killed_at, staged

from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.turn import ClaimedBatch, ToolClass
from keepsaid.errors import ToolError
from keepsaid.pipeline.tools.conversation import stay_silent
from keepsaid.pipeline.tools.reactions import react
from keepsaid.ports.channel import ReactionTarget
from keepsaid.ports.model import Tool
from keepsaid.testing.model_script import Call, Calls, Empty, Say

LIKE = Call("react", {"emoji": "👍"})


class Reactions:
    """A channel on which everything but one emoji can be given; a set, as twice has the effect of once."""

    def __init__(self) -> None:
        self.given: set[tuple[str, str]] = set()
        self.calls: list[tuple[Lane, ReactionTarget, str]] = []

    async def react(self, lane: Lane, target: ReactionTarget, emoji: str) -> None:
        self.calls.append((lane, target, emoji))
        if emoji == "🦄":
            raise ToolError("this emoji cannot be used here")
        self.given.add((target.provider_id, emoji))


class ReactingStage:
    """A turn whose lane can have reactions."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.channel = Reactions()
        self.offer()

    def offer(self) -> None:
        """Have the agent of this process react by the channel."""
        answering = self.stage.flow.answering
        answering.agent = replace(answering.agent, reacting=lambda _lane: self.channel)

    async def say(self, *texts: str, named: bool = True, trust: Trust = Trust.KNOWN) -> None:
        for n, text in enumerate(texts, 1):
            origin = Origin("chat", "me", "room", "ann", "Ann", trust=trust)
            marks = ProviderMarks(f"m{n}" if named else None, f"m{n}" if named else None)
            await self.stage.flow.receive(self.stage.door, Inbound(origin, Content(text.encode(), text), marks))
        await self.stage.flow.route()

    async def results(self) -> list[str]:
        """What the model was told of its calls."""
        return [one.text for one in (await self.stage.turn()).records if one.role is Role.TOOL]


@asynccontextmanager
async def reacting(*reactions: object, tools: tuple[Tool, ...] = ()) -> AsyncIterator[ReactingStage]:
    async with staged(*reactions, tools=tools) as stage:
        yield ReactingStage(stage)


async def test_the_newest_message_gets_the_emoji_and_the_turn_goes_on() -> None:
    async with reacting(LIKE, Say("fine")) as at:
        await at.say("it works")
        assert await at.stage.work() == "done"
        assert [one.draft.text for one in await at.stage.replies()] == ["fine"]
        assert await at.results() == ["The message has the reaction now."]
        [(lane, target, emoji)] = at.channel.calls
    assert (lane.conversation, target.provider_id, target.sender, emoji) == ("room", "m1", "ann", "👍")


@pytest.mark.parametrize("last", [Empty(), Call("stay_silent", {"reason": "that says it"})])
async def test_a_turn_may_react_and_say_nothing(last: object) -> None:
    async with reacting(LIKE, last, tools=(stay_silent(),)) as at:
        await at.say("thanks!")
        assert await at.stage.work() == "done"
        turn = await at.stage.turn()
        assert (turn.state, await at.stage.replies(), at.channel.given) == ("committed", [], {("m1", "👍")})
    said = "the agent reacted with an emoji" if isinstance(last, Empty) else "that says it"
    assert turn.reason == f"silent: {said}"
    assert [(one.role, len(one.calls)) for one in turn.records[1:]] == [(Role.ASSISTANT, 1), (Role.TOOL, 0)]


async def test_a_reaction_and_a_silence_in_one_answer() -> None:
    async with reacting(Calls((LIKE, Call("stay_silent", {}))), tools=(stay_silent(),)) as at:
        await at.say("thanks!")
        assert await at.stage.work() == "done"
        assert (await at.stage.replies(), at.channel.given) == ([], {("m1", "👍")})


async def test_a_number_means_the_message_that_the_prompt_numbers_so() -> None:
    first, third = (Call("react", {"emoji": "👍", "message": number}) for number in (1, 3))
    async with reacting(first, third, Say("ok")) as at:
        await at.say("one", "two")
        assert await at.stage.work() == "done"
        assert at.channel.given == {("m1", "👍")}
        assert "number 1" in at.stage.server.requests[0].raw.decode()
        assert (await at.results())[1] == "error: message must be a number from 1 to 2, as the messages are numbered"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"emoji": "🦄"}, "error: this emoji cannot be used here"),
        ({}, "error: emoji must be one emoji"),
        ({"emoji": " "}, "error: emoji must be one emoji"),
        ({"emoji": "x" * 101}, "error: emoji must be one emoji"),
        ({"emoji": "👍", "message": True}, "error: message must be a number from 1 to 1, as the messages are numbered"),
    ],
)
async def test_a_refusal_is_for_the_model_to_read(arguments: dict[str, Json], told: str) -> None:
    async with reacting(Call("react", arguments), Empty()) as at:
        await at.say("hello")
        assert await at.stage.work() == "done"
        assert await at.results() == [told]
        assert (await at.stage.turn()).reason == "silent: the model gave no answer"


async def test_a_message_without_a_name_on_its_medium_gets_no_reaction() -> None:
    async with reacting(LIKE, Call("react", {"emoji": "👍", "message": 1}), Say("ok")) as at:
        await at.say("hello", named=False)
        assert await at.stage.work() == "done"
        assert at.channel.calls == []
        assert await at.results() == [
            "error: no message that is answered here can get a reaction",
            "error: message number 1 cannot get a reaction",
        ]


async def test_a_stranger_who_is_answered_gets_a_reaction() -> None:
    """The tool needs no approval in a turn that shows text from outside: it reaches who is answered, no one else."""
    async with reacting(LIKE, Say("ok")) as at:
        await at.say("hello", trust=Trust.EXTERNAL)
        assert await at.stage.work() == "done"
        assert at.channel.given == {("m1", "👍")}


@pytest.mark.parametrize("point", ["tool.before", "tool.after", "commit.StepEnd.after", "commit.TurnCommit.before"])
async def test_a_crash_repeats_the_call_and_the_message_has_one_reaction(point: str) -> None:
    async with reacting(*[LIKE, Empty()] * 2) as at:
        await at.say("thanks!")
        await killed_at(at.stage, point)
        at.offer()
        assert await at.stage.work() == "done"
        assert at.channel.given == {("m1", "👍")}
        assert (await at.stage.turn()).state == "committed"


async def test_where_a_channel_cannot_react_there_is_no_tool() -> None:
    async with staged(Say("ok")) as stage:
        await stage.say()
        assert await stage.work() == "done"
        assert '"react"' not in stage.server.requests[0].raw.decode()


async def test_a_tool_with_this_name_that_the_owner_added_is_kept() -> None:
    other = replace(a_tool(lambda _arguments: "of the owner's own"), name="react")
    async with reacting(LIKE, Say("ok"), tools=(other,)) as at:
        await at.say("hello")
        assert await at.stage.work() == "done"
        assert (at.channel.calls, await at.results()) == ([], ["of the owner's own"])


async def test_the_newest_message_is_one_that_joined_the_turn() -> None:
    async with reacting(Say("ok")) as at:
        await at.say("one", "two")
        (lease,) = await at.stage.flow.claim(at.stage.leases, 1)
        claimed = await at.stage.flow.open(lease)
        now = [replace(claimed, messages=claimed.messages[:1])]

        def current() -> ClaimedBatch:
            return now[0]

        tool = react(at.channel, current)
        await tool.run({"emoji": "👍"})
        now[0] = claimed
        await tool.run({"emoji": "👍"})
    assert tool.kind is ToolClass.IDEMPOTENT
    assert [target.provider_id for _, target, _ in at.channel.calls] == ["m1", "m2"]
