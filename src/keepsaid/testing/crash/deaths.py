"""Deaths: lives that are to die at a point or at any moment, and how long it takes to get over each."""

from __future__ import annotations

import signal

from keepsaid.testing.crash.age import age
from keepsaid.testing.crash.fork import Fork
from keepsaid.testing.crash.report import Death
from keepsaid.testing.crash.stage import SERVE, Stage

_SPARE_S = 240.0
"""After many outages the next try is a minute away; so may be the one after it."""


class Deaths:
    """All deaths on a stage, in order."""

    def __init__(self, stage: Stage) -> None:
        self.all: list[Death] = []
        self._stage = stage

    def aimed(self, name: str, count: int = 1) -> Fork:
        """Begin a life that is to die at the `count`th pass of a point, and do what brings it there."""
        backup = name.startswith("backup.")
        arguments = ("data", "backup", str(self._stage.folder / "backup")) if backup else SERVE
        if name.startswith("block."):
            age(self._stage.home)
        life = self._stage.fork(name, count, arguments)
        if name.startswith("commit.Relinquish."):
            self._stage.ready(life)
            life.send_signal(signal.SIGTERM)
        return life

    def died(self, life: Fork, point: str, *, missed: bool = False) -> None:
        """A life has ended by a kill."""
        self.recovered(life)
        self.all.append(Death(point, missed))

    def recovered(self, life: Fork) -> None:
        """Note how long the death before this life took to get over."""
        if self.all and self.all[-1].recovered_ms is None:
            self.all[-1].recovered_ms = life.claimed_ms

    def endanger(self) -> bool:
        """Whether a batch would be given up if it were killed once more."""
        return bool(self._stage.number("endangered"))

    def spare(self) -> None:
        """Let a batch that was alone in flight at two deaths be settled: by nothing but the third is a poison told."""
        while self.endanger():
            life = self._stage.fork()
            self._stage.signal_load(signal.SIGSTOP)  # of new ones some would always have failed twice
            try:
                self._stage.until(lambda: not self.endanger(), life, _SPARE_S, "suspects are settled")
            finally:
                self._stage.signal_load(signal.SIGCONT)
            life.kill()
            self.recovered(life)
