"""Summaries that memory has no copy of yet, and those a conversation is made of."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import apsw

from keepsaid.adapters.sqlite.context import SQL, summary_of
from keepsaid.adapters.sqlite.query import Row, every, run
from keepsaid.adapters.sqlite.routing import lane_id_of
from keepsaid.domain.compaction import SummariesCopied
from keepsaid.domain.context import LaneSummary
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.summary import Summary
from keepsaid.domain.visibility import OWN_TOOLS

_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))


def due(db: apsw.Connection, limit: int) -> Sequence[LaneSummary]:
    """The newest summaries of lanes whose copy is older."""
    found = every(db, SQL["copies_due"], (limit, _OWN_TOOLS))
    return [LaneSummary(Lane(*row[:4]), _trusted(row[4:11], row[12]), external=bool(row[11])) for row in found]


def of_conversation(db: apsw.Connection, lane: Lane, keep: int) -> Sequence[LaneSummary]:
    """Of each lane of a conversation the newest summary that leaves the newest `keep` records out."""
    return [
        LaneSummary(
            Lane(*lane[:3], row[0]),
            _trusted(row[1:8], row[12]),
            messages=row[8],
            chars=row[9],
            external=bool(row[10]),
            left=bool(row[11]),
        )
        for row in every(db, SQL["of_conversation"], (*lane[:3], keep, _OWN_TOOLS))
    ]


def _trusted(row: Row, trust: str) -> Summary:
    return replace(summary_of(row), trust=Trust(trust) if trust else None)


def copied(db: apsw.Connection, commit: SummariesCopied) -> int:
    """Memory has these copies."""
    return sum(run(db, SQL["copied"], (lane_id_of(db, lane), version)) for lane, version in commit.copies)
