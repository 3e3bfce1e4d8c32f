"""The agent's tools for schedules: bound to the lane of the turn, within limits, and done with its commit."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from tests.unit.memory_cast import claimed, message

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.domain.effects import EndSchedule, KeepTime
from keepsaid.domain.ids import show
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, Role, ToolCall
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.scheduling import AddSchedule
from keepsaid.domain.timing import Cron, Every, Once
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.errors import ToolError
from keepsaid.pipeline.tools.conversation import ScheduleToolTerms, schedule_tools, scheduled_in
from keepsaid.ports.model import Tool
from keepsaid.testing.clock import CountingIds, VirtualClock

HOUR = 3_600_000


class Desk:
    """A turn that has the tools."""

    def __init__(self, terms: ScheduleToolTerms | None = None, heard: StoredMessage | None = None) -> None:
        self.store = InMemoryOperations()
        self.clock = VirtualClock()
        self.claimed = claimed(heard or message(9, "remind me"))
        system = self.clock, CountingIds()
        tools = schedule_tools(self.claimed, self.store.schedules, system, terms or ScheduleToolTerms())
        self.tools: dict[str, Tool] = {tool.name: tool for tool in tools}
        self.records: list[Record] = []

    async def call(self, tool: str, **arguments: Json) -> str:
        call = ToolCall(f"call-{len(self.records)}", tool, json.dumps(arguments))
        try:
            told = await self.tools[tool].run(arguments)
        except ToolError as error:
            told = f"error: {error.what}"
        self.records += [Record(Role.ASSISTANT, "", (call,)), Record(Role.TOOL, told, call_id=call.id, speaker=tool)]
        return told

    @property
    def effects(self) -> Sequence[KeepTime | EndSchedule]:
        return scheduled_in(self.records, self.claimed, "UTC")


async def test_what_is_added_is_heard_in_the_lane_of_the_turn() -> None:
    desk = Desk()
    told = await desk.call("schedule_add", what="say", text="stretch", every_s=3600, name="stretch")
    assert "is kept once your answer is written" in told
    await desk.call("schedule_add", what="ask", text="what is new?", cron="0 9 * * *", timezone="Europe/Berlin")
    await desk.call("schedule_add", what="say", text="tea", in_s=600)
    done = await desk.call("schedule_add", what="task", text="tidy up", every_s=7200)
    assert 'to have a worker do "tidy up" here' in done
    first, second, third, fourth = [one for one in desk.effects if isinstance(one, KeepTime)]
    now, lane = desk.clock.now_ms(), desk.claimed.batch.lane
    assert (first.new.timing, first.next_at, first.new.name) == (Every(HOUR), now + HOUR, "stretch")
    assert (second.new.timing, second.new.what) == (Cron("0 9 * * *", "Europe/Berlin"), What.ASK)
    assert (third.new.timing, third.next_at) == (Once(now + 600_000), now + 600_000)
    assert (fourth.new.what, fourth.new.trust) == (What.TASK, Trust.OWNER)
    assert [one.new.target and one.new.target.lane for one in (first, second, third, fourth)] == [lane] * 4
    assert show("schedule", first.new.id) in told
    assert {one.new.source for one in (first, second, third)} == {"agent"}


async def test_read_again_later_it_says_the_same() -> None:
    desk = Desk()
    await desk.call("schedule_add", what="say", text="tea", in_s=600)
    before = desk.effects
    desk.clock.jump(HOUR)
    assert desk.effects == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"what": "say", "text": "x", "every_s": 10}, "too often"),
        ({"what": "say", "text": "x", "cron": "* * * * *"}, "too often"),
        ({"what": "say", "text": "x", "cron": "nine"}, "five fields"),
        ({"what": "say", "text": "x", "at": "2001-01-01"}, "in the past"),
        ({"what": "say", "text": "x"}, "one of"),
        ({"what": "say", "text": "x", "at": "2030-01-01", "in_s": 5}, "one of"),
        ({"what": "say", "text": " ", "in_s": 5}, "text"),
        ({"what": "run", "text": "x", "in_s": 5}, "say, ask, task"),
        ({"what": "say", "text": "x", "in_s": True}, "seconds"),
    ],
)
async def test_what_cannot_be_kept_is_refused_and_leaves_nothing(arguments: dict[str, Json], said: str) -> None:
    desk = Desk()
    told = await desk.call("schedule_add", **arguments)
    assert told.startswith("error:")
    assert said in told
    assert desk.effects == ()


def kept(turn: ClaimedBatch, number: int, source: str = "agent") -> AddSchedule:
    new = NewSchedule(number, source, "", Every(HOUR), What.SAY, "stretch", Target(turn.batch.lane))
    return AddSchedule(new, 10, 0)


async def test_only_what_is_heard_here_is_listed_and_cancelled() -> None:
    desk = Desk()
    elsewhere = replace(kept(desk.claimed, 2).new, target=Target(desk.claimed.batch.lane._replace(conversation="b")))
    for one in (kept(desk.claimed, 1), replace(kept(desk.claimed, 2), new=elsewhere), kept(desk.claimed, 3, "config")):
        await desk.store.apply(one)
    listed = await desk.call("schedule_list")
    assert [show("schedule", n) in listed for n in (1, 2, 3)] == [True, False, True]
    for number in (1, 2, 3):
        await desk.call("schedule_cancel", id=show("schedule", number))
    assert desk.effects == (EndSchedule(1),)


async def test_there_are_not_more_than_are_allowed() -> None:
    desk = Desk(ScheduleToolTerms(most=1))
    await desk.store.apply(kept(desk.claimed, 1))
    assert "cancel one first" in await desk.call("schedule_add", what="say", text="x", in_s=5)


async def test_outsiders_have_no_such_tools_and_a_schedule_makes_none() -> None:
    def from_whom(sender: str, trust: Trust) -> StoredMessage:
        one = message(9, "remind me")
        origin = replace(one.inbound.origin, sender=sender, trust=trust)
        return replace(one, inbound=replace(one.inbound, origin=origin))

    assert not Desk(heard=from_whom("stranger", Trust.EXTERNAL)).tools
    program = Desk(heard=from_whom("system", Trust.OWNER))
    assert "only a person can have a schedule made" in await program.call("schedule_add", what="say", text="x", in_s=5)
    assert program.effects == ()
    assert await program.call("schedule_list") == "There is no schedule in this conversation."
    assert not Desk(ScheduleToolTerms(most=0)).tools
    assert set(Desk(heard=from_whom("ann", Trust.KNOWN)).tools) == {"schedule_add", "schedule_list", "schedule_cancel"}
