"""Busy lanes and pruning, at random: what joins a running turn or begins it anew, and what leaves in the end."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.property.buffer_model import WINDOW, Work
from tests.property.buffer_rules import DRAFT, PICK, Draft
from tests.property.reply_rules import Replies

from keepsaid.domain.busy import Interrupt, Steer
from keepsaid.domain.commits import EpisodesKept
from keepsaid.domain.message import Lane
from keepsaid.domain.retention import Stale
from keepsaid_testkit.contracts.pruning import prune

SEEN = ["step", "step"]
GOES_ON = st.sampled_from(
    [
        [],
        ["answer"],
        [*SEEN, "answer"],
        [*SEEN, "unrepeatable step", "park"],
        ["unrepeatable step", "step", "bury"],
        [*SEEN, "unrepeatable step", "release", "claim", "step"],
        [*SEEN, "release", "claim", "answer"],
        ["retry", "claim", "answer"],
    ]
)
"""How a turn may go on that others have joined, or may have."""

TALK = DRAFT.map(lambda draft: replace(draft, word="talk"))


class Busy(Replies):
    """Somebody speaks while a turn of the lane runs."""

    @rule(pick=PICK, drafts=st.lists(TALK | DRAFT, min_size=1, max_size=2), joins=st.booleans(), deeds=GOES_ON)
    def interject(self, pick: int, drafts: list[Draft], joins: bool, deeds: list[str]) -> None:
        """The turn is shown it, or begins anew with it, or it is the next; and something comes of that."""
        if not self.plan.leased():
            self.talk([replace(drafts[0], word="talk")], WINDOW.wait_ms_max, 1)
        leased = self.plan.leased()
        if not leased:
            return
        work = leased[pick % len(leased)]
        for draft in drafts:
            self.hear(replace(draft, room=work.lane.conversation, topic=work.messages[0].inbound.topic))
        self.tick(WINDOW.wait_ms_max, None, twice=False)
        if not joins:
            self.interrupt(work.lane)
            return
        self.steer(work)
        for deed in deeds:
            if deed == "claim":
                self.claim(3)
            elif work.state == "leased":
                self.do(deed, work, 0)

    def steer(self, work: Work) -> None:
        """What is taken is what the lists say, with its messages."""
        assert work.turn_id is not None
        n = len(work.steps) + 1
        taken = self.apply(Steer(work.turn_id, work.id, work.fence, n, WINDOW))
        expected = self.plan.steer(work, n)
        assert [(one.batch_id, one.n, list(one.messages)) for one in taken] == [
            (one.id, n, one.messages) for one in expected
        ]
        self.met["joined"] += len(taken)

    def interrupt(self, lane: Lane) -> None:
        """What begins anew is what the lists say."""
        expected = self.plan.interrupt(lane)
        assert self.apply(Interrupt(lane, WINDOW, self.now)) == (None if expected is None else expected.id)
        self.met["begun anew"] += expected is not None


class Pruning(Busy):
    """And what is settled leaves."""

    @precondition(lambda self: self.plan.episodes_due)
    @rule(pick=PICK)
    def remember(self, pick: int) -> None:
        """The episodes of some batches are in memory."""
        due = sorted(self.plan.episodes_due)[: 1 + pick % 4]
        assert self.apply(EpisodesKept(tuple(due))) == len(due)
        self.plan.episodes_due -= set(due)

    @precondition(lambda self: self.plan.prunable(self.now + 1))
    @rule(ms=st.sampled_from([0, 1, 1, 300]), what=st.sampled_from([Stale.MESSAGES, Stale.MESSAGES, Stale.RECORDS]))
    def prune(self, ms: int, what: Stale) -> None:
        """What was settled before a time, and nothing else."""
        self.now += ms
        if what is Stale.MESSAGES:
            expected = self.plan.prune_messages(self.now), 0
        else:
            expected = 0, self.plan.prune_records(self.now)
        piece = self.run(prune(self.store, what, self.now, rows_max=3))
        assert (piece.messages, piece.batches) == expected
        self.met["pruned"] += sum(expected)
