"""Recorded talk: what people and another agent said to each other, kept in the order of its lane; nobody answers it.

One commit stores, routes and settles it, so that it waits for no router and no worker, and an agent that records a
turn reads it back at once (spec: doors, "a door adds no second road").
"""

from __future__ import annotations

from keepsaid.domain.batch import Routed, Window
from keepsaid.domain.commits import Arrival, ClaimBatches, Commit, IntakeResult, Received, TurnCommit
from keepsaid.domain.message import ANSWERED, RECORDED
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import Lease, Outcome, Usage
from keepsaid.values import frozen

RECORDED_MAX = 50
"""Messages of one call."""

AT_ONCE = Window(0, 0, 0)
"""The window of what waits for nothing."""

EVENTS = frozenset({RECORDED, ANSWERED})
"""The events of recorded talk."""

_VERDICT = Verdict(Action.LISTEN, "recorded", "", "another agent answers there; what was said is kept")


def recorded_key(conversation: str) -> str:
    """The key of the lane that holds the recorded talk of a conversation; nothing else comes into it."""
    return f"recorded:{conversation}"


@frozen
class RecordTalk(Commit[tuple[Received, ...]]):
    """Store messages of one lane and settle them in a turn that nobody answers; a receipt for each, in order.

    What came before under its external id is a duplicate, with other content a conflict; neither is stored again, the
    others are. `owner` is the process; times are milliseconds UTC, `steady` by the steady clock.
    """

    arrivals: tuple[Arrival, ...]
    batch_id: int
    turn_id: int
    owner: str
    at: int
    steady: int
    inactive_ms: int = 1_800_000

    def routed(self, stored: tuple[Received, ...]) -> Routed:
        """The batch of those that are new."""
        ids = {one.id for one in stored}
        new = [one for one in self.arrivals if one.id in ids]
        chars, priority = sum(len(one.inbound.content.text) for one in new), min(one.inbound.priority for one in new)
        first_at = min(one.at for one in new)
        numbers = stored[0].number, stored[-1].number
        return Routed(self.batch_id, *numbers, first_at, stored[-1].id, chars, _VERDICT, priority)

    def claim(self) -> ClaimBatches:
        """The claim under which the batch is settled, within the commit."""
        return ClaimBatches(self.owner, 1, (self.turn_id,), self.at, self.steady)

    def settled(self, lease: Lease) -> TurnCommit:
        """The end of its turn."""
        outcome = Outcome("", (), Usage(), RECORDED, silent=_VERDICT.reason)
        held = lease.turn_id, lease.batch.id, lease.batch.fence
        return TurnCommit(*held, outcome, None, self.at, inactive_ms=self.inactive_ms, steady=self.steady)


def newly_stored(received: tuple[Received, ...]) -> tuple[Received, ...]:
    """The receipts of what was not there before."""
    return tuple(one for one in received if one.intake is IntakeResult.STORED)
