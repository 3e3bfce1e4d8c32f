"""Replies that leave, at random: taken, sent or not, in doubt, and sent again."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule
from tests.property.buffer_rules import DELAY, PICK, SETTLED
from tests.property.crash_rules import Crashes

from keepsaid.domain.commits import Resend, Settle, TakeReplies
from keepsaid.domain.reply import Delivered
from keepsaid.testing.builders import CHANNEL


class Replies(Crashes):
    """And replies leave."""

    @precondition(lambda self: any(letter.state == "pending" for letter in self.plan.replies))
    @rule(ms=st.integers(0, 100), limit=st.integers(1, 2))
    def take(self, ms: int, limit: int) -> None:
        """Each conversation's in order."""
        self.now += ms
        expected = self.plan.sendable(self.now, limit)
        taken = self.apply(TakeReplies((CHANNEL,), self.owner, limit, self.now))
        assert [reply.id for reply in taken] == [letter.id for letter in expected]
        for letter in expected:
            letter.state, letter.owner = "sending", self.owner
            letter.fence += 1

    @precondition(lambda self: any(letter.state in ("pending", "sending") for letter in self.plan.replies))
    @rule(pick=PICK, what=st.sampled_from([Delivered.CONFIRMED, *Delivered]), delay=DELAY)
    def send(self, pick: int, what: Delivered, delay: int) -> None:
        """A try ends; an older try cannot say so."""
        self.take(0, 1)
        sending = [letter for letter in self.plan.replies if letter.state == "sending"]
        if not sending:
            return
        letter = sending[pick % len(sending)]
        assert not self.apply(Settle(letter.id, letter.fence - 1, what, self.now))
        assert self.apply(Settle(letter.id, letter.fence, what, self.now, retry_at=self.now + delay))
        letter.state = SETTLED[what]
        letter.next_at = max(letter.next_at, self.now + delay)
        if letter.state not in ("pending", "unknown"):
            self.plan.departed.append(letter)

    @precondition(lambda self: any(letter.state == "unknown" for letter in self.plan.replies))
    @rule(ms=st.integers(0, 200), bury=st.booleans())
    def resend(self, ms: int, bury: bool) -> None:
        """Doubt is resolved by the channel's policy."""
        self.now += ms
        unknown = [letter for letter in self.plan.replies if letter.state == "unknown" and letter.next_at <= self.now]
        assert self.apply(Resend(frozenset((CHANNEL,) if bury else ()), self.now)) == len(unknown)
        for letter in unknown:
            letter.state, letter.next_at = "dead" if bury else "pending", self.now
            letter.possible_duplicate = letter.possible_duplicate or not bury
            self.plan.departed += [letter] if bury else []
