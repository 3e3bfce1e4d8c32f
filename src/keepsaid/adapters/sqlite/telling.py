"""Telling: facts become lines of the journal, in the transaction of what happened."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite.sealing import seal_of
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.event import EACH, several
from keepsaid.domain.fact import Fact

_LINE = load("journal")["keep_line"]


def keep_line(db: apsw.Connection, topic: str, payload: str, correlation_id: str, at: int) -> None:
    """Write a line; sealed here, because a trigger would write a long line twice and wait for other threads."""
    db.execute(_LINE, (topic, payload, correlation_id, at, seal_of(topic, payload, correlation_id, at)))


def tell(db: apsw.Connection, at: int, *facts: Fact | None) -> None:
    """Write down facts, a line each; what is None did not happen."""
    for fact in facts:
        if fact is not None:
            payload = json.dumps(fact.payload, ensure_ascii=False, separators=(",", ":"))
            keep_line(db, fact.topic, payload, fact.about, at)


def tell_together(db: apsw.Connection, at: int, facts: Sequence[Fact]) -> None:
    """Write down facts of one topic in few lines, so that one costs little."""
    for start in range(0, len(facts), EACH):
        run = facts[start : start + EACH]
        keep_line(db, run[0].topic, several((one.about, one.payload) for one in run), "", at)
