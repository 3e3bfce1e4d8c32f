"""The outbox: replies in order per conversation, each sent under a fence; steps around every outside call."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic_core import PydanticSerializationError, to_json

from keepsaid.adapters.sql.operations import journal, reply_parts, rows
from keepsaid.adapters.sql.query import JointStatement, Row, SqlSession, every, load, one, only, run, scalar
from keepsaid.domain import effects, event, states
from keepsaid.domain.commits import Decide, Doubt, MarkReplyShown, Resend, Settle, StepEnd, StepStart, TakeReplies
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import IN_DOUBT, SENT_AGAIN, Delivered, ReplyDraft, StoredReply, accepted, address

STAGING = load("staging")


def stage(db: SqlSession, request: effects.StageMemory, turn_id: int) -> None:
    """Write down a memory request of a turn, or of a branch under its own id."""
    run(db, STAGING["stage"], (turn_id, request.n, effects.written(request)))


def staged(db: SqlSession, turn_id: int | None) -> tuple[effects.StageMemory, ...]:
    """The memory requests of a turn that are not known to be done, in order."""
    return staged_in(every(db, STAGING["staged"], (turn_id,)))


def staged_in(found: Sequence[Row]) -> tuple[effects.StageMemory, ...]:
    """The memory requests in rows of the statement `staged`."""
    return tuple(effects.read_back(deed) for (deed,) in found)


def forget_staged(db: SqlSession, turn_id: int) -> int:
    """Delete the memory requests of a turn; returns how many there were."""
    return run(db, STAGING["forget_staged"], (turn_id,))


def done(db: SqlSession, batch_id: int) -> None:
    """Delete the memory requests of the turn that answered a batch, before its episode work is cleared."""
    db.post(STAGING["done"], (batch_id,))


STEPS = load("turns")
TASKS = load("tasks")


def start_step(db: SqlSession, commit: StepStart) -> bool:
    step = commit.step
    of_turn, known = _stand_of(db, commit, step.n)
    if (not of_turn and not _held_task(db, commit)) or known == "finished":
        return False
    if commit.trace is not None:
        packed = zlib.compress(trace_bytes(commit.trace), 1)
        db.post(STEPS["keep_trace"], (commit.turn_id, packed, commit.at))
    if known is None:
        bound = (commit.turn_id, step.n, str(step.kind), step.subject, step.input_hash, step.repeatable, commit.at)
        db.post(STEPS["start_step"], bound)
        return True
    db.post(STEPS["start_again"], (commit.turn_id, step.n, step.input_hash, step.subject, step.repeatable))
    return True


def end_step(db: SqlSession, commit: StepEnd) -> bool:
    of_turn, known = _stand_of(db, commit, commit.n)
    if not of_turn and not _held_task(db, commit):
        return False
    return finish_step(db, commit, known, of_task=not of_turn)


def finish_step(db: SqlSession, commit: StepEnd, known: str | None, *, of_task: bool = False) -> bool:
    """Write the end of a step whose state is known."""
    if known is None:
        return False
    result, usage = (states.move("step", known, "finish"), _json(commit.output)), commit.usage
    costs = (usage.tokens_in, usage.tokens_out, usage.cost_micros, commit.at)
    db.post(STEPS["end_step"], (commit.turn_id, commit.n, *result, *costs))
    if of_task:
        db.post(TASKS["went_on"], (commit.turn_id,))
    return True


def _stand_of(db: SqlSession, commit: StepStart | StepEnd, n: int) -> tuple[bool, str | None]:
    """Whether the turn is held, and the state of its step."""
    held = JointStatement(STEPS["held_turn"], (commit.turn_id, commit.fence))
    found, known = db.ask(held, JointStatement(STEPS["step_state"], (commit.turn_id, n)))
    return bool(found), known[0][0] if known else None


def _held_task(db: SqlSession, commit: StepStart | StepEnd) -> bool:
    """A step of a task has the id of the task for its turn."""
    return one(db, TASKS["held"], (commit.turn_id, commit.fence)) is not None


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def trace_bytes(trace: Json) -> bytes:
    """A trace as JSON. It is the longest text of a turn: what is plain is written by what takes a third of the time."""
    try:
        return to_json(trace, inf_nan_mode="constants")
    except PydanticSerializationError:
        return _json(trace).encode("utf-8", "backslashreplace")  # half of a surrogate pair stands in it


SQL = load("outbox")
_DIED = "the process died while sending it"
_DAMAGED = "what is on disk of it is not what was stored: keepsaid doctor --deep"
_FINAL = (Delivered.CONFIRMED, Delivered.DEAD, Delivered.REFUSED)


def keep_reply(
    db: SqlSession, lane_id: int, made_by: tuple[int | None, int | None], draft: ReplyDraft, at: int
) -> None:
    """Put a reply in the outbox of its lane's conversation; `made_by` is its turn and batch."""
    content = (draft.notice, draft.text, draft.url, draft.reply_to)
    db.post(SQL["keep"], (draft.id, lane_id, *made_by, *content, at))


def keep_for_owner(db: SqlSession, draft: ReplyDraft, at: int, about_task: int | None = None) -> bool:
    """Put a notice where the owner last wrote in a direct chat; False if none. It is deleted with `about_task`."""
    if (lane_id := scalar(db, SQL["owner_lane"])) is None:
        return False
    keep_reply(db, lane_id, (None, None), replace(draft, notice=True), at)
    if about_task is not None:
        db.post(SQL["about"], (draft.id, about_task))
    return True


def keep_for_task(db: SqlSession, task_id: int, draft: ReplyDraft, at: int) -> bool:
    """Put a reply in the conversation of a task, addressed as the newest messages it was made of; False if none.

    It is deleted with the task.
    """
    if (lane_id := scalar(db, SQL["lane_of_task"], (task_id,))) is None:
        return False
    batch_id = scalar(db, SQL["batch_of_task"], (task_id,))
    url, reply_to = (None, None) if batch_id is None else address(rows.messages_of(db, batch_id))
    keep_reply(db, lane_id, (None, None), replace(draft, url=url, reply_to=reply_to), at)
    db.post(SQL["about"], (draft.id, task_id))
    return True


def keep_notices(db: SqlSession, batches: Sequence[int], draft: ReplyDraft, reply_ids: Iterator[int], at: int) -> None:
    """Store the notice about a batch for its conversation, addressed to its newest reply URL.

    The others among `batches` had joined it: each with another reply address gets the notice too.
    """
    notified = {_keep_notice(db, batches[0], draft, at)}
    for batch_id in batches[1:]:
        url, _ = address(rows.messages_of(db, batch_id))
        if url not in notified and (reply_id := next(reply_ids, None)) is not None:
            notified.add(_keep_notice(db, batch_id, ReplyDraft(reply_id, draft.text, notice=True), at))


def _keep_notice(db: SqlSession, batch_id: int, draft: ReplyDraft, at: int) -> str | None:
    lane_id = only(db, SQL["lane_of_batch"], (batch_id,))[0]
    url, reply_to = address(rows.messages_of(db, batch_id))
    placed = ReplyDraft(draft.id, draft.text, True, draft.url or url, draft.reply_to or reply_to)
    keep_reply(db, lane_id, (None, batch_id), placed, at)
    return placed.url


def take(db: SqlSession, commit: TakeReplies) -> tuple[StoredReply, ...]:
    """Take the first unsettled reply of each conversation that is due."""
    due = every(db, SQL["next_replies"], (commit.at, json.dumps(commit.channels), commit.limit))
    damaged = db.altered("reply", [reply_id for reply_id, _ in due])
    for reply_id, state in due:
        db.post(SQL["take"], (reply_id, states.move("reply", state, "take"), commit.owner))
        _keep_move(db, reply_id, "take", commit.at)
        if reply_id in damaged:
            _settle(db, "sending", Settle(reply_id, 0, Delivered.DEAD, commit.at, _DAMAGED))
    sendable = [reply_id for reply_id, _ in due if reply_id not in damaged]
    tries = {row[0]: row[1:] for row in every(db, SQL["tries"], (db.numbers(sendable), _DIED))} if sendable else {}
    taken = [rows.reply(row) for reply_id in sendable for row in every(db, rows.SQL["reply"], (reply_id,))]
    whole = rows.with_files(db, taken)
    return tuple(replace(one, doubts=tries[one.id][0], tried_from=tries[one.id][1]) for one in whole)


def _keep_move(db: SqlSession, reply_id: int, verb: str, at: int, detail: str = "") -> None:
    db.post(SQL["keep_move"], (reply_id, verb, at, detail))


def settle(db: SqlSession, commit: Settle) -> bool:
    if is_held := scalar(db, SQL["held"], (commit.reply_id, commit.fence)) == "sending":
        _settle(db, "sending", commit)
    return is_held


def _settle(db: SqlSession, state: str, commit: Settle) -> None:
    ended_at = commit.at if commit.outcome in _FINAL else None
    columns = (commit.retry_at, commit.detail, commit.provider_id, ended_at, False)
    _move(db, (commit.reply_id, state, commit.outcome), columns, commit.at)


def _move(db: SqlSession, reply: tuple[int, str, str], columns: tuple[object, ...], at: int) -> None:
    """Move a reply, given as id, state and verb; `columns` are: next try, detail, provider's id, end, sent again."""
    reply_id, before, verb = reply
    bound = (reply_id, states.move("reply", before, verb), *columns)
    for _, state, turn_id, batch_id, tries in every(db, SQL["settle"], bound):
        journal.write_facts(db, at, event.replied(reply_id, state, (turn_id, batch_id), tries))
    _keep_move(db, reply_id, verb, at, str(columns[1]))
    if before == "sending":
        reply_parts.end_try(db, reply_id, verb)


def doubt(db: SqlSession, commit: Doubt) -> int:
    """Replies whose sender died may have arrived; the try is not charged to them."""
    found = every(db, SQL["sending_elsewhere"], (commit.owner,))
    for reply_id, state in found:
        db.post(SQL["uncharge"], (reply_id,))
        _move(db, (reply_id, state, "doubt"), (0, _DIED, None, None, False), commit.at)
    if scalar(db, SQL["lives_beside"], (commit.owner,)) is None:
        db.post(SQL["due_now"], (commit.at,))
    return len(found)


def resend(db: SqlSession, commit: Resend) -> int:
    found = every(db, SQL["unknown"], (commit.at,))
    for reply_id, state, channel in found:
        if channel in commit.without_resend:
            _move(db, (reply_id, state, "bury"), (commit.at, IN_DOUBT, None, commit.at, False), commit.at)
        else:
            _move(db, (reply_id, state, "resend"), (commit.at, SENT_AGAIN, None, None, True), commit.at)
    return len(found)


def shown(db: SqlSession, commit: MarkReplyShown) -> bool:
    if scalar(db, SQL["state"], (commit.reply_id,)) != "pending":
        return False
    columns = (0, "pulled", commit.provider_id, commit.at, False)
    _move(db, (commit.reply_id, "pending", "show"), columns, commit.at)
    return True


def decide(db: SqlSession, commit: Decide) -> bool:
    decided = ("dead",) if commit.again else ("dead", "pending")
    if (row := one(db, SQL["state"], (commit.reply_id,))) is None or row[0] not in decided:
        return False
    if commit.again:
        db.post(SQL["send_again"], (commit.reply_id, states.move("reply", row[0], "requeue"), commit.at))
        _keep_move(db, commit.reply_id, "requeue", commit.at)
    else:
        _move(db, (commit.reply_id, row[0], "refuse"), (0, accepted(row[1]), None, commit.at, False), commit.at)
    return True
