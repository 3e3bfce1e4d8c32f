"""The play: kills at every point by turns, then at any moment; a quiet end; the judge."""

from __future__ import annotations

import random
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from time import monotonic

from keepsaid.values import frozen
from keepsaid_testkit.crash.aims import Aims
from keepsaid_testkit.crash.companions import Companions
from keepsaid_testkit.crash.deaths import Deaths
from keepsaid_testkit.crash.fork import Fork, Nursery, StageError
from keepsaid_testkit.crash.lives import live, lives
from keepsaid_testkit.crash.mixed import LEASE_MS, Mixed
from keepsaid_testkit.crash.points import points
from keepsaid_testkit.crash.report import BY_CHANCE, Report
from keepsaid_testkit.crash.stage import Judgement, Sandbox, Scenario, judged

_REACH_S = 45.0
"""How long a life may take to the points it is to die at. Lives that follow one that came to none get longer."""
_DRAIN_S = 60.0
_LONGEST_WAITS_S = 240.0
"""After many outages in the mixed faults, the next wait may take a minute."""
_HUSH_S = 240.0
"""The load ends what it began, and waits for its answers."""

_IN_VAIN_S = 900.0
"""Time limit for the lives that reach none of the points that are left, one after another, before the play gives up."""

Tell = Callable[[int, int, str], None]
"""Hears how far the play is: kills and seconds of mixed faults done, these in all, and what is going on."""


@frozen
class Plan:
    """What is to be tried: each point a number of `times`, and `kills` at any moment; `only` these points.

    Then faults are mixed for some `minutes`. `drain_s` is how long the quiet end may take: what is still open then
    is a violation.
    """

    times: int = 3
    kills: int = 0
    only: tuple[str, ...] = ()
    drain_s: float = _DRAIN_S
    minutes: float = 0.0

    @property
    def aims(self) -> list[str]:
        """The points to kill at, each as often as planned, in the order of their names."""
        return [name for name in self.only or points() for _ in range(self.times)]

    @property
    def total(self) -> int:
        """How many kills there are to be, and how many seconds of mixed faults."""
        return len(self.aims) + self.kills + self.seconds

    @property
    def seconds(self) -> int:
        """How long faults are mixed."""
        return round(60 * self.minutes)


class Play:
    """One play, on a stage of its own in `folder`; `beside` are fork servers of processes that work with its stores."""

    beside: Sequence[Nursery] = ()
    companions: Companions

    def __init__(
        self, folder: Path, cast: Scenario, plan: Plan, tell: Tell = lambda *_: None, forks: Nursery | None = None
    ) -> None:
        self._cast = replace(cast, lease_ms=LEASE_MS, can_fill=True) if plan.seconds else cast
        self._stage = Sandbox(folder, self._cast, forks)
        self._deaths = Deaths(self._stage)
        self._mixed = Mixed(self._stage, self._deaths, cast.seed)
        self._plan = plan
        self._tell = tell
        self._chance = random.Random(f"play:{cast.seed}")  # noqa: S311 - repeatable, not secret

    def run(self) -> Report:
        """Play it to the end; raises StageError when it cannot go on."""
        began, stage = monotonic(), self._stage
        companions = self.companions = Companions(stage, self.beside, self._cast.seed)
        with stage, ExitStack() as ending:
            ending.callback(companions.kill)
            self._first_starts()
            companions.begin()
            load = stage.load()
            self._at_points()
            self._at_any_moment(companions)
            self._mixed_up()
            last = stage.start_process()
            self._claim(last)
            companions.wake()
            self._say("everything that was begun comes to its end", self._plan.seconds)
            stage.stop(load, max(self._plan.drain_s, _HUSH_S))
            stage.drain(last, self._plan.drain_s + (_LONGEST_WAITS_S if self._plan.seconds else 0.0))
            self._deaths.recovered(last)
            companions.end()
            stage.stop(last)
            self._say("the judge looks at it", self._plan.seconds)
            return Report(
                self._cast.seed,
                self._cast.fault,
                self._deaths.all,
                self._judged(),
                last.claimed_ms,
                monotonic() - began,
                stage.logs.complaints(full=self._cast.can_fill),
                self._mixed.struck,
            )

    def _judged(self) -> Judgement:
        judgement = judged(self._stage.ledgers, self._stage.home)
        return replace(judgement, violations=[*judgement.violations, *self._mixed.wrong])

    def _first_starts(self) -> None:
        """Kills during the making of the stores, before anything is in them; then a start that is let be."""
        making = sorted({name for name in self._plan.aims if name.startswith("migrate.")}, key=_made)
        for _ in range(self._plan.times if making else 0):
            shutil.rmtree(self._stage.home / "data", ignore_errors=True)
            self._deaths.missed([name for name in making if not self._aimed({name: 1})])
        whole = self._stage.fork()
        self._stage.ready(whole)
        self._deaths.recovered(whole)
        self._stage.stop(whole)

    def _at_points(self) -> None:
        """Each life dies at whichever point it comes to first: nobody waits for one that comes seldom."""
        aims = Aims((name for name in self._plan.aims if not name.startswith("migrate.")), self._chance)
        last, reached = monotonic(), BY_CHANCE
        while aims.left and monotonic() - last < _IN_VAIN_S:
            reached = self._aimed(aims.dealt(at_once=not reached), _REACH_S + (monotonic() - last) / 2)
            aims.reached(reached)
            last = monotonic() if reached else last
        self._deaths.missed(aims.left)

    def _aimed(self, aims: Mapping[str, int], within_s: float = _REACH_S) -> str:
        """A life that is to die at one of some points; returns where it did, "" if it came to none in time."""
        self._say(f"at the first of {len(aims)} points" if len(aims) > 1 else min(aims))
        self.companions.strike()
        life = self._deaths.aimed(aims)
        try:
            code = life.wait(within_s)
        except subprocess.TimeoutExpired:
            life.kill()
            code = 0
        if code and not life.reached:
            raise StageError(f"a life that was to die at {min(aims)} ended with {code}\n{self._stage.logs.tails()}")
        self._deaths.died(life, life.reached or BY_CHANCE)
        return life.reached

    def _at_any_moment(self, companions: Companions) -> None:
        for life in lives(self._cast.seed, self._plan.kills):
            self._say(BY_CHANCE)
            companions.strike()
            fork = self._stage.fork()
            live(self._stage, fork, life)
            if life.killed:
                self._deaths.died(fork, BY_CHANCE)
            else:
                self._deaths.recovered(fork)

    def _mixed_up(self) -> None:
        """Faults of every kind at once, for as long as planned."""
        if self._plan.seconds:
            self._mixed.run(self._plan.seconds, lambda past_s, what: self._say(what, past_s))

    def _claim(self, life: Fork) -> None:
        self._stage.ready(life)
        self._stage.until(lambda: life.claimed_ms is not None, life, _REACH_S, "work is claimed after the start")

    def _say(self, what: str, past_s: float = 0.0) -> None:
        """Tell how far it is; the deaths of mixed faults are not counted, but how long these have gone on."""
        kills = self._plan.total - self._plan.seconds
        self._tell(min(len(self._deaths.all), kills) + int(past_s), self._plan.total, what)


def _made(name: str) -> tuple[bool, int, bool]:
    """The order in which the stores are made: buffer, then memory, step by step."""
    _, part, number, side = name.split(".")
    return part != "buffer", int(number), side == "after"
