"""Summaries that memory has no copy of yet, and those a conversation is made of."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.compaction import Cut, SummariesCopied
from keepsaid.domain.context import LaneSummary
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.visibility import from_outside


def due(state: State, limit: int) -> Sequence[LaneSummary]:
    """The newest summaries of lanes whose copy is older."""
    lanes = [row for row in state.lanes.values() if row.lane in state.summaries_due][:limit]
    return [LaneSummary(row.lane, row.context.summaries[-1], external=_external(row)) for row in lanes]


def of_conversation(state: State, lane: Lane, keep: int) -> Sequence[LaneSummary]:
    """Of each lane of a conversation the newest summary that leaves the newest `keep` records out."""
    rows = [row for row in state.lanes.values() if row.lane[:3] == lane[:3]]
    found = (_of_lane(row, keep) for row in sorted(rows, key=lambda row: row.lane.key))
    return [one for one in found if one is not None]


def _of_lane(row: LaneRow, keep: int) -> LaneSummary | None:
    old = [one for one in row.context.summaries if one.last <= len(row.transcript) - keep]
    if not old:
        return None
    took = [row.context.took[one.version] for one in old]
    messages, chars = sum(many for many, _ in took), sum(many for _, many in took)
    left = any(one.why is Cut.RESET and one.version > old[-1].version for one in row.context.cuts)
    return LaneSummary(row.lane, old[-1], messages, chars, _external(row), left)


def _external(row: LaneRow) -> bool:
    return has_strangers(row) or from_outside(one.record for one in row.transcript)


def has_strangers(row: LaneRow) -> bool:
    """Whether somebody outside ever wrote in a lane."""
    held = any(one is not None and one.inbound.origin.trust is Trust.EXTERNAL for one in row.messages)
    return row.external_from is not None or held


def copied(state: State, commit: SummariesCopied) -> int:
    """Memory has these copies."""
    known = [lane for lane, version in commit.copies if state.summaries_due.get(lane) == version]
    for lane in known:
        del state.summaries_due[lane]
    return len(known)
