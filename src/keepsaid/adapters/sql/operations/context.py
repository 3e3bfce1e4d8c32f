"""The context of a lane: the summary in force and the records after it, and copies of summaries for memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.operations.journal import write_facts
from keepsaid.adapters.sql.operations.routing import lane_id_of
from keepsaid.adapters.sql.operations.sessions import mark, rotate
from keepsaid.adapters.sql.query import Row, SqlSession, every, every_replaced, load, one, only, run
from keepsaid.domain import context as domain
from keepsaid.domain.compaction import CutContext, CutReason, SummariesCopied, Summarise, SummaryFailed
from keepsaid.domain.event import Fact, compacted
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, Record, Role
from keepsaid.domain.session import SessionEnd
from keepsaid.domain.turn import Recent
from keepsaid.domain.visibility import least, least_of

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
    found = list(reversed(every_replaced(db, SQL["tail"], (lane_id, head.covered, max(0, limit)))))
    while found and found[0][0] == Role.TOOL:
        found.pop(0)
    posted = every(db, SQL["posted"], (lane_id, head.covered, head.floor, head.changed_at, domain.POSTS_MAX))
    return domain.LaneTail(
        recent=Recent(rows.records(db, lane_id, found), tuple(row[6] for row in found)),
        positions=tuple(row[7] for row in found),
        summary=None if head.summary is None else _summary(db, lane_id, head.summary),
        summarised_until=head.summarised_until,
        floor=head.floor,
        version=head.version,
        left_out=head.left_out,
        head=head.last,
        attempts=head.attempts,
        next_at=head.next_at,
        used=only(db, SQL["used"], (lane_id, head.changed_at))[0],
        posts=tuple(domain.SchedulePost(row[0], row[1], Trust(row[2] or Trust.EXTERNAL)) for row in posted),
    )


def span(db: SqlSession, lane: Lane, after: int, limit: int) -> domain.TranscriptSpan:
    lane_id = lane_id_of(db, lane)
    if lane_id is None:
        return domain.TranscriptSpan((), ())
    found = every_replaced(db, SQL["span"], (lane_id, after, max(0, limit)))
    return domain.TranscriptSpan(rows.records(db, lane_id, found), tuple(row[7] for row in found))


def past(db: SqlSession, lane: Lane) -> tuple[domain.DroppedSpan, ...]:
    lane_id = lane_id_of(db, lane)
    return () if lane_id is None else tuple(domain.DroppedSpan(*row) for row in every(db, SQL["past"], (lane_id,)))


def _head(db: SqlSession, lane_id: int) -> _Head:
    return _Head(*only(db, SQL["head"], (lane_id,)))


def _summary(db: SqlSession, lane_id: int, version: int) -> domain.Summary | None:
    row = one(db, SQL["summary"], (lane_id, version))
    if row is None or db.altered("lane_summary", [version], lane_id):
        return None
    made, trust = summary_of(row[:7]), row[7]
    return replace(made, trust=Trust(trust) if trust else _trust_between(db, lane_id, 1, made.last))


def _trust_between(db: SqlSession, lane_id: int, first: int, last: int) -> Trust:
    """The least trust of the records between two positions."""
    found = every(db, SQL["trusts_between"], (lane_id, first, last))
    return least_of(
        Record(Role(role), "", speaker=speaker, trust=Trust(trust) if trust else None) for role, speaker, trust in found
    )


def summary_of(row: Row) -> domain.Summary:
    """A row of the statements that read summaries: version, first, last, text, kind, model, created_at."""
    version, first, last, text, kind, model, created_at = row
    return domain.Summary(version, first, last, text, domain.Made(kind), model, created_at)


def summarise(db: SqlSession, commit: Summarise) -> bool:
    place = _movable(db, commit)
    if place is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    made = (commit.text, str(commit.made), commit.model, commit.at)
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))
    before = None if head.summary is None else _summary(db, lane_id, head.summary)
    earlier = [before.trust] if before is not None and before.trust else []
    trust = least([_trust_between(db, lane_id, first, commit.last), *earlier])
    db.execute(SQL["keep_summary"], (lane_id, version, first, commit.last, *made, *said, str(trust)))
    moved = (version, commit.last, head.floor, head.left_out, version)
    db.execute(SQL["set_head"], (lane_id, *moved, commit.at))
    db.execute(SQL["copy_due"], (lane_id, version))
    rotate(db, lane_id, SessionEnd.COMPACTION, commit.at)
    write_facts(db, commit.at, compacted(commit.lane, str(commit.made), (version, first, commit.last, said[0])))
    return True


def cut(db: SqlSession, commit: CutContext) -> bool:
    place = _movable(db, commit)
    if place is None:
        return False
    lane_id, head = place
    version, first = head.version + 1, head.covered + 1
    said = only(db, SQL["said_between"], (lane_id, first, commit.last))[0]
    reset = commit.why is CutReason.RESET
    db.execute(SQL["keep_cut"], (lane_id, version, first, commit.last, str(commit.why), said, commit.at))
    kept = (0, None) if reset else (head.left_out + said, head.summary)
    db.execute(SQL["set_head"], (lane_id, version, head.summarised_until, commit.last, *kept, commit.at))
    if reset:
        rotate(db, lane_id, SessionEnd.RESET, commit.at)
    else:
        mark(db, lane_id, head.last, "compaction", commit.at)
    write_facts(db, commit.at, compacted(commit.lane, str(commit.why), (version, first, commit.last, said)))
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
    failure: dict[str, Json] = {"version": commit.seen, "attempts": head.attempts + 1, "error": commit.error}
    write_facts(db, commit.at, Fact("lane.summary_failed", "", {"lane": list(commit.lane), **failure}))
    return True


def _movable(db: SqlSession, commit: Summarise | CutContext) -> tuple[int, _Head] | None:
    """The lane and its head, if the head is the one that was seen and may move to where the commit wants it."""
    lane_id = lane_id_of(db, commit.lane)
    if lane_id is None or (head := _head(db, lane_id)).version != commit.seen or commit.last > head.last:
        return None
    reset = isinstance(commit, CutContext) and commit.why is CutReason.RESET
    if commit.last < head.covered or (commit.last == head.covered and not reset):
        return None
    follows = one(db, SQL["role_at"], (lane_id, commit.last + 1))
    return None if follows is not None and follows[0] == Role.TOOL else (lane_id, head)


def due(db: SqlSession, limit: int) -> Sequence[domain.LaneSummary]:
    found = every(db, SQL["copies_due"], (limit, rows.OWN_TOOLS))
    return [domain.LaneSummary(Lane(*row[:4]), _trusted(row[4:11], row[12]), external=bool(row[11])) for row in found]


def of_conversation(db: SqlSession, lane: Lane, keep: int) -> Sequence[domain.LaneSummary]:
    return [
        domain.LaneSummary(
            Lane(*lane[:3], row[0]),
            _trusted(row[1:8], row[12]),
            messages=row[8],
            chars=row[9],
            external=bool(row[10]),
            left=bool(row[11]),
        )
        for row in every(db, SQL["of_conversation"], (*lane[:3], keep, rows.OWN_TOOLS))
    ]


def _trusted(row: Row, trust: str) -> domain.Summary:
    return replace(summary_of(row), trust=Trust(trust) if trust else None)


def copied(db: SqlSession, commit: SummariesCopied) -> int:
    return sum(run(db, SQL["copied"], (lane_id_of(db, lane), version)) for lane, version in commit.copies)
