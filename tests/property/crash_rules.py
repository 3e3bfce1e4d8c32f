"""Crash loops: the same process dies again and again, and then lives for long."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.property.buffer_model import WINDOW
from tests.property.buffer_rules import PICK, Recovery

from keepsaid.domain.busy import Steer
from keepsaid.domain.commits import Fail, Failure, Release, Renew, StepEnd, StepStart, TurnCommit
from keepsaid.domain.process import RequeueCrashed
from keepsaid.domain.turn import Usage
from keepsaid.testing.builders import outcome, step


class Crashes(Recovery):
    """A batch may stop the program until it is split, buried or parked."""

    @precondition(lambda self: self.plan.ready())
    @rule(times=st.integers(2, 6), limit=st.integers(1, 3))
    def die_again_and_again(self, times: int, limit: int) -> None:
        """What is claimed is in flight at each death."""
        for _ in range(times):
            self.claim(limit)
            if not self.plan.leased():
                return
            batches, parked = len(self.plan.batches), sum(work.state == "review" for work in self.plan.batches)
            self.restart(gracefully=False, limit=0)
            self.met["split"] += len(self.plan.batches) - batches
            self.met["parked by crashes"] += sum(work.state == "review" for work in self.plan.batches) - parked
            self.met["buried"] += sum(0 < work.charges == work.attempts for work in self.plan.batches)

    @precondition(lambda self: self.plan.ready() or any(w.state == "dead" for w in self.plan.batches))
    @rule()
    def be_stable(self) -> None:
        """The process has lived for ten minutes."""
        again = self.plan.stable(self.now)
        self.met["second chance"] += again
        assert self.apply(RequeueCrashed(self.now, "stable")) == again

    @precondition(lambda self: self.claims)
    @rule(pick=PICK)
    def come_late(self, pick: int) -> None:
        """Whoever lost its lease writes nothing."""
        lost = self.claims[pick % len(self.claims)]
        work = next((work for work in self.plan.batches if work.id == lost.batch.id), None)
        batch, turn_id = lost.batch, lost.turn_id
        if work is not None and work.state == "leased" and work.fence == batch.fence:
            return
        assert self.apply(Steer(turn_id, batch.id, batch.fence, 99, WINDOW)) == ()
        assert not self.apply(Renew(batch.id, batch.fence, self.now + 9_999))
        assert not self.apply(StepStart(turn_id, batch.fence, step(99), self.now))
        assert not self.apply(StepEnd(turn_id, batch.fence, 1, "late", Usage(), self.now))
        assert not self.apply(TurnCommit(turn_id, batch.id, batch.fence, outcome("late"), None, self.now))
        assert not self.apply(Release(batch.id, batch.fence, self.now))
        state = "unknown" if work is None else work.state
        assert self.apply(Fail(batch.id, batch.fence, Failure.BURY, "late", self.now)) == state
