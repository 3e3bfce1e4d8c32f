"""Uses: how often memories were shown to turns or opened by them, each turn counted once."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.query import every
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.memory import Used

SQL = load("memory_uses")
_REMEMBERED_MS = 30 * 86_400_000
"""So long it is known that a turn was counted; a turn is told again within seconds of a crash, or never."""


def count(db: apsw.Connection, uses: Sequence[Used]) -> None:
    """Count what turns used, but of those that were counted before nothing; old turns are let go."""
    told = {
        use.turn_id: {"turn": use.turn_id, "at": use.at, "memories": list(dict.fromkeys(use.memories))} for use in uses
    }
    if not told:
        return
    counted = every(db, SQL["count_turns"], {"uses": json.dumps(list(told.values()))})
    new = {row[0] for row in counted}
    if new:
        uses_now = [use for turn_id, use in told.items() if turn_id in new]
        db.execute(SQL["count_uses"], {"uses": json.dumps(uses_now)})
        db.execute(SQL["forget_turns"], {"before": max(use.at for use in uses) - _REMEMBERED_MS})
