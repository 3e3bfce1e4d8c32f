"""Leading: a life does at once what leads to the points it is to die at, so that nobody waits for its owner or a day.

Each step asks of the instance what people ask of it, in the stores as the load left them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

from keepsaid.app.instance import Instance
from keepsaid.domain.commits import RecordFeedback
from keepsaid.domain.line import Cursor
from keepsaid.domain.memory import OWNER
from keepsaid.domain.pairing import CODE_MS, LetIn, SendCode, ShutOut, code_of
from keepsaid.domain.receipt import JudgeMemory
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.reply_parts import NoteUndelivered
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import NewTask
from keepsaid.domain.views import MessageFilter
from keepsaid.domain.visibility import Identity
from keepsaid_testkit.crash.evidence import numbers
from keepsaid_testkit.crash.fetching import FILES, fetch_files
from keepsaid_testkit.crash.load_requests import CHAT
from keepsaid_testkit.crash.schedules import exercise_schedules
from keepsaid_testkit.crash.subscribers import subscribe_briefly
from keepsaid_testkit.crash.working import MINE, keep_busy, record_talk, undo

_PIECE_MS = 100.0
_SEEN_MAX = 60

Step = Callable[[Instance], Awaitable[object]]

TEACHING = (
    "commit.KeepMemories.",
    "commit.Learn.",
    "commit.Correct.",
    "commit.Pin.",
    "commit.Confirm.",
    "commit.Merge.",
    "commit.ArchiveMemories.",
    "commit.UndoMemory.",
    "commit.TakeIn.",
    "commit.RulePairs.",
    "commit.Relate.",
    "commit.MergeEntities.",
    "commit.JoinPeople.",
    "commit.SplitPerson.",
    "commit.ShareMemory.",
)
"""Where a life dies that learns from what it keeps."""

_FORGETTING = (
    "commit.RequestForgetting.",
    "commit.HideMemories.",
    "commit.ScrubForgotten.",
    "commit.EraseMemories.",
    "commit.MoveForgetting.",
    "commit.PutBack.",
    "commit.PutBackMemories.",
    "commit.DropUndo.",
    "commit.DropMemoryUndo.",
)
EXPIRING = "commit.ExpireTasks."
STABLE = "commit.RequeueCrashed."


def leads_to(aims: Iterable[str], begins: str | tuple[str, ...]) -> bool:
    """Return whether a life that is to die at one of `aims` has to come to a point that begins so.

    A life without aims, which is killed at any moment, comes to all of them.
    """
    wanted = tuple(aims)
    return not wanted or any(point.startswith(begins) for point in wanted)


async def lead_first(instance: Instance, aims: Iterable[str]) -> None:
    """Take the steps that have to come before anything else is at work: forgetting waits for turns that run."""
    if any(point.startswith(_FORGETTING) for point in aims):
        await undo(instance)


async def lead(instance: Instance, aims: Iterable[str]) -> None:
    """Take the other steps that lead to the points, all at once."""
    wanted = tuple(aims)
    steps = [step(instance) for begins, step in _STEPS if any(point.startswith(begins) for point in wanted)]
    await asyncio.gather(*steps)


async def ask_too_late(instance: Instance) -> None:
    """Put a call before the owner that cannot be approved any more."""
    ids, now = instance.ids, instance.clock.now_ms()
    call = f'{MINE} {{"key": "late-{ids.next()}"}}'
    await instance.services.tasks.create(NewTask(0, call, kind=TaskKind.CALL, review="it is too late", expires_at=now))


async def _found(instance: Instance, *statements: str) -> Sequence[list[int]]:
    """The first columns of statements of `evidence.sql`; none while the store cannot be read."""
    found = await asyncio.to_thread(numbers, instance.home.data.parent, *statements)
    return found or [[] for _ in statements]


async def _judge(instance: Instance) -> None:
    turns, memories = await _found(instance, "shown_turn", "shown_memory")
    for turn, memory in zip(turns, memories, strict=True):
        for verb in ("mark", "withdraw"):
            word = JudgeMemory(turn, memory, OWNER, verb)
            await instance.operations.apply(RecordFeedback(word, instance.clock.now_ms()))


async def _prune(instance: Instance) -> None:
    await instance.pruner.run(_PIECE_MS)


async def _maintain(instance: Instance) -> None:
    await instance.maintenance.run(_PIECE_MS)


async def _collect(instance: Instance) -> None:
    parked, unread = await _found(instance, "parked_sessions", "unread_sessions")
    for session in parked:
        await instance.collecting.requeue(session)
    for session in unread:
        await instance.collecting.mark(session)
    await instance.collecting.mark()


async def _decide(instance: Instance) -> None:
    dead, done, unseen, undelivered = await _found(instance, "dead", "done", "unseen", "undelivered")
    for batch in done:
        await instance.services.inbox.drop(batch, "too late: it must stay done")
    for reply in unseen:
        await instance.services.inbox.mark_seen(reply)
    for reply in undelivered or (await _found(instance, "replied"))[0]:
        await instance.services.inbox.settle_reply(reply, again=False)
    for batch in dead[:1]:
        await instance.services.inbox.requeue(batch, "once more")


async def _decide_deliveries(instance: Instance) -> None:
    for delivery in (await _found(instance, "undelivered_events"))[0]:
        await instance.telling.decide(delivery, again=bool(delivery % 2))


async def _pair(instance: Instance) -> None:
    """Send a code to a stranger, let them in, and shut them out."""
    stories = await instance.operations.find(MessageFilter(channel="http", limit=1))
    for number, said in ((instance.ids.next(), one.message.id) for one in stories):
        who, now = Identity("http", "default", f"stranger-{number}"), instance.clock.now_ms()
        code = code_of(number)
        notice = ReplyDraft(number, f"your code is {code}", notice=True)
        await instance.operations.apply(SendCode(who, said, code, notice, now, now + CODE_MS))
        await instance.operations.apply(LetIn(now, code))
        await instance.operations.apply(ShutOut(who))


async def _read_on(instance: Instance) -> None:
    """Keep how far a channel was read."""
    await instance.extending.host.move_cursors("http", (Cursor("default", "seq", str(instance.ids.next())),))


async def _report(instance: Instance) -> None:
    """Note a report that a reply did not arrive; none is called so."""
    await instance.operations.apply(NoteUndelivered("http", "default", str(instance.ids.next()), "nobody is there"))


async def _compact(instance: Instance) -> None:
    """Summarise what is newest of the lanes in which somebody spoke last."""
    stories = await instance.operations.find(MessageFilter(channel="http", limit=_SEEN_MAX))
    for lane in dict.fromkeys(one.message.lane for one in stories):
        await instance.compactor.compact_on_request(lane)


async def _reset(instance: Instance) -> None:
    """End the context of the lane in which somebody spoke last, but not where questions are asked."""
    stories = await instance.operations.find(MessageFilter(channel="http", limit=_SEEN_MAX))
    lanes = [one.message.lane for one in stories if not one.message.lane.conversation.startswith(CHAT)]
    for lane in lanes[:1]:
        await instance.services.inbox.reset_lane(lane)


_STEPS: Sequence[tuple[str | tuple[str, ...], Step]] = (
    ("commit.RecordFeedback.", _judge),
    (("commit.BeginPruning.", "commit.Prune."), _prune),
    ("commit.Maintain.", _maintain),
    (
        (
            "commit.RequeueCollection.",
            "commit.Invalidate.",
            "commit.MarkUnprocessed.",
            "commit.ClaimCollection.",
            "commit.KeepFinding.",
            "commit.Collected.",
            "commit.CollectionFailed.",
            "finding.",
        ),
        _collect,
    ),
    (("commit.Requeue.", "commit.Drop.", "commit.MarkReplyShown.", "commit.Decide."), _decide),
    ("commit.DecideDelivery.", _decide_deliveries),
    (("commit.SendCode.", "commit.LetIn.", "commit.ShutOut."), _pair),
    ("commit.MoveCursors.", _read_on),
    ("commit.NoteUndelivered.", _report),
    ("commit.RecordTalk.", record_talk),
    (FILES, fetch_files),
    ("commit.CutContext.", _reset),
    (
        (
            "commit.Summarise.",
            "commit.SummaryFailed.",
            "commit.SummariesCopied.",
            "summary.",
            "summaries.",
        ),
        _compact,
    ),
    (("commit.Subscribe.", "commit.Unsubscribe."), subscribe_briefly),
    (
        (
            "commit.AddSchedule.",
            "commit.ReplaceSchedules.",
            "commit.FireSchedules.",
            "commit.RunNow.",
            "commit.BeginRun.",
            "commit.EndRun.",
            "commit.SettleRun.",
            "commit.MoveSchedule.",
        ),
        exercise_schedules,
    ),
    (
        (
            "commit.CreateTasks.",
            "commit.ClaimTasks.",
            "commit.RenewTask.",
            "commit.TellStatus.",
            "commit.EndTask.",
            "commit.CancelTask.",
            "commit.RunTask.",
            "commit.DecideTask.",
            "commit.MarkTasksReported.",
            "commit.NotifyOwner.",
            "relay.",
            "commit.ResultsKept.",
            "results.",
        ),
        keep_busy,
    ),
)
"""Beginnings of points, and what leads to them."""
