"""Mixed faults: for a while the runtime and the world around it fail in every way at once, as a seed decides.

What is lasting ends by itself: a life can be killed while it is frozen, the model is away and the disk is full.
"""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from random import Random
from time import monotonic

from keepsaid.values import frozen
from keepsaid_testkit.crash.backup import Backup
from keepsaid_testkit.crash.deaths import Deaths
from keepsaid_testkit.crash.fork import Fork, StageError
from keepsaid_testkit.crash.points import points
from keepsaid_testkit.crash.report import BY_CHANCE
from keepsaid_testkit.crash.stage import Sandbox

LEASE_MS = 1_000
"""Short, so that a life can be frozen for longer."""

_LOOK_S = 0.02
_REACH_S = 4.0
_NOT_OF_A_SERVER = ("migrate.", "backup.")


Act = Callable[[Sandbox, Fork], object]
"""Does something to the stage, or to the life that is on it."""


@frozen
class MixedFault:
    """A kind of fault: how it begins, and, for one that is lasting, how it ends after some seconds."""

    name: str
    meaning: str
    begin: Act | None = None
    end: Act | None = None
    lasts_s: tuple[float, float] = (0.2, 2.5)


KILL = MixedFault("kill", "kill -9 at any moment")
POINT = MixedFault("point", "kill -9 at a named point")
STOP = MixedFault("stop", "SIGTERM in the midst of work")
FREEZE = MixedFault(
    "freeze",
    "SIGSTOP for longer than a lease, then SIGCONT",
    lambda _, life: life.send_signal(signal.SIGSTOP),
    lambda _, life: life.send_signal(signal.SIGCONT),
    (1.2 * LEASE_MS / 1_000, 2.2 * LEASE_MS / 1_000),
)
MODEL = MixedFault(
    "model",
    "the model's process ends, and is started again",
    lambda stage, _: stage.model.leave(),
    lambda stage, _: stage.model.come(),
)
RECEIVER = MixedFault(
    "receiver",
    "the process that takes replies ends, and is started again",
    lambda stage, _: stage.receiver.leave(),
    lambda stage, _: stage.receiver.come(),
)
DISK = MixedFault(
    "disk",
    "no database can be written: no space left",
    lambda stage, _: stage.full.touch(),
    lambda stage, _: stage.full.unlink(),
)
BURST = MixedFault("burst", "a crowd speaks up at once", lambda stage, _: stage.signal_load(signal.SIGUSR1))
BACKUP = MixedFault("backup", "a backup is taken, and has to be whole")

ENDINGS: Sequence[MixedFault] = (KILL, KILL, POINT, POINT, STOP)
"""How lives end; each as often as it stands here."""

DURING: Sequence[MixedFault] = (FREEZE, MODEL, RECEIVER, DISK, BURST, BACKUP)
"""What happens in lives, and may go on in the next."""

FAULTS: Sequence[MixedFault] = tuple(dict.fromkeys((*ENDINGS, *DURING)))
"""Every kind."""


def dealt(cards: Sequence[MixedFault], chance: Random) -> Iterator[MixedFault]:
    """Cards without end: all of them in any order, then all of them again."""
    while True:
        yield from chance.sample(cards, len(cards))


class Mixed:
    """Faults on a stage, one after another and over one another; `wrong` is what backups lacked."""

    def __init__(self, stage: Sandbox, deaths: Deaths, seed: int) -> None:
        self.struck: Counter[str] = Counter()
        self.wrong: list[str] = []
        self._stage = stage
        self._deaths = deaths
        self._chance = Random(f"mixed:{seed}")  # noqa: S311 - repeatable, not secret
        self._lasting: dict[MixedFault, tuple[float, Fork]] = {}
        self._backup: Backup | None = None

    def run(self, seconds: float, tell: Callable[[float, str], None]) -> None:
        """Let things happen for so long, and until every kind has struck once.

        `tell` hears how long it has been, and what happens.
        """
        began = monotonic()
        endings, during = dealt(ENDINGS, self._chance), dealt(DURING, self._chance)
        while (past := monotonic() - began) < seconds or len(self.struck) < len(FAULTS):
            ending = next(endings)
            tell(min(past, seconds), ending.meaning)
            self._over(DISK)  # nothing starts on a full disk
            if ending is POINT:
                self._dies_at_a_point()
            else:
                self._lives(ending, [next(during) for _ in range(self._chance.randrange(1, 4))])
            self.struck[ending.name] += 1
        self._over(*self._lasting)
        if self._backup is not None:
            self.wrong += self._backup.judged()

    def _dies_at_a_point(self) -> None:
        """What is not reached in time, perhaps because the model is away, is a kill at any moment."""
        point = self._chance.choice([name for name in points() if not name.startswith(_NOT_OF_A_SERVER)])
        life = self._deaths.aimed({point: 1})
        end, code = monotonic() + _REACH_S, None
        while code is None and monotonic() < end:
            self._tend()
            with suppress(subprocess.TimeoutExpired):
                code = life.wait(_LOOK_S)
        life.kill()
        if code and not life.reached:
            raise StageError(f"a life that was to die at {point} ended with {code}\n{self._stage.logs.tails()}")
        self._deaths.died(life, life.reached or BY_CHANCE)

    def _lives(self, ending: MixedFault, during: Sequence[MixedFault]) -> None:
        life = self._stage.fork()
        self._stage.ready(life)
        for fault in during:
            self._let(life, self._chance.uniform(0.0, 0.4))
            self._strike(fault, life)
        self._let(life, self._chance.uniform(0.0, 1.0))
        if ending is STOP:
            self._over(FREEZE, DISK)
            self._stage.stop(life)
            self._deaths.recovered(life)
        else:
            self._lasting.pop(FREEZE, None)
            life.kill()
            self._deaths.died(life, BY_CHANCE)

    def _strike(self, fault: MixedFault, life: Fork) -> None:
        """Let a fault begin, unless it is there already."""
        if fault in self._lasting or (fault is BACKUP and self._backup is not None):
            return
        self.struck[fault.name] += 1
        if fault.begin is not None:
            fault.begin(self._stage, life)
        if fault.end is not None:
            self._lasting[fault] = monotonic() + self._chance.uniform(*fault.lasts_s), life
        if fault is BACKUP:
            self._backup = Backup(self._stage, self._stage.folder / "copy")

    def _let(self, life: Fork, seconds: float) -> None:
        """Continue a life, and ignore that it may be over already."""
        end = monotonic() + seconds
        while monotonic() < end:
            self._tend()
            self._stage.let(life, _LOOK_S)

    def _tend(self) -> None:
        now = monotonic()
        self._over(*[fault for fault, (until, _) in self._lasting.items() if until < now])
        if self._backup is not None and self._backup.over():
            self.wrong += self._backup.judged()
            self._backup = None

    def _over(self, *faults: MixedFault) -> None:
        """What is lasting ends; nothing happens to what is not there."""
        for fault in faults:
            lasting = self._lasting.pop(fault, None)
            if lasting is not None and fault.end is not None:
                fault.end(self._stage, lasting[1])
