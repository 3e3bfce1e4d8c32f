"""Relay: the results of the agent's own side work come back to their lanes, as messages (seed 001; design: 4.4).

What a rule spawned never does. A message is received before its task is marked: one that is tried again is a duplicate.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable

from keepsaid.domain import commits, ids, relay
from keepsaid.domain.message import RESULT, SYSTEM, Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.task import Task
from keepsaid.domain.trust import UNKEYED, Fence
from keepsaid.domain.work import TaskKind
from keepsaid.errors import InputError
from keepsaid.ports import failpoints, runtime, store_views
from keepsaid.text.normal import cut
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.task")
_TOLD_MAX = 500
_CHARS_MAX = 8_000
_ABOUT_CHARS = 200
_PRIORITY = 50
"""After people, as webhooks."""


@frozen
class RelayTerms:
    """Results of a lane are collected for `debounce_ms` after the last of them, and for `wait_ms_max` at most.

    They are told `rounds_max` times since a person last said something in the lane.
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
            ended, now = [task.ended_at or 0 for task in lane.tasks], self.clock.due_ms()
            due = min(max(ended) + self.terms.debounce_ms, min(ended) + self.terms.wait_ms_max)
            # what ended further ahead ended by a clock that was set back since
            if now < due <= now + self.terms.wait_ms_max:
                next_at = due if next_at is None else min(due, next_at)
            else:
                await self._tell(lane)
        return next_at

    async def _tell(self, lane: relay.UnreportedTasks) -> None:
        for task in lane.tasks:
            try:
                await self.receive(build_report(task, lane, relay.trust_of(await self.view.task(task.id)), self.fence))
            except InputError as refusal:
                extra = {"code": refusal.code, "task": task.id}
                _log.warning("a result cannot be told in its lane: %s", refusal.what, extra=extra)
        failpoints.point("relay.received")
        await self.operations.apply(relay.MarkTasksReported(tuple(task.id for task in lane.tasks), self.clock.now_ms()))


def build_report(task: Task, untold: relay.UnreportedTasks, trust: Trust, fence: Fence) -> Inbound:
    """Return the result of a task as a message of its lane; its text is marked as data."""
    lane, name = untold.lane, ids.show("task", task.id)
    kind = str(task.kind)
    about = cut(" ".join(task.description.split()), _ABOUT_CHARS)
    began = "asked for" if task.kind is TaskKind.CALL else "started"
    head = f"{name}, a {kind} you {began}, has {'ended' if task.state == 'completed' else 'failed'}."
    what, said = ("what it came to", task.result) if task.state == "completed" else ("why it failed", task.reason)
    text = "\n".join((head, *fence.data("what it was about", about), *fence.data(what, cut(said, _CHARS_MAX))))
    origin = Origin(lane.channel, lane.account, lane.conversation, SYSTEM, kind, untold.direct, trust)
    payload = json.dumps({"task": name, "state": task.state}).encode()
    content = Content(payload, text, RESULT)
    return Inbound(origin, content, ProviderMarks(relay.mark_of(task)), _PRIORITY, reply_url=untold.url, key=lane.key)
