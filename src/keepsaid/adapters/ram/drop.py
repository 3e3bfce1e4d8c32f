"""Drop: a batch that waits is answered by nobody, by a person's word."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.adapters.ram.busy import abandon
from keepsaid.adapters.ram.state import State
from keepsaid.domain.commits import Drop
from keepsaid.domain.fact import Over, dropped
from keepsaid.domain.route import Action


def drop(state: State, commit: Drop) -> bool:
    """Drop a queued batch that no turn was shown; a turn that an earlier attempt left open is over."""
    batch = state.batches.get(commit.batch_id)
    if batch is None or batch.state != "queued" or batch.steered is not None:
        return False
    batch.go("drop")
    batch.later, batch.ended_at = False, commit.at
    batch.verdict = replace(batch.verdict, action=Action.DROP, reason=commit.reason)
    state.told(commit.at, dropped(batch.id, batch.last - batch.first + 1))
    abandon(state, batch, (commit.reason, Over.DROPPED), commit.at)
    return True
