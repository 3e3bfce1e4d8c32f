"""Every write of the memory store, for the ledger that applies them."""

from __future__ import annotations

from keepsaid.adapters.sql.commit_table import CommitTable, emptied
from keepsaid.adapters.sql.memory.aside import (
    DropMemoriesAside,
    PutBackMemories,
    drop_memories_aside,
    put_back_memories,
)
from keepsaid.adapters.sql.memory.commits import KeepMemories, keep
from keepsaid.adapters.sql.memory.forgetting import EraseMemories, HideMemories, erase, hide
from keepsaid.adapters.sql.memory.graph import Relate, relate
from keepsaid.adapters.sql.memory.learning import Learn, learn
from keepsaid.adapters.sql.memory.news import drop
from keepsaid.adapters.sql.memory.people import join, split, widen
from keepsaid.adapters.sql.memory.revisions import (
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
from keepsaid.adapters.sql.memory.transfer import take
from keepsaid.adapters.sql.memory.upkeep import maintain
from keepsaid.domain.bundle import TakeIn
from keepsaid.domain.event import DropNews
from keepsaid.domain.forgetting import EmptyLog
from keepsaid.domain.learning import RulePairs
from keepsaid.domain.maintenance import Maintain
from keepsaid.domain.visibility import JoinPeople, ShareMemory, SplitPerson

MEMORY_COMMITS = CommitTable(
    single={
        Relate: relate,
        Maintain: maintain,
        JoinPeople: join,
        SplitPerson: split,
        ShareMemory: widen,
        HideMemories: hide,
        EraseMemories: erase,
        PutBackMemories: put_back_memories,
        DropMemoriesAside: drop_memories_aside,
        EmptyLog: emptied,
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
    sets={KeepMemories: keep},
)
"""Each database adds what it keeps vectors by, and the upkeep of its indexes."""
