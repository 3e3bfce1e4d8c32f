"""The scheduler: does what is due, once for each time: errands, messages, and the task of a worker."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace

from keepsaid.domain import commits, relay, reply, retention, route, timing, trust
from keepsaid.domain.ids import show
from keepsaid.domain.message import SYSTEM, Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.schedule import FAILURES_MAX, Fire, Schedule, ScheduleRun, Target, What, astray, fired, verdict_on
from keepsaid.domain.scheduling import BeginRun, EndRun, FireSchedules, Notice, RecoverRuns, RunKey, SettleRun
from keepsaid.domain.task import NewTask, TaskEnd, TaskStory
from keepsaid.engine.tasks import build_report, render_owner_notice
from keepsaid.errors import InputError, KeepsaidError
from keepsaid.ports.runtime import Clock, Ids, Wakeups
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.schedules")
_ERROR_CHARS_MAX = 500

End = Callable[[str, str, str], Awaitable[None]]
"""Writes down how a run ended: its verb, why, and a text for the owner."""


@frozen
class JobHandler:
    """Function that a schedule runs; it returns False if it was interrupted and has to be started again.

    A text that it returns is sent to the owner, in the commit that ends the run.

    A job cut short by the end of its process is started `again` if running it twice does no harm. It may take
    `limit_s` seconds; None for a job that ends by itself when it is asked to stop.
    """

    do: Callable[[Schedule, ScheduleRun], Awaitable[bool | str]]
    again: bool = False
    limit_s: float | None = 600.0


class JobRunner:
    """Runs the jobs known by name, a few at once."""

    def __init__(self, known: Mapping[str, JobHandler] | None = None, at_once: int = 4) -> None:
        self.known = dict(known or {})
        self._at_once = at_once
        self._doing: set[asyncio.Task[None]] = set()

    @property
    def room(self) -> int:
        """How many more may be begun."""
        return max(0, self._at_once - len(self._doing))

    @property
    def repeatable(self) -> tuple[str, ...]:
        """The names of those that are begun again."""
        return tuple(sorted(name for name, job in self.known.items() if job.again))

    def begin(self, run: ScheduleRun, schedule: Schedule, end: End) -> None:
        """Do one, and write down how it ended."""
        job = self.known[schedule.new.text]
        task = asyncio.create_task(self._do(job, run, schedule, end), name=f"errand-{schedule.new.text}")
        self._doing.add(task)
        task.add_done_callback(self._doing.discard)

    async def _do(self, job: JobHandler, run: ScheduleRun, schedule: Schedule, end: End) -> None:
        verb, why, text = "fail", "", ""
        try:
            async with asyncio.timeout(job.limit_s):
                done = await job.do(schedule, run)
                verb, text = "release" if done is False else "execute", done if isinstance(done, str) else ""
        except asyncio.CancelledError:
            await end("release" if job.again else "interrupt", "the process was stopped", "")
            raise
        except TimeoutError:
            why = f"it took longer than {job.limit_s:g} s" if job.limit_s else "it took too long"
        except KeepsaidError as error:
            why = error.what
        except Exception as error:  # noqa: BLE001  # guard: engine loop - what one run does is its own, and stops no other
            _log.error("errand %s failed", schedule.new.text, exc_info=error)
            why = f"{type(error).__name__}: {error}"
        await end(verb, cut(normalise(why), _ERROR_CHARS_MAX), normalise(text))

    async def stop(self, patience_s: float) -> None:
        """Wait `patience_s` seconds for running jobs, then cancel them."""
        if doing := list(self._doing):
            await asyncio.wait(doing, timeout=patience_s)
        for task in doing:
            task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(*doing, return_exceptions=True)


PRIORITY = 100
"""What schedules ask comes after people and webhooks (seed 000, Notifications)."""

_WHY_CHARS_MAX = 500


def task_of(number: int, schedule: Schedule) -> NewTask:
    """The task that a time of a schedule makes: of one schedule one at a time.

    If the schedule has a target, the task belongs to that lane; otherwise the owner receives the notices. The run
    delivers the result, and the task everything else.
    """
    new, known_as = schedule.new, show("schedule", schedule.id)
    outside = new.trust is not Trust.OWNER
    if new.target is not None:
        lane, key = new.target.lane, f"schedule:{known_as}"
        return NewTask(number, new.text, key, lane=lane, depth=1, outside=outside, priority=PRIORITY)
    terms, key = route.WorkTerms(notify=route.Notify.ON_FAILURE, agent=new.agent), f"schedule:{new.name or known_as}"
    if new.agent:
        key = f"schedule:{new.source}:{new.name}"
        return NewTask(number, new.text, key, route.TaskKind.AGENT, terms=terms, outside=outside, priority=PRIORITY)
    return NewTask(number, new.text, key, terms=terms, outside=outside, priority=PRIORITY)


def verdict_of(story: TaskStory | None) -> tuple[str, str]:
    """The verb of a run whose task has ended, and why; what was ended by a person's word is charged to nobody."""
    if story is None or story.task.state == "cancelled":
        return "interrupt", "its task was cancelled" if story else "its task is gone"
    if story.task.state == "completed":
        return "execute", ""
    return "fail", cut(f"its task failed: {story.task.reason}", _WHY_CHARS_MAX)


_PIECE = 64
"""The number of schedules or outputs read in one query."""

_FIRED, _AT_ONCE = 8, 4
"""The runs created in one commit, and the runs executed concurrently; both are small so that messages do not wait."""

_SET_BACK_MS = 1_000
_SPREAD_MS = 10


@frozen
class SchedulerDeps:
    """What a schedule can reach: the door, the channels that are open, who delivers and who works; and the owner.

    Notices to the owner go to the direct chat where he last wrote, or to the lane `owner` if there is none.
    """

    receive: Callable[[Inbound], Awaitable[commits.Received]]
    channels: frozenset[str]
    hints: Wakeups
    owner: Lane
    fence: trust.Fence = trust.UNKEYED


@dataclass(slots=True, eq=False)
class Scheduler:
    """One stage. It sleeps until something is due."""

    store: Store
    clock: Clock
    ids: Ids
    reach: SchedulerDeps
    errands: JobRunner
    quiet: timing.QuietHours | None = None
    _seen: int | None = field(default=None, init=False)
    _looking_after: int | None = field(default=None, init=False)

    async def recover(self) -> None:
        """At start: what a former process was running is begun again, or interrupted."""
        await self.store.apply(RecoverRuns(self.errands.repeatable, self.clock.now_ms()))
        self._seen = await self.store.schedules.latest()

    async def work(self) -> int | None:
        """Do what is due; returns when to come again."""
        now = self.clock.now_ms()
        if self._seen is not None and now < self._seen - _SET_BACK_MS:
            self._looking_after = 0
        self._seen = now
        moved = await self._find_astray(now) if self._looking_after is not None else 0
        busy = moved + await self._fire(now) + await self._execute(now) + await self._take_in() + await self._follow()
        if busy:
            return self.clock.due_ms() + _SPREAD_MS
        due = await self.store.schedules.next_due()
        return None if due is None or due <= now else self.clock.due_ms() + due - now

    async def _find_astray(self, now: int) -> int:
        """The clock was set back: whatever waits for a time too far away comes when it should."""
        found = await self.store.schedules.schedules(("active",), self._looking_after or 0, _PIECE)
        if moves := tuple(move for one in found if (move := astray(one, now)) is not None):
            _log.warning("the clock was set back: %d schedules come sooner", len(moves))
            await self.store.apply(FireSchedules(moves, now))
        self._looking_after = found[-1].id if len(found) == _PIECE else None
        return len(found) if self._looking_after is not None else 0

    async def _fire(self, now: int) -> int:
        believed = abs(now - self.clock.steady_ms()) < retention.SILENT_MS
        due = await self.store.schedules.due(now, _FIRED, once=believed)
        fires = tuple(fire for one in due if (fire := self._fired(one, now, believed=believed)) is not None)
        if fires:
            await self.store.apply(FireSchedules(fires, now))
        return len(fires)

    def _fired(self, schedule: Schedule, now: int, *, believed: bool) -> Fire | None:
        fire = fired(schedule, now, believed=believed)
        if fire is None or self.quiet is None or schedule.new.urgent or schedule.new.what is What.RUN:
            return fire
        return replace(fire, ready_at=self.quiet.until(now) or 0)

    async def _execute(self, now: int) -> int:
        """What may begin; what a person ran in quiet hours is not kept waiting, because he is there."""
        ready = await self.store.schedules.ready(now, _AT_ONCE, self.errands.room)
        await asyncio.gather(*(self._begin(run, schedule) for run, schedule in ready))
        return len(ready)

    async def _begin(self, run: ScheduleRun, schedule: Schedule) -> None:
        new, target = schedule.new, run.target
        if new.what is What.RUN:
            await self._run(run, schedule)
        elif new.what is What.TASK and (target is None or self._is_open(target)):
            await self.store.apply(BeginRun(_key(run), self.clock.now_ms(), task_of(self.ids.next(), schedule)))
            self.reach.hints.task.set()
            self.reach.hints.agent.set()
        elif target is None or not self._is_open(target):
            await self._end(run, schedule, "fail", _closed(target))
        elif new.what is What.SAY:
            draft = reply.ReplyDraft(self.ids.next(), new.text, url=target.url)
            await self.store.apply(EndRun(_key(run), "execute", self.clock.now_ms(), reply=draft))
            self.reach.hints.deliver.set()
        else:
            await self._ask(run, schedule, _question(run, schedule, target))

    def _is_open(self, target: Target) -> bool:
        return target.lane.channel in self.reach.channels

    async def _ask(self, run: ScheduleRun, schedule: Schedule, asked: Inbound) -> None:
        """Asked again after a crash, it is the same message: so it is in the buffer once."""
        try:
            received = await self.reach.receive(asked)
        except InputError as error:
            await self._end(run, schedule, "fail", error.what)
            return
        await self.store.apply(EndRun(_key(run), "execute", self.clock.now_ms(), message_id=received.id))

    async def _take_in(self) -> int:
        """What workers have done: it counts, and is delivered to the target lane, else to the owner."""
        ended = await self.store.schedules.list_orphaned_runs(_AT_ONCE)
        for run in ended:
            schedule = await self.store.schedules.schedule(run.schedule_id)
            if schedule is not None and run.task_id is not None:
                await self._taken_in(run, schedule, run.task_id)
        return len(ended)

    async def _taken_in(self, run: ScheduleRun, schedule: Schedule, task_id: int) -> None:
        story, target = await self.store.tasks.task(task_id), run.target
        verb, why = verdict_of(story)
        if story is None or verb != "execute":
            await self._end(run, schedule, verb, why)
        elif target is None:
            text = render_owner_notice(story.task, TaskEnd.COMPLETE, story.task.result)
            draft = reply.ReplyDraft(self.ids.next(), text, notice=True)
            notice = Notice(self.reach.owner, draft) if story.task.result else None
            await self.store.apply(EndRun(_key(run), verb, self.clock.now_ms(), notice=notice))
            self.reach.hints.deliver.set()
        elif not self._is_open(target):
            await self._end(run, schedule, "fail", _closed(target))
        else:
            untold = relay.UnreportedTasks(target.lane, (story.task,), url=target.url, direct=target.direct)
            report = build_report(story.task, untold, relay.trust_of(story), self.reach.fence)
            await self._ask(run, schedule, replace(report, priority=PRIORITY))

    async def _run(self, run: ScheduleRun, schedule: Schedule) -> None:
        if schedule.new.text not in self.errands.known:
            await self._end(run, schedule, "fail", f"nothing here is called {schedule.new.text}")
        elif await self.store.apply(BeginRun(_key(run), self.clock.now_ms())):

            async def end(verb: str, why: str, text: str) -> None:
                await self._end(run, schedule, verb, why, text)
                self.reach.hints.schedule.set()

            self.errands.begin(run, schedule, end)

    async def _end(self, run: ScheduleRun, schedule: Schedule, verb: str, why: str, text: str = "") -> None:
        key, now = _key(run), self.clock.now_ms()
        notice = self._notice(schedule, why) if verb == "fail" else None
        if text.strip():
            notice = Notice(self.reach.owner, reply.ReplyDraft(self.ids.next(), text, notice=True))
            self.reach.hints.deliver.set()
        state = await self.store.apply(EndRun(key, verb, now, why, notice=notice))
        self._warn(schedule, state, verb, why)

    async def _follow(self) -> int:
        """Settle the outputs of runs, as far as they are delivered."""
        heard = await self.store.schedules.list_unsettled_outputs(_PIECE)
        for one in heard:
            verb, why = verdict_on(one)
            key, notice, schedule = RunKey(one.schedule_id, one.due_at), None, None
            if verb == "lose":
                schedule = await self.store.schedules.schedule(one.schedule_id)
                notice = None if schedule is None else self._notice(schedule, why)
            state = await self.store.apply(SettleRun(key, verb, self.clock.now_ms(), why, one.reply_id, notice))
            if schedule is not None:
                self._warn(schedule, state, verb, why)
        return len(heard)

    def _notice(self, schedule: Schedule, why: str) -> Notice:
        known = show("schedule", schedule.id)
        named = f"{schedule.new.name} ({known})" if schedule.new.name else known
        text = f"The schedule {named} failed: {why}."
        if schedule.state == "active":
            text = f"The schedule {named} failed {FAILURES_MAX} times in a row and is disabled. Last failure: {why}."
            text += f" To resume it: keepsaid schedule resume {known}"
        return Notice(self.reach.owner, reply.ReplyDraft(self.ids.next(), text, notice=True))

    def _warn(self, schedule: Schedule, state: str, verb: str, why: str) -> None:
        if verb in ("fail", "lose"):
            stands = "it is disabled" if state == "disabled" else f"it is {state}"
            _log.warning("schedule %s failed, %s: %s", show("schedule", schedule.id), stands, why)
            self.reach.hints.deliver.set()


def _key(run: ScheduleRun) -> RunKey:
    return RunKey(run.schedule_id, run.due_at)


def _closed(target: Target | None) -> str:
    where = "nowhere" if target is None else target.lane.channel
    return f"its target channel is {where}, which is not open here"


def _question(run: ScheduleRun, schedule: Schedule, target: Target) -> Inbound:
    """What is asked, bound to the lane that hears the answer."""
    new, lane = schedule.new, target.lane
    origin = Origin(
        lane.channel, lane.account, lane.conversation, SYSTEM, "schedule", direct=target.direct, trust=new.trust
    )
    payload = json.dumps({"schedule": show("schedule", new.id), "due": run.due_at}).encode()
    marks = ProviderMarks(f"schedule:{new.id}:{run.due_at}")
    return Inbound(origin, Content(payload, new.text), marks, PRIORITY, reply_url=target.url, key=lane.key)
