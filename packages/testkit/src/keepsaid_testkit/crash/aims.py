"""The aims: at which points lives are still to die. A life dies at the first that it comes to of those it is given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from random import Random

_GIVEN = 0.7
"""The share of what is left that one life is given: so the same moment of a life is not always its last."""
_PASSES = (1, 1, 2, 3)
_SELDOM = (
    "commit.VoidLeases.",
    "commit.Doubt.",
    "commit.Beat.",
    "commit.RequeueCrashed.",
    "commit.ExpireLeases.",
    "commit.Decide.",
    "commit.Requeue.",
    "commit.Release.",
    "commit.Fail.",
    "commit.MarkReplyShown.",
    "commit.Renew.",
    "commit.RequeueCollection.",
    "commit.Invalidate.",
    "commit.Drop.",
    "commit.Tell.",
    "commit.BeginPruning.",
    "commit.DecideDelivery.",
    "commit.Subscribe.",
    "commit.Unsubscribe.",
    "commit.AddSchedule.",
    "commit.ReplaceSchedules.",
    "commit.RunNow.",
    "commit.MoveSchedule.",
    "commit.RecoverRuns.",
    "commit.Prune.",
    "commit.RunTask.",
    "commit.CancelTask.",
    "commit.DecideTask.",
    "commit.CreateTasks.",
    "commit.ExpireTasks.",
    "commit.RenewTask.",
    "commit.MarkTasksReported.",
    "relay.",
    "block.",
)
"""What a life comes to once, or not every few seconds: it dies at the first pass."""

BACKED_UP, STOPPED, AGED, SERVED = "backup.", "commit.Relinquish.", "block.", ""
"""The ways of life that lead to points, each by the beginning of their names: a backup, an end, age, and any other."""


def way_to(point: str) -> str:
    """The way of life that leads to a point."""
    return next(way for way in (BACKED_UP, STOPPED, AGED, SERVED) if point.startswith(way))


class Aims:
    """Points, each as often as it is named."""

    def __init__(self, points: Iterable[str], chance: Random) -> None:
        self._left = Counter(points)
        self._chance = chance

    @property
    def left(self) -> list[str]:
        """What is still to be reached, each once."""
        return sorted(self._left)

    def dealt(self, *, at_once: bool = False) -> Mapping[str, int]:
        """Return the points that the next life is given, all on one way, and at which pass of each it dies.

        With `at_once` that is the first pass: the life before reached none, and may have been given too late a pass.
        """
        first = self._chance.choice(self.left)
        way = way_to(first)
        given = [one for one in self.left if one == first or (way_to(one) == way and self._chance.random() < _GIVEN)]
        return {name: 1 if at_once else self._at_pass(name, way) for name in given}

    def reached(self, point: str) -> None:
        """A life has died there."""
        self._left -= Counter([point])

    def _at_pass(self, point: str, way: str) -> int:
        return 1 if way != SERVED or point.startswith(_SELDOM) else self._chance.choice(_PASSES)
