"""What deaths of the process mean for batches, once more, as plain lists; the worth of a death is the domain's rule."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.property.buffer_model import Plan, Work

from keepsaid.domain.batch import LIVES_MAX, FatalTrial, PastLife, Suspicion, TrialTerms, mean_life_ms
from keepsaid.domain.commits import ATTEMPTS_MAX

LIVED_MS = 3_600_000
"""How long a process of a walk has lived when it claims: long enough for any trial."""

_TRIAL = FatalTrial(LIVED_MS, LIVED_MS + 250)


@dataclass
class CrashPlan(Plan):
    """What must be so, also after crashes."""

    lives: list[PastLife] = field(default_factory=list)

    def end_life(self, *, gracefully: bool) -> None:
        """A process ends; one that died in a trial had lived until that began."""
        in_trial = any(work.alone for work in self.leased())
        self.lives.append(PastLife(LIVED_MS if in_trial else 0, not in_trial and not gracefully))
        del self.lives[: 1 - LIVES_MAX]

    def void(self, now: int, reply_id: int, split_id: int) -> list[int]:
        """The process is over; the batches that are dead now."""
        for work in self.ready():
            work.later = False
        mean_ms, dead = mean_life_ms(self.lives), []
        for work in self.leased():
            known = Suspicion(work.attempts, work.crashes, work.evidence, work.charges)
            after = known.after_death(_TRIAL if work.alone else None, mean_ms, TrialTerms())
            charged = after.charges > work.charges
            work.ready_at, work.crashes, work.evidence = now, after.crashes, after.evidence
            work.attempts, work.charges = after.attempts, after.charges
            if not (charged and self._split(work, split_id, now)):
                self._settle(work, reply_id, now)
            dead += [work.id] if work.state == "dead" else []
        for letter in self.replies:
            letter.state = "unknown" if letter.state == "sending" else letter.state
            if letter.state in ("pending", "unknown"):
                letter.next_at = min(letter.next_at, now)
        return dead

    def _settle(self, work: Work, reply_id: int, now: int) -> None:
        has_parts = len(work.messages) > 1 or bool(self.joined(work))
        if work.attempts < ATTEMPTS_MAX:
            work.leave("queued")
            return
        self.abandon(work, now)
        work.leave("review" if has_parts else "dead")
        self.write(work, reply_id, now)

    def _split(self, work: Work, split_id: int, now: int) -> bool:
        joined, kept = self.joined(work), (len(work.messages) + 1) // 2
        if work.unrepeatable or not (joined or len(work.messages) > 1):
            return False
        self.abandon(work, now)
        work.leave("queued")
        work.clear(work.attempts - work.charges, work.crashes)
        for one in joined:
            one.crashes = work.crashes
        if not joined:
            second = Work(split_id, work.lane, work.messages[kept:], work.rule, now, priority=work.priority)
            second.attempts, second.crashes, second.deferrals = work.attempts, work.crashes, work.deferrals
            second.fence, second.requeued, second.second_chance = work.fence, work.requeued, work.second_chance
            work.messages = work.messages[:kept]
            self.batches.append(second)
        return True

    def stable(self, now: int) -> int:
        """What crashes alone buried is queued again, once; who was never tried is a suspect no more. How many."""
        for work in self.ready():
            if not work.later and not work.evidence.deaths and not work.second_chance:
                work.crashes = 0
        buried = [w for w in self.batches if w.state == "dead" and not w.pruned and not w.second_chance]
        crashed = [work for work in buried if 0 < work.charges == work.attempts]
        for work in crashed:
            work.state, work.requeued, work.second_chance, work.ready_at, work.later = "queued", True, True, now, True
            work.deferrals = 0
            work.clear(crashes=2)
        return len(crashed)
