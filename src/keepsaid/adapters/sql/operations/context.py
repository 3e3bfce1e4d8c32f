"""The context of a lane: the summary in force and the records after it, and copies of summaries for memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from keepsaid.adapters.sql.operations import rows, sessions
from keepsaid.adapters.sql.operations.journal import write_facts
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.query import SqlSession, every, every_replaced, load, one, only, run, scalar
from keepsaid.domain import context as domain
from keepsaid.domain import event, prompt, turn, visibility
from keepsaid.domain.compaction import CutContext, CutReason, SummariesCopied, Summarise, SummaryFailed
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.session import SessionEnd

SQL = load("context")


class _Head(NamedTuple):
    """The head of a lane's context, with the last position of its transcript."""

    version: int
    summarised_until: int
    floor: int
    left_out: int
    summary: int | None
    last: int
    attempts: int
    next_at: int
    changed_at: int

    @property
    def covered(self) -> int:
        return max(self.summarised_until, self.floor)


def context(db: SqlSession, lane: Lane, limit: int) -> domain.LaneTail:
    lane_id = lane_id_of(db, lane)
    if lane_id is None:
        return domain.LaneTail()
    head = _head(db, lane_id)
    found = every_replaced(db, SQL["tail"], (lane_id, head.covered, max(0, limit)))[::-1]
    while found and found[0][0] == prompt.Role.TOOL:
        found.pop(0)
    posted = every(db, SQL["posted"], (lane_id, head.covered, head.floor, head.changed_at, domain.POSTS_MAX))
    posts = tuple(domain.SchedulePost(after, text, Trust(trust or Trust.EXTERNAL)) for after, text, trust in posted)
    used = only(db, SQL["used"], (lane_id, head.changed_at))[0]
    recent = turn.Recent(rows.records(db, lane_id, found), tuple(row[6] for row in found))
    summary = None if head.summary is None else _summary(db, lane_id, head.summary)
    covered = (head.summarised_until, head.floor, head.version, head.left_out)
    ends = (head.last, head.attempts, head.next_at, used)
    return domain.LaneTail(recent, tuple(row[7] for row in found), summary, *covered, *ends, posts=posts)


def span(db: SqlSession, lane: Lane, after: int, limit: int) -> domain.TranscriptSpan:
    lane_id = lane_id_of(db, lane)
    if lane_id is None:
        return domain.TranscriptSpan((), ())
    found = every_replaced(db, SQL["span"], (lane_id, after, max(0, limit)))
    return domain.TranscriptSpan(rows.records(db, lane_id, found), tuple(row[7] for row in found))


def past(db: SqlSession, lane: Lane) -> tuple[domain.DroppedSpan, ...]:
    return tuple(domain.DroppedSpan(*row) for row in every(db, SQL["past"], (lane_id_of(db, lane),)))


def _head(db: SqlSession, lane_id: int) -> _Head:
    return _Head(*only(db, SQL["head"], (lane_id,)))


def _summary(db: SqlSession, lane_id: int, version: int) -> domain.Summary | None:
    row = one(db, SQL["summary"], (lane_id, version))
    if row is None or db.altered("lane_summary", [version], lane_id):
        return None
    trust = rows.trust_of(row[7]) or _trust_between(db, lane_id, 1, row[2])
    return replace(summary_of(row[:7]), trust=trust)


def _trust_between(db: SqlSession, lane_id: int, first: int, last: int) -> Trust:
    """The least trust of the records between two positions."""
    found = every(db, SQL["trusts_between"], (lane_id, first, last))
    said = (prompt.Record(prompt.Role(role), "", speaker=by, trust=rows.trust_of(trust)) for role, by, trust in found)
    return visibility.least_of(said)


def summary_of(row: Sequence[Any]) -> domain.Summary:
    """A row of the statements that read summaries: version, first, last, text, kind, model, created_at."""
    return domain.Summary(*(*row[:4], domain.Made(row[4]), *row[5:7]))


def summarise(db: SqlSession, commit: Summarise) -> bool:
    if (place := _movable(db, commit)) is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))
    before = None if head.summary is None else _summary(db, lane_id, head.summary)
    earlier = [before.trust] if before is not None and before.trust else []
    trust = visibility.least([_trust_between(db, lane_id, first, commit.last), *earlier])
    made = (commit.text, str(commit.made), commit.model, commit.at)
    db.execute(SQL["keep_summary"], (lane_id, version, first, commit.last, *made, *said, str(trust)))
    db.execute(SQL["set_head"], (lane_id, version, commit.last, head.floor, head.left_out, version, commit.at))
    db.execute(SQL["copy_due"], (lane_id, version))
    sessions.rotate(db, lane_id, SessionEnd.COMPACTION, commit.at)
    write_facts(db, commit.at, event.compacted(commit.lane, str(commit.made), (version, first, commit.last, said[0])))
    return True


def cut(db: SqlSession, commit: CutContext) -> bool:
    if (place := _movable(db, commit)) is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))[0]
    reset = commit.why is CutReason.RESET
    db.execute(SQL["keep_cut"], (lane_id, version, first, commit.last, str(commit.why), said, commit.at))
    kept = (0, None) if reset else (head.left_out + said, head.summary)
    db.execute(SQL["set_head"], (lane_id, version, head.summarised_until, commit.last, *kept, commit.at))
    if reset:
        sessions.rotate(db, lane_id, SessionEnd.RESET, commit.at)
    else:
        sessions.mark(db, lane_id, head.last, "compaction", commit.at)
    write_facts(db, commit.at, event.compacted(commit.lane, str(commit.why), (version, first, commit.last, said)))
    return True


def begin_anew(db: SqlSession, lane_id: int, lane: Lane, at: int) -> None:
    """End a lane's context where its transcript ends."""
    head = _head(db, lane_id)
    cut(db, CutContext(lane, head.version, head.last, CutReason.RESET, at))


def summary_failed(db: SqlSession, commit: SummaryFailed) -> bool:
    lane_id = lane_id_of(db, commit.lane)
    if lane_id is None or (head := _head(db, lane_id)).version != commit.seen:
        return False
    db.execute(SQL["set_failed"], (lane_id, commit.error, commit.next_at, commit.at))
    failure: dict[str, prompt.Json] = {"version": commit.seen, "attempts": head.attempts + 1, "error": commit.error}
    write_facts(db, commit.at, event.Fact("lane.summary_failed", "", {"lane": list(commit.lane), **failure}))
    return True


def _movable(db: SqlSession, commit: Summarise | CutContext) -> tuple[int, _Head] | None:
    """The lane and its head, if the head is the one that was seen and may move to where the commit wants it."""
    lane_id = lane_id_of(db, commit.lane)
    if lane_id is None or (head := _head(db, lane_id)).version != commit.seen or commit.last > head.last:
        return None
    reset = isinstance(commit, CutContext) and commit.why is CutReason.RESET
    if commit.last < head.covered or (commit.last == head.covered and not reset):
        return None
    follows = scalar(db, SQL["role_at"], (lane_id, commit.last + 1))
    return None if follows == prompt.Role.TOOL else (lane_id, head)


def due(db: SqlSession, limit: int) -> Sequence[domain.LaneSummary]:
    found = every(db, SQL["copies_due"], (limit, rows.OWN_TOOLS))
    return [domain.LaneSummary(Lane(*row[:4]), _trusted(row[4:11], row[12]), external=bool(row[11])) for row in found]


def of_conversation(db: SqlSession, lane: Lane, keep: int) -> Sequence[domain.LaneSummary]:
    found = every(db, SQL["of_conversation"], (*lane[:3], keep, rows.OWN_TOOLS))
    return [
        domain.LaneSummary(Lane(*lane[:3], key), _trusted(made, trust), messages, chars, bool(external), bool(left))
        for key, *made, messages, chars, external, left, trust in found
    ]


def _trusted(row: Sequence[Any], trust: str) -> domain.Summary:
    return replace(summary_of(row), trust=rows.trust_of(trust))


def copied(db: SqlSession, commit: SummariesCopied) -> int:
    return sum(run(db, SQL["copied"], (lane_id_of(db, lane), version)) for lane, version in commit.copies)
