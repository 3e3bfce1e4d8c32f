"""Deaths: lives that are to die at a point or at any moment, and how long it takes to get over each."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Mapping

from keepsaid_testkit.crash.aims import AGED, BACKED_UP, STOPPED, way_to
from keepsaid_testkit.crash.fork import Fork
from keepsaid_testkit.crash.learning import age
from keepsaid_testkit.crash.report import Death
from keepsaid_testkit.crash.stage import SERVE, Sandbox


class Deaths:
    """All deaths on a stage, in order."""

    def __init__(self, stage: Sandbox) -> None:
        self.all: list[Death] = []
        self._stage = stage

    def aimed(self, aims: Mapping[str, int]) -> Fork:
        """Begin a life that is to die at one of some points that one way leads to, and do what brings it there."""
        (way,) = {way_to(name) for name in aims}
        if way == AGED:
            age(self._stage.home)
        backup = ("data", "backup", str(self._stage.folder / "backup"))
        life = self._stage.fork(aims, backup if way == BACKED_UP else SERVE)
        if way == STOPPED:
            self._stage.ready(life)
            life.send_signal(signal.SIGTERM)
        return life

    def died(self, life: Fork, point: str) -> None:
        """A life has ended by a kill."""
        self.recovered(life)
        self.all.append(Death(point))

    def missed(self, points: Iterable[str]) -> None:
        """No life came to these points."""
        self.all += [Death(point, missed=True) for point in points]

    def recovered(self, life: Fork) -> None:
        """Note how long the death before this life took to get over."""
        if self.all and self.all[-1].recovered_ms is None:
            self.all[-1].recovered_ms = life.claimed_ms
