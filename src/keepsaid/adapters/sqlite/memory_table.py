"""Every write of the memory store, for the ledger that applies them."""

from __future__ import annotations

from keepsaid.adapters.sql.commit_table import CommitTable
from keepsaid.adapters.sqlite.memory_commits import MEMORY_COMMITS
from keepsaid.adapters.sqlite.memory_learning import Learn, learn
from keepsaid.adapters.sqlite.memory_news import drop
from keepsaid.adapters.sqlite.memory_revisions import (
    Confirm,
    Correct,
    Merge,
    Pin,
    PutAway,
    confirm,
    correct,
    merge,
    pin,
    put_away,
    rule,
)
from keepsaid.adapters.sqlite.memory_transfer import take
from keepsaid.domain.bundle import TakeIn
from keepsaid.domain.fact import DropNews
from keepsaid.domain.learning import RulePairs

MEMORY_TABLE = MEMORY_COMMITS | CommitTable(
    single={
        Learn: learn,
        Correct: correct,
        Pin: pin,
        Confirm: confirm,
        Merge: merge,
        PutAway: put_away,
        TakeIn: take,
        RulePairs: rule,
        DropNews: drop,
    },
    sets={},
)
"""For a ledger that writes memory; join it with the operational ones where one file holds both stores."""
