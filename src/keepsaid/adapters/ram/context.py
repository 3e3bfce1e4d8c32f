"""The context of a lane: the summary in force and the records after it, and the commits that move its head."""

from __future__ import annotations

from collections import defaultdict

from keepsaid.adapters.ram.context_row import ContextRow, CutRow
from keepsaid.adapters.ram.sessions import mark, rotate
from keepsaid.adapters.ram.state import Entry, LaneRow, State
from keepsaid.domain.compaction import Cut, CutContext, Summarise, SummaryFailed
from keepsaid.domain.context import POSTS_MAX, LaneTail, Post, Span, Stretch
from keepsaid.domain.fact import Fact, compacted
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Json, Role
from keepsaid.domain.session import Ending
from keepsaid.domain.summary import Summary
from keepsaid.domain.turn import NO_MODEL, Recent
from keepsaid.domain.visibility import least, least_of


def context(state: State, lane: Lane, limit: int) -> LaneTail:
    """The summary in force and the newest records after it."""
    row = state.lanes.get(lane)
    if row is None:
        return LaneTail()
    head = row.context
    told = _told(state, row, head.covered)
    tail = told[-limit:] if limit > 0 else []
    while tail and tail[0][1].record.role is Role.TOOL:
        tail = tail[1:]
    return LaneTail(
        recent=Recent(tuple(entry.trusted for _, entry in tail), tuple(entry.ref for _, entry in tail)),
        positions=tuple(at for at, _ in tail),
        summary=head.summary,
        summarised_until=head.summarised_until,
        floor=head.floor,
        version=head.version,
        left_out=head.left_out,
        head=len(row.transcript),
        attempts=head.attempts,
        next_at=head.next_at,
        used=_used(state, row),
        posts=_posts(state, row),
    )


def _posts(state: State, row: LaneRow) -> tuple[Post, ...]:
    """What was posted since; what was when the lane began anew left with its past."""
    head, between = row.context, defaultdict[int, list[Post]](list)
    for _, reply in sorted(state.replies.items()):
        at, is_gone = reply.posted_after, reply.state in ("dead", "not_deliverable") or not reply.draft.text
        if at is None or is_gone or reply.lane != row.lane or at < head.covered:
            continue
        if at != head.floor or reply.created_at > head.changed_at:
            between[at].append(Post(at, reply.draft.text, reply.trust))
    return tuple(post for at in sorted(between) for post in between[at][-POSTS_MAX:])


def _used(state: State, row: LaneRow) -> int:
    turns = [turn for turn in state.turns.values() if turn.batch.lane is row and turn.state == "committed"]
    last = max(turns, key=lambda turn: turn.id, default=None)
    if last is None or last.started_at < row.context.changed_at:
        return 0
    return max((step.usage.tokens_in for step in last.recorded), default=0)


def span(state: State, lane: Lane, after: int, limit: int) -> Span:
    """The oldest records after a position."""
    row = state.lanes.get(lane)
    told = _told(state, row, after)[: max(0, limit)] if row else []
    return Span(tuple(entry.trusted for _, entry in told), tuple(at for at, _ in told))


def past(state: State, lane: Lane) -> tuple[Stretch, ...]:
    """Every span that left the context."""
    row = state.lanes.get(lane)
    if row is None:
        return ()
    summed = [Stretch(one.version, one.first, one.last, str(one.made), one.created_at) for one in row.context.summaries]
    gone = [Stretch(one.version, one.first, one.last, str(one.why), one.at) for one in row.context.cuts]
    return tuple(sorted((*summed, *gone), key=lambda one: one.version))


def _told(state: State, row: LaneRow, after: int) -> list[tuple[int, Entry]]:
    return [(at, entry) for at, entry in enumerate(row.transcript, 1) if at > after and _is_told(state, entry)]


def _is_told(state: State, entry: Entry) -> bool:
    """Whether prompts show a record: not what the program said because no model was set."""
    turn = state.turns.get(entry.turn_id)
    silent = turn is not None and turn.model == NO_MODEL
    return not (entry.unprompted or (entry.record.role is Role.ASSISTANT and silent))


def summarise(state: State, commit: Summarise) -> bool:
    """Let a summary stand for a lane's records up to a position."""
    row = _movable(state, commit)
    if row is None:
        return False
    head, first = row.context, row.context.covered + 1
    before = [head.summary.trust] if head.summary is not None and head.summary.trust else []
    trust = least([least_of(entry.trusted for entry in row.transcript[first - 1 : commit.last]), *before])
    _move(head, commit.at)
    head.summarised_until = commit.last
    made = commit.text, commit.made, commit.model, commit.at
    head.summary = Summary(head.version, first, commit.last, *made, trust)
    head.summaries.append(head.summary)
    head.took[head.version] = _took(row, first, commit.last)
    state.summaries_due[commit.lane] = head.version
    rotate(state, row, Ending.COMPACTION, commit.at)
    span = head.version, first, commit.last, head.took[head.version][0]
    state.told(commit.at, compacted(commit.lane, str(commit.made), span))
    return True


def cut(state: State, commit: CutContext) -> bool:
    """Take a lane's records up to a position out of its context."""
    row = _movable(state, commit)
    if row is None:
        return False
    head, first = row.context, row.context.covered + 1
    said = _took(row, first, commit.last)[0]
    reset = commit.why is Cut.RESET
    _move(head, commit.at)
    head.floor = commit.last
    head.left_out = 0 if reset else head.left_out + said
    head.summary = None if reset else head.summary
    head.cuts.append(CutRow(head.version, first, commit.last, commit.why, said, commit.at))
    if reset:
        rotate(state, row, Ending.RESET, commit.at)
    else:
        mark(row, "compaction", commit.at)
    state.told(commit.at, compacted(commit.lane, str(commit.why), (head.version, first, commit.last, said)))
    return True


def _took(row: LaneRow, first: int, last: int) -> tuple[int, int]:
    """How many messages a span holds, and how many characters."""
    gone = row.transcript[first - 1 : last]
    said = [entry.record.text for entry in gone if entry.record.role is not Role.TOOL and not entry.unprompted]
    return len(said), sum(map(len, said))


def begin_anew(state: State, row: LaneRow, at: int) -> None:
    """End a lane's context where its transcript ends."""
    cut(state, CutContext(row.lane, row.context.version, len(row.transcript), Cut.RESET, at))


def summary_failed(state: State, commit: SummaryFailed) -> bool:
    """Record an attempt that came to nothing."""
    row = state.lanes.get(commit.lane)
    if row is None or row.context.version != commit.seen:
        return False
    head = row.context
    head.attempts, head.next_at, head.error = head.attempts + 1, commit.next_at, commit.error
    told: dict[str, Json] = {"version": commit.seen, "attempts": head.attempts, "error": commit.error}
    state.told(commit.at, Fact("lane.summary_failed", "", {"lane": list(commit.lane), **told}))
    return True


def _movable(state: State, commit: Summarise | CutContext) -> LaneRow | None:
    """The lane, if its head is the one that was seen and may move to where the commit wants it."""
    row = state.lanes.get(commit.lane)
    if row is None or row.context.version != commit.seen or commit.last > len(row.transcript):
        return None
    covered = row.context.covered
    reset = isinstance(commit, CutContext) and commit.why is Cut.RESET
    if commit.last < covered or (commit.last == covered and not reset):
        return None
    follows = row.transcript[commit.last : commit.last + 1]
    return None if any(entry.record.role is Role.TOOL for entry in follows) else row


def _move(head: ContextRow, at: int) -> None:
    head.version, head.changed_at = head.version + 1, at
    head.attempts, head.next_at, head.error = 0, 0, ""
