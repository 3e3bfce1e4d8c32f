"""Work of a life: tasks, among them one whose effect must not be repeated, and memories forgotten and restored."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from keepsaid.app.instance import Instance
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Kind, NewMemory, person_scope
from keepsaid.domain.message import ANSWERED, RECORDED, SYSTEM, Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.process import NotifyOwner
from keepsaid.domain.recorded_talk import recorded_key
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import NewTask, TaskFilter
from keepsaid.domain.views import MessageFilter
from keepsaid.errors import InputError
from keepsaid_testkit.crash.evidence import Evidence
from keepsaid_testkit.crash.fetching import BROUGHT

MINE = "mine"
"""The tool that serves its owner alone: whoever else has it called puts that before the owner."""

WORK = "work-"
"""How the keys of effects begin that tasks have."""

_SEEN_MAX = 100
_LEFT_TO_EXPIRE = 2
"""One of this many calls that wait for the owner is never approved."""

_ENDED = ("completed", "failed", "cancelled")


async def keep_busy(instance: Instance) -> None:
    """Decide what waits for a word, have tasks done that wait for each other, end one, and have one come back."""
    tasks = instance.services.tasks
    for task in await tasks.find(TaskFilter(state="needs_review", limit=_SEEN_MAX)):
        if task.kind is TaskKind.CALL and task.id % _LEFT_TO_EXPIRE == 0:
            continue
        await tasks.decide(task.id, approved=True, result="it was done before the end")
    mark = f"{WORK}{instance.ids.next()}"
    first = await tasks.create(NewTask(0, f"leave a mark [once:{mark}] [same:{mark}]", mark, outside=False))
    with suppress(InputError):  # the first may have come to nothing already
        await tasks.create(NewTask(0, f"go on after {{{{task:{mark}.result}}}}", outside=False, after=(first,)))
    last = await tasks.create(NewTask(0, "nobody needs this", outside=False))
    await tasks.run(last)
    await tasks.cancel(last, "nobody needs it")
    await tasks.decide(last, approved=False)
    lane = await lane_to_tell(instance)
    if lane is not None:
        await tasks.create(NewTask(0, "think it over", lane=lane, turn_id=last, outside=False, priority=1))
    now = instance.clock.now_ms()
    await instance.operations.apply(NotifyOwner(ReplyDraft(instance.ids.next(), "done", True), mark, now, now))


async def record_talk(instance: Instance) -> None:
    """Record what somebody said to another agent and what that answered, and the same once more."""
    number, lane = instance.ids.next(), recorded_key("elsewhere")
    origin = Origin("library", "another", "elsewhere", "ann", direct=True, trust=Trust.KNOWN)
    said = [
        Inbound(origin, Content(text.encode(), text, event), ProviderMarks(f"{BROUGHT}{number}-{event}"), key=lane)
        for event, text in ((RECORDED, f"question {number}"), (ANSWERED, f"answer {number}"))
    ]
    await instance.record(said)
    await instance.record(said)


async def lane_to_tell(instance: Instance) -> Lane | None:
    """Return the lane of the newest webhook that started a task; None before there is one.

    A lane receives a few results only since somebody else last wrote in it. The lane of the newest task would often be
    one in which nobody writes any more, because the task that is made here is itself the newest soon.
    """
    stories = await instance.operations.find(MessageFilter(channel="github", limit=_SEEN_MAX))
    return next((one.message.lane for one in stories if one.task and one.message.inbound.origin.sender != SYSTEM), None)


def check_task_ends(seen: Evidence) -> Iterator[str]:
    """Every task has ended with one event for its end, or waits for review with none."""
    for number, (state, told) in seen.tasks.items():
        if state not in (*_ENDED, "needs_review"):
            yield f"once: task {number} is {state} at the end"
        if told != (state in _ENDED):
            yield f"once: task {number} is {state}, and {told} ends of it are published"


_LONG_MS = 3_600_000
_SCOPE = person_scope("nowhere:default:undone")


async def undo(instance: Instance) -> None:
    """Forget two things; restore one, drop the other. Neither is published."""
    back, gone = await _forgotten(instance, _LONG_MS), await _forgotten(instance, 1)
    if back:
        await instance.forgetter.undo(back)
        await instance.forgetter.finish(back)
    if gone:
        await instance.forgetter.purge()


async def _forgotten(instance: Instance, undo_ms: int) -> int:
    """The number of a request to forget something that was just remembered, worked off; 0 for none."""
    number, now = instance.ids.next(), instance.clock.now_ms()
    told = NewMemory(f"undone:{number}", Kind.FACT, f"to be undone, number {number}", _SCOPE, Trust.OWNER, said_at=now)
    kept = await instance.memories.keep([told], told.said_at)
    begun = await instance.forgetter.forget(ForgetSelector(kept), "the play", undo_ms)
    if begun is None:
        return 0
    await instance.forgetter.finish(begun.id)
    return begun.id
