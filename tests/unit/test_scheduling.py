"""Schedules in an instance: what follows a reload, what fails, what is quiet, and what a clock does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from tests.month.home import VirtualHome, lived

from keepsaid.config import Config
from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.prompt import Record, ToolCall
from keepsaid.domain.schedule import NewSchedule, Schedule, ScheduleRun, Target, What
from keepsaid.domain.task import CancelTask, TaskFilter
from keepsaid.domain.timing import Every, Once
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.engine.scheduler import JobHandler
from keepsaid.errors import InputError, ModelRejected, ModelUnavailable
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid_testkit.simulator.clock import EPOCH_MS

ROOM = Target(Lane("talk", "default", "room", "root:room"))
HOUR, DAY = 3_600_000, 86_400_000


class Silent:
    """A model that says little."""

    name = "test/silent"

    async def answer(self, _request: ModelRequest, _delta: Delta) -> ModelAnswer:
        return ModelAnswer("yes", (), Usage(), self.name)


def config(**schedules: object) -> Config:
    quiet = {"bulletin": {"enabled": False}, "collection": {"extractor": "none"}, "maintenance": {"enabled": False}}
    return Config.model_validate({"channels": {"talk": {"window_ms": 0}}, "schedules": schedules, **quiet})


def home(life: Callable[[VirtualHome], Coroutine[Any, Any, None]], **schedules: object) -> None:
    lived(Silent(), config(**schedules), life)


def new(name: str, what: What, text: str, every_ms: int = HOUR) -> NewSchedule:
    return NewSchedule(0, "command", name, Every(every_ms), what, text, ROOM if what in (What.SAY, What.ASK) else None)


async def runs(one: VirtualHome, schedule: Schedule) -> list[tuple[str, str]]:
    return [(run.state, run.output) for run in await one.store.schedules.runs(schedule.id, 50)]


def said(one: VirtualHome) -> list[str]:
    return [reply.draft.text for reply in one.mouths["talk"].said]


def test_what_is_said_leaves_and_what_is_asked_is_answered() -> None:
    async def life(one: VirtualHome) -> None:
        word = await one.instance.services.schedules.add(new("word", What.SAY, "stretch"))
        question = await one.instance.services.schedules.add(new("question", What.ASK, "are you well?"))
        one.jump(3_600)
        await asyncio.sleep(30)
        assert sorted(said(one)) == ["stretch", "yes"]
        assert await runs(one, word) == await runs(one, question) == [("executed", "delivered")]

    home(life)


def test_what_fails_three_times_is_disabled_and_said_to_the_owner() -> None:
    async def broken(_schedule: Schedule, _run: ScheduleRun) -> bool:
        raise ValueError("no such file")

    async def life(one: VirtualHome) -> None:
        scheduling = one.instance.services.schedules
        one.instance.scheduling.register_job("broken", JobHandler(broken))
        made = await scheduling.add(new("nightly", What.RUN, "broken"))
        for _ in range(5):
            one.jump(3_600)
            await asyncio.sleep(10)
        assert await runs(one, made) == [("failed", "none")] * 3
        [notice] = await one.store.unseen("terminal", "terminal")
        assert "nightly" in notice.draft.text
        assert "no such file" in notice.draft.text
        assert (await scheduling.find("nightly", None)).state == "disabled"

    home(life)


def test_a_text_of_a_job_waits_for_an_owner_who_has_not_written_yet() -> None:
    async def greets(_schedule: Schedule, _run: ScheduleRun) -> str:
        return "good morning"

    async def life(one: VirtualHome) -> None:
        one.instance.scheduling.register_job("greets", JobHandler(greets))
        made = await one.instance.services.schedules.add(new("morning", What.RUN, "greets"))
        for _ in range(4):
            one.jump(3_600)
            await asyncio.sleep(10)
        assert [notice.draft.text for notice in await one.store.unseen("terminal", "terminal")] == ["good morning"] * 4
        assert {state for state, _ in await runs(one, made)} == {"executed"}
        assert (await one.instance.services.schedules.find("morning", None)).state == "active"

    home(life)


def test_what_nobody_knows_is_refused_when_it_is_added() -> None:
    async def life(one: VirtualHome) -> None:
        with pytest.raises(InputError, match="nothing here is called 'tidying'"):
            await one.instance.services.schedules.add(new("nightly", What.RUN, "tidying"))
        assert await one.instance.services.schedules.list() == []

    home(life)


def test_a_task_is_done_by_a_worker_and_told_to_the_owner() -> None:
    async def life(one: VirtualHome) -> None:
        mine = Origin("talk", "default", "me", "owner", direct=True, trust=Trust.OWNER)
        await one.instance.receive(Inbound(mine, Content(b"hello", "hello"), ProviderMarks(), 10))
        made = await one.instance.services.schedules.add(new("tidy", What.TASK, "tidy up"))
        one.jump(3_600)
        await asyncio.sleep(30)
        [task] = await one.store.tasks.find(TaskFilter())
        assert (task.key, task.state, task.result) == ("schedule:tidy", "completed", "yes")
        assert await runs(one, made) == [("executed", "delivered")]
        assert sum("tidy" in text or "is completed: yes" in text for text in said(one)) == 1
        await one.instance.receive(Inbound(mine, Content(b"/schedules", "/schedules"), ProviderMarks(), 10))
        await asyncio.sleep(30)
        assert f"{show('schedule', made.id)} tidy active, next" in said(one)[-1]
        assert "task tidy up" in said(one)[-1]

    home(life)


class Diligent:
    """A model that keeps a schedule when it is asked to, and does its work, or fails at it."""

    name = "test/diligent"

    def __init__(self, *, fails: bool = False) -> None:
        self.fails = fails
        self.told: list[str] = []

    async def answer(self, request: ModelRequest, _delta: Delta) -> ModelAnswer:
        names = {tool.name for tool in request.tools}
        if "set_status" in names and self.fails:
            raise ModelRejected("the broom is broken")
        if "set_status" in names:
            return ModelAnswer("swept", (), Usage(), self.name)
        self.told.append(request.prompt.user)
        if "schedule_add" not in names or request.exchange:
            return ModelAnswer("well", (), Usage(), self.name)
        asked = {"what": "task", "text": "sweep the floor", "every_s": 3600}
        return ModelAnswer("", (ToolCall("call-1", "schedule_add", json.dumps(asked)),), Usage(), self.name)


class Attentive:
    """A model that remembers what it was shown."""

    name = "test/attentive"

    def __init__(self) -> None:
        self.histories: list[tuple[Record, ...]] = []

    async def answer(self, request: ModelRequest, _delta: Delta) -> ModelAnswer:
        self.histories.append(request.prompt.history)
        return ModelAnswer("well", (), Usage(), self.name)


class Nobody:
    """A model that is out."""

    name = "test/nobody"

    async def answer(self, _request: ModelRequest, _delta: Delta) -> ModelAnswer:
        raise ModelUnavailable("nobody is there")


def test_work_the_agent_wants_done_at_a_time_comes_back_where_it_was_asked_for() -> None:
    model = Diligent()

    async def life(one: VirtualHome) -> None:
        await one.say("ann", "sweep every hour, please", conversation="room", trust=Trust.KNOWN)
        [made] = await one.store.schedules.schedules(("active",), 0, 10)
        for _ in range(5):
            one.jump(3_600)
            await asyncio.sleep(30)
        assert await runs(one, made) == [("executed", "delivered")] * 5
        tasks = await one.store.tasks.find(TaskFilter())
        assert {(task.lane, task.depth, task.outside, task.state) for task in tasks} == {
            (made.new.target and made.new.target.lane, 1, True, "completed")
        }
        assert len({task.turn_id for task in tasks}) == 1
        assert [text.count("swept") for text in model.told[-5:]] == [1] * 5
        assert {reply.lane.conversation for reply in one.mouths["talk"].said} == {"room"}

    lived(model, config(), life)


def test_work_that_fails_three_times_comes_no_more_and_is_said() -> None:
    async def life(one: VirtualHome) -> None:
        made = await one.instance.services.schedules.add(new("sweep", What.TASK, "sweep the floor"))
        for _ in range(5):
            one.jump(3_600)
            await asyncio.sleep(30)
        assert await runs(one, made) == [("failed", "none")] * 3
        [run, *_] = await one.store.schedules.runs(made.id, 1)
        assert "the broom is broken" in run.reason
        assert run.task_id is not None
        assert (await one.instance.services.schedules.find("sweep", None)).state == "disabled"
        told = [reply.draft.text for reply in await one.store.unseen("terminal", "terminal")]
        assert ["disabled" in text for text in told] == [True]

    lived(Diligent(fails=True), config(), life)


def test_while_its_task_waits_for_a_word_no_time_is_run_for_and_a_cancelled_one_is_not_charged() -> None:
    async def life(one: VirtualHome) -> None:
        made = await one.instance.services.schedules.add(new("sweep", What.TASK, "sweep the floor"))
        for _ in range(2):
            one.jump(3_600)
            await asyncio.sleep(30)
        assert await runs(one, made) == [("skipped", "none"), ("running", "none")]
        [task] = await one.store.tasks.find(TaskFilter())
        assert task.state == "pending"
        await one.store.apply(CancelTask(task.id, one.wall.now_ms(), "never mind"))
        await asyncio.sleep(30)
        assert await runs(one, made) == [("skipped", "none"), ("interrupted", "none")]
        assert (await one.instance.services.schedules.find("sweep", None)).failures == 0

    lived(Nobody(), config(), life)


def test_the_agent_is_shown_what_was_said_in_its_name_and_it_is_no_record() -> None:
    model = Attentive()

    async def life(one: VirtualHome) -> None:
        await one.say("ann", "hello", conversation="room", trust=Trust.KNOWN)
        await one.instance.services.schedules.add(new("word", What.SAY, "[Status] stretch"))
        one.jump(3_600)
        await asyncio.sleep(30)
        for text in ("why?", "how?"):
            await one.say("ann", text, conversation="room", trust=Trust.KNOWN)
        first, second, third = model.histories
        assert first == ()
        assert [record.text for record in second[-2:]] == [
            "well",
            "[Posted here in your name, at its time]:\n  [Status] stretch",
        ]
        assert third[: len(second)] == second
        told = await one.store.span(ROOM.lane, 0, 100)
        assert [record.text for record in told.records] == ["hello", "well", "why?", "well", "how?", "well"]

    lived(model, config(), life)


def test_in_quiet_hours_nothing_is_said_that_can_wait() -> None:
    async def life(one: VirtualHome) -> None:
        await one.instance.services.schedules.add(new("word", What.SAY, "stretch", 4 * HOUR))
        one.jump(4 * 3_600)
        await asyncio.sleep(30)
        assert said(one) == []
        one.jump(12 * 3_600)
        await asyncio.sleep(30)
        assert said(one) == ["stretch"]

    home(life, quiet="18:00-06:00")


def test_a_clock_that_is_set_brings_no_burst_and_loses_nothing() -> None:
    async def life(one: VirtualHome) -> None:
        scheduling = one.instance.services.schedules
        words = [await scheduling.add(new(f"word {n}", What.SAY, f"word {n}")) for n in range(30)]
        once = NewSchedule(0, "command", "once", Once(EPOCH_MS + 90 * DAY), What.SAY, "happy birthday", ROOM)
        await scheduling.add(once)
        one.wall.jump(365 * DAY + HOUR // 3)
        await asyncio.sleep(60)
        assert said(one) == []
        one.wall.jump(-365 * DAY - HOUR // 3)
        await asyncio.sleep(60)
        one.jump(3_600)
        await asyncio.sleep(60)
        assert sorted(said(one)) == sorted(one.new.text for one in words)
        assert (await scheduling.find("once", None)).state == "active"

    home(life)


def test_a_channel_that_is_not_open_hears_nothing_and_nobody_else_does() -> None:
    async def life(one: VirtualHome) -> None:
        elsewhere = Target(Lane("gone", "default", "room", "root:room"))
        asked = NewSchedule(5, "", "word", Every(HOUR), What.SAY, "secret", elsewhere)
        await one.instance.services.schedules.replace("test", [asked])
        one.jump(3_600)
        await asyncio.sleep(30)
        [made] = await one.store.schedules.schedules(("active",), 0, 10)
        assert await runs(one, made) == [("failed", "none")]
        assert said(one) == []

    home(life)


def test_what_the_config_names_is_followed_when_it_changes() -> None:
    async def life(one: VirtualHome) -> None:
        scheduling = one.instance.services.schedules
        changed = config(named={"tea": {"every_s": 7200, "say": "tea"}}, quiet="22:00-07:00")
        await (await one.instance.scheduling.prepare(changed)).apply()
        found = await scheduling.list(("active", "cancelled"))
        assert [(known.new.name, known.state) for known in found] == [("water", "cancelled"), ("tea", "active")]

    home(life, named={"water": {"every_s": 3600, "say": "water"}})
