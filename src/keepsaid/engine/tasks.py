"""Tasks at work: claimed up to a limit, done beside the turns under a lease; their results go back to their lanes."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

from keepsaid import errors
from keepsaid.domain import commits, ids, relay, reply, route, turn
from keepsaid.domain.ids import show
from keepsaid.domain.message import RESULT, SYSTEM, Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.task import ClaimTasks, EndTask, ExpireTasks, RenewTask, Task, TaskEnd, TaskFilter, TaskStory
from keepsaid.domain.trust import UNKEYED, Fence
from keepsaid.engine.workers import HOPELESS, RetryPolicy
from keepsaid.pipeline.leasing import cancelled_when_lost, renewing
from keepsaid.pipeline.turn import authorization, worker
from keepsaid.pipeline.turn.run import REPEATABLE, Begun, NeedsReview, OutsideCall, StepLog, call_tool
from keepsaid.ports import model, runtime, store_views
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, digest, normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.task")
_TOLD_CHARS_MAX = 2_000
Do = Callable[[TaskStory, Mapping[str, Task], StepLog], Awaitable[worker.WorkerResult]]
"""Does a task, given the tasks its text refers to by name."""

FORGOTTEN_FIRST = "what it was about was forgotten before it was done"


@frozen
class TaskLimits:
    """How many tasks run at a time, and how long one may take (seconds), where its own terms do not say.

    A lease lasts `lease_ms` and is renewed every `renew_ms`.
    """

    at_once: int = 5
    timeout_s: float = 1_800.0
    lease_ms: int = 60_000
    renew_ms: int = 20_000


@frozen
class TaskHandler:
    """Runs the tasks of one kind; while `is_idle` returns true, none is claimed."""

    do: Do
    is_idle: Callable[[], bool]
    kind: route.TaskKind = route.TaskKind.WORKER


@frozen
class TaskRunnerDeps:
    """What runs of tasks need of the runtime."""

    store: Store
    clock: runtime.Clock
    ids: runtime.Ids
    hints: runtime.Wakeups
    owner: str


class Tasks:
    """Runs tasks of one kind."""

    def __init__(self, craft: TaskHandler, around: TaskRunnerDeps, limits: TaskLimits, patience: RetryPolicy) -> None:
        self.hint = around.hints.of_tasks[craft.kind]
        self._craft = craft
        self._around = around
        self._limits = limits
        self._patience = patience
        self._running: dict[int, asyncio.Task[None]] = {}
        self._cancelled: set[int] = set()
        self._stopping = False

    async def claim(self) -> int | None:
        """Fill the free places; returns when the next task is due.

        Without a model nothing is claimed: what waits is done once there is one.
        """
        if self._stopping or self._craft.is_idle():
            return None
        await self._stop_cancelled()
        around, kind, free = self._around, self._craft.kind, self._limits.at_once - len(self._running)
        if free < 1:
            return None
        now = around.clock.due_ms()
        due = await around.store.tasks.next_ready(kind)
        if due is None or due > now:
            return due
        commit = ClaimTasks(around.owner, free, now, around.clock.steady_ms() + self._limits.lease_ms, kind)
        for task in await self._around.store.apply(commit):
            running = asyncio.create_task(self._work(task), name=f"task-{task.id}")
            self._running[task.id] = running
            running.add_done_callback(partial(self._finished, task.id))
        return None if len(self._running) >= self._limits.at_once else await around.store.tasks.next_ready(kind)

    async def _stop_cancelled(self) -> None:
        """Stop the runs of what a turn cancelled."""
        if self._running:
            for task in await self._around.store.tasks.find(TaskFilter(state="cancelled")):
                if task.id in self._running:
                    self.cancelled(task.id)

    def cancelled(self, task_id: int) -> None:
        """A task was cancelled on disk: its run stops, and what it still has to say is refused."""
        self.hint.set()
        if (running := self._running.get(task_id)) is not None:
            self._cancelled.add(task_id)
            running.cancel()

    def _finished(self, task_id: int, _: asyncio.Task[None]) -> None:
        del self._running[task_id]
        self._cancelled.discard(task_id)
        self.hint.set()

    async def _work(self, task: Task) -> None:
        try:
            how = await self._tried(task)
        except errors.StoreError as error:
            how = "broken off"
            _log.error("task broken off: %s", error.what, extra={"code": error.code, "task": task.id})
        finally:
            hints = self._around.hints
            for hint in (hints.deliver, hints.record, hints.relay):
                hint.set()
        _log.info("task ended", extra={"task": task.id, "how": how})

    async def _tried(self, task: Task) -> str:
        """Try once; returns the state that led to. What a task raised itself is charged to it, an outage is not."""
        story = await self._around.store.tasks.task(task.id)
        held = turn.ResumableTurn(task.id, task.fence, story.steps if story else ())
        steps = StepLog(self._around.store, self._around.clock, held)
        timeout_s = task.terms.timeout_s or self._limits.timeout_s
        try:
            async with self._kept(task), asyncio.timeout(timeout_s):
                done = await self._done(story, steps)
        except errors.LeaseLost:
            return "lost"
        except asyncio.CancelledError:
            if task.id not in self._cancelled:
                await asyncio.shield(self._end(task, TaskEnd.RELEASE, "", steps))
            raise
        except (errors.ModelUnavailable, errors.StoreError) as outage:
            if isinstance(outage, errors.StoreBroken):
                raise
            return await self._wait_out(task, outage, steps)
        except NeedsReview as unknown:
            return await self._end(task, TaskEnd.PARK, unknown.what, steps)
        except TimeoutError:
            return await self._end(task, TaskEnd.FAIL, f"it took longer than {timeout_s:g} s", steps)
        except (*HOPELESS, errors.TaskImpossible) as refusal:
            return await self._end(task, TaskEnd.FAIL, f"{refusal.what}; {refusal.hint}", steps)
        except Exception as error:  # noqa: BLE001  # guard: engine loop - a failing task is charged to itself
            _log.error("task failed", exc_info=error, extra={"task": task.id})
            what = error.what if isinstance(error, errors.KeepsaidError) else type(error).__name__
            return await self._end(task, TaskEnd.RETRY, what, steps)
        return await self._completed(task, done, steps)

    async def _completed(self, task: Task, done: worker.WorkerResult, steps: StepLog) -> str:
        """Its result, what it leaves behind and the end of its last call are on disk at once, or nothing is."""
        end = self._ended(task, TaskEnd.COMPLETE, done.result, steps)
        said = reply.ReplyDraft(self._around.ids.next(), done.result) if task.terms.reply else None
        end = replace(end, ending=steps.ending, effects=done.effects, answer=said)
        state = await self._around.store.apply(end)
        for hint in self._around.hints.of_tasks.values():
            hint.set()
        return state

    async def _done(self, story: TaskStory | None, steps: StepLog) -> worker.WorkerResult:
        if story is None or not story.task.description:
            raise errors.TaskImpossible(FORGOTTEN_FIRST)
        view, named = self._around.store.tasks, dict[str, Task]()
        for name in worker.references(story.task):
            found = await view.find(TaskFilter(state="completed", key=name, limit=1))
            named |= dict.fromkeys((name,), next(iter(found))) if found else {}
        return await self._craft.do(story, named, steps)

    async def _wait_out(self, task: Task, outage: errors.ModelUnavailable | errors.StoreError, steps: StepLog) -> str:
        now = self._around.clock.due_ms()
        wait = self._patience.outage_wait_ms(outage, task.deferrals, now - (task.deferred_from or now))
        if wait is None:
            return await self._end(task, TaskEnd.FAIL, outage.what, steps)
        details = {"code": outage.code, "task": task.id}
        _log.warning("task waits: %s; trying again in %g s", outage.what, wait / 1000, extra=details)
        await self._end(task, TaskEnd.RELEASE, outage.what, steps, ready_at=now + wait)
        return "pending"

    async def _end(self, task: Task, how: TaskEnd, text: str, steps: StepLog, *, ready_at: int = 0) -> str:
        """End the run; "" when the task has another owner, or was cancelled."""
        if how is TaskEnd.RETRY:
            ready_at = self._around.clock.due_ms() + self._patience.wait_ms(task.attempts)
        deferred = how is TaskEnd.RELEASE and ready_at > 0
        end = replace(self._ended(task, how, text, steps), ready_at=ready_at, deferred=deferred)
        return await self._around.store.apply(end)

    def _ended(self, task: Task, how: TaskEnd, text: str, steps: StepLog) -> EndTask:
        around = self._around
        notice = reply.ReplyDraft(around.ids.next(), render_owner_notice(task, how, text), notice=True)
        return EndTask(task.id, task.fence, how, around.clock.now_ms(), text, usage=steps.usage, notice=notice)

    def _kept(self, task: Task) -> AbstractAsyncContextManager[None]:
        """Hold the lease while the block runs; the block is cancelled and LeaseLost raised when it is lost."""
        operations, clock, limits = self._around.store, self._around.clock, self._limits

        async def renew() -> bool:
            return await operations.apply(RenewTask(task.id, task.fence, clock.steady_ms() + limits.lease_ms))

        renewed = partial(renewing, clock, limits.renew_ms, renew, taken=asyncio.Event())
        return cancelled_when_lost(show("task", task.id), renewed)

    async def stop(self, patience_s: float) -> None:
        """Let running tasks end; those that take too long are given back, uncharged."""
        self._stopping = True
        if running := list(self._running.values()):
            await asyncio.wait(running, timeout=patience_s)
        for one in running:
            one.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def render_owner_notice(task: Task, how: TaskEnd, text: str) -> str:
    """Return the notice to the owner about the end of a task, for tasks whose terms ask for one."""
    name = show("task", task.id)
    by = f" ({task.rule})" if task.rule else ""
    if how is TaskEnd.COMPLETE:
        return cut(f"Task {name}{by} is completed: {text}", _TOLD_CHARS_MAX)
    if how is TaskEnd.PARK:
        return cut(f"Task {name}{by} needs your word: {text}. /approve {name} or /reject {name}", _TOLD_CHARS_MAX)
    return cut(f"Task {name}{by} failed: {text}. keepsaid inbox tasks show {name}", _TOLD_CHARS_MAX)


async def make_call(
    tools: Callable[[], Sequence[model.Tool]], story: TaskStory, _named: Mapping[str, Task], steps: StepLog
) -> worker.WorkerResult:
    """Make the one call of a task, with exactly the arguments that were approved.

    It is recorded as a step: a call that must not be repeated and has no result waits for a person again. Raises
    TaskImpossible where the tool is gone, NeedsReview, and LeaseLost.
    """
    call = authorization.call_of(story.task)
    if (tool := next((one for one in tools() if one.name == call.name), None)) is None:
        raise errors.TaskImpossible(f"the tool {call.name} of {show('task', story.task.id)} is not there any more")

    async def make(begun: Begun) -> tuple[str, turn.Usage]:
        await begun()
        return cut(normalise(str(await call_tool(tool, call.arguments))), tool.chars_max), turn.Usage()

    what = digest(call.name, call.arguments)
    output = await steps.once(OutsideCall(turn.StepKind.TOOL, call.name, what, tool.kind in REPEATABLE), make)
    return worker.WorkerResult(str(output))


@frozen
class Expiry:
    """Ends what waited for the owner's approval longer than it may."""

    store: Store
    clock: runtime.Clock

    async def work(self) -> int | None:
        """Fail what is overdue; returns when the next is (milliseconds UTC), None when nothing waits."""
        due, now = await self.store.tasks.next_expiry(), self.clock.now_ms()
        if due is None or due > now:
            return due
        await self.store.apply(ExpireTasks(now))
        return await self.store.tasks.next_expiry()


_relay_log = logging.getLogger("keepsaid.task")
_TOLD_MAX = 500
_CHARS_MAX = 8_000
_ABOUT_CHARS = 200
_PRIORITY = 50
"""After people, as webhooks."""


@frozen
class RelayTerms:
    """Results of a lane are collected for `debounce_ms` after the last of them, and for `wait_ms_max` at most.

    They are delivered at most `rounds_max` times between two messages of a person in the lane.
    """

    rounds_max: int = 3
    debounce_ms: int = 500
    wait_ms_max: int = 2_000


@frozen
class ResultRelay:
    """Reports the results of side work to their lanes."""

    operations: store_views.Operations
    view: store_views.TaskView
    clock: runtime.Clock
    receive: Callable[[Inbound], Awaitable[commits.Received]]
    terms: RelayTerms
    fence: Fence = UNKEYED

    async def work(self) -> int | None:
        """Tell what is due; returns when the next is (milliseconds UTC)."""
        next_at: int | None = None
        for lane in await self.view.list_unreported_tasks(_TOLD_MAX):
            if lane.rounds >= self.terms.rounds_max:
                continue
            due, now = self._due_at(lane), self.clock.due_ms()
            # what ended further ahead ended by a clock that was set back since
            if now < due <= now + self.terms.wait_ms_max:
                next_at = due if next_at is None else min(due, next_at)
            else:
                await self._tell(lane)
        return next_at

    def _due_at(self, lane: relay.UnreportedTasks) -> int:
        ended = [task.ended_at or 0 for task in lane.tasks]
        return min(max(ended) + self.terms.debounce_ms, min(ended) + self.terms.wait_ms_max)

    async def _tell(self, lane: relay.UnreportedTasks) -> None:
        for task in lane.tasks:
            try:
                await self.receive(build_report(task, lane, relay.trust_of(await self.view.task(task.id)), self.fence))
            except errors.InputError as refusal:
                extra = {"code": refusal.code, "task": task.id}
                _relay_log.warning("a result cannot be delivered to its lane: %s", refusal.what, extra=extra)
        runtime.point("relay.received")
        await self.operations.apply(relay.MarkTasksReported(tuple(task.id for task in lane.tasks), self.clock.now_ms()))


def build_report(task: Task, untold: relay.UnreportedTasks, trust: Trust, fence: Fence) -> Inbound:
    """Return the result of a task as a message of its lane; its text is marked as data."""
    lane, name = untold.lane, ids.show("task", task.id)
    kind = str(task.kind)
    about = cut(" ".join(task.description.split()), _ABOUT_CHARS)
    began = "asked for" if task.kind is route.TaskKind.CALL else "started"
    head = f"{name}, a {kind} you {began}, has {'ended' if task.state == 'completed' else 'failed'}."
    what, said = ("what it came to", task.result) if task.state == "completed" else ("why it failed", task.reason)
    text = "\n".join((head, *fence.data("what it was about", about), *fence.data(what, cut(said, _CHARS_MAX))))
    origin = Origin(lane.channel, lane.account, lane.conversation, SYSTEM, kind, untold.direct, trust)
    content = Content(json.dumps({"task": name, "state": task.state}).encode(), text, RESULT)
    return Inbound(origin, content, ProviderMarks(relay.mark_of(task)), _PRIORITY, reply_url=untold.url, key=lane.key)
