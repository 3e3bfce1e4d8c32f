"""The play: kills at every point by turns, then at any moment; a quiet end; the judge."""

from __future__ import annotations

import random
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from time import monotonic

from keepsaid.testing.crash.fork import Fork, Nursery, StageError
from keepsaid.testing.crash.lives import live, lives
from keepsaid.testing.crash.points import points
from keepsaid.testing.crash.report import BY_CHANCE, Death, Report
from keepsaid.testing.crash.stage import SERVE, Cast, Stage

_REACH_S = 20.0
_DRAIN_S = 60.0
_SPARE_S = 60.0
_ONCE_A_LIFE = ("commit.VoidLeases.", "commit.Doubt.", "commit.ExpireLeases.", "commit.Relinquish.", "backup.")
_SELDOM = ("commit.Decide.", "commit.Requeue.", "commit.Release.", "commit.Fail.", "commit.Shown.", "commit.Renew.")
_ONCE_IN_A_WHILE = ("commit.Tell.", "commit.BeginPruning.", "commit.Prune.")

Tell = Callable[[int, int, str], None]
"""Hears how far the play is: kills done, kills in all, and what is going on."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be tried: each point so many `times`, and so many `kills` at any moment; `only` these points.

    `drain_s` is how long the quiet end may take: what is still open then is a violation.
    """

    times: int = 3
    kills: int = 0
    only: tuple[str, ...] = ()
    drain_s: float = _DRAIN_S

    @property
    def aims(self) -> list[str]:
        """The points to kill at, each as often as planned, in the order of their names."""
        return [name for name in self.only or points() for _ in range(self.times)]

    @property
    def total(self) -> int:
        """How many kills there are to be."""
        return len(self.aims) + self.kills


class Play:
    """One play, on a stage of its own in `folder`."""

    def __init__(
        self, folder: Path, cast: Cast, plan: Plan, tell: Tell = lambda *_: None, forks: Nursery | None = None
    ) -> None:
        self._stage = Stage(folder, cast, forks)
        self._cast = cast
        self._plan = plan
        self._tell = tell
        self._chance = random.Random(f"play:{cast.seed}")  # noqa: S311 - repeatable, not secret
        self._deaths: list[Death] = []

    def run(self) -> Report:
        """Play it to the end; raises StageError when it cannot go on."""
        began, stage = monotonic(), self._stage
        with stage:
            self._first_starts()
            load = stage.load()
            self._at_points()
            self._at_any_moment()
            last = stage.alone()
            self._claim(last)
            self._say("everything that was begun comes to its end")
            stage.stop(load, self._plan.drain_s)
            stage.drain(last, self._plan.drain_s)
            self._recovered(last)
            stage.stop(last)
            self._say("the judge looks at it")
            judgement = stage.judged()
            return Report(
                self._cast.seed,
                self._cast.fault,
                self._deaths,
                judgement,
                last.claimed_ms,
                monotonic() - began,
                stage.logs.complaints(),
            )

    def _first_starts(self) -> None:
        """Kills during the making of the stores, before anything is in them; then a start that is let be."""
        making = sorted({name for name in self._plan.aims if name.startswith("migrate.")}, key=_made)
        for _ in range(self._plan.times if making else 0):
            shutil.rmtree(self._stage.home / "data", ignore_errors=True)
            for name in making:
                self._aimed(name)
        whole = self._stage.fork()
        self._stage.ready(whole)
        self._recovered(whole)
        self._stage.stop(whole)

    def _at_points(self) -> None:
        aims = [name for name in self._plan.aims if not name.startswith("migrate.")]
        self._chance.shuffle(aims)
        for name in aims:
            self._spare()
            self._aimed(name)

    def _aimed(self, name: str) -> None:
        """A life that is to die at a point."""
        self._say(name)
        seldom = name.startswith((*_ONCE_A_LIFE, *_SELDOM, *_ONCE_IN_A_WHILE, "migrate."))
        count = 1 if seldom else self._chance.choice((1, 1, 2, 3))
        arguments = ("data", "backup", str(self._stage.folder / "backup")) if name.startswith("backup.") else SERVE
        life = self._stage.fork(name, count, arguments)
        try:
            if name.startswith("commit.Relinquish."):
                self._stage.ready(life)
                life.send_signal(signal.SIGTERM)
            code = life.wait(_REACH_S)
        except subprocess.TimeoutExpired:
            life.kill()
            code = 0
        if code and not life.reached:
            raise StageError(f"a life that was to die at {name} ended with {code}\n{self._stage.logs.tails()}")
        self._died(life, name, missed=not life.reached)

    def _at_any_moment(self) -> None:
        for life in lives(self._cast.seed, self._plan.kills):
            self._spare()
            self._say(BY_CHANCE)
            fork = self._stage.fork()
            live(self._stage, fork, life)
            self._recovered(fork)
            if life.killed:
                self._deaths.append(Death(BY_CHANCE))

    def _spare(self) -> None:
        """Let a batch that was alone in flight at two deaths be settled: by nothing but the third is a poison told."""
        while self._stage.endangered():
            life = self._stage.fork()
            self._stage.until(lambda: not self._stage.endangered(), life, _SPARE_S, "suspects are settled")
            life.kill()
            self._recovered(life)

    def _claim(self, life: Fork) -> None:
        self._stage.ready(life)
        self._stage.until(lambda: life.claimed_ms is not None, life, _REACH_S, "work is claimed after the start")

    def _died(self, life: Fork, name: str, *, missed: bool) -> None:
        self._recovered(life)
        self._deaths.append(Death(name, missed))

    def _recovered(self, life: Fork) -> None:
        """Note how long the death before this life took to get over."""
        if self._deaths and self._deaths[-1].recovered_ms is None:
            self._deaths[-1].recovered_ms = life.claimed_ms

    def _say(self, what: str) -> None:
        self._tell(len(self._deaths), self._plan.total, what)


def _made(name: str) -> tuple[bool, int, bool]:
    """The order in which the stores are made: buffer, then memory, step by step."""
    _, part, number, side = name.split(".")
    return part != "buffer", int(number), side == "after"
