"""Mischief: what a provider does wrong with a request, decided by a seed or by a script."""

from __future__ import annotations

import random
from collections.abc import Callable
from enum import StrEnum


class Mischief(StrEnum):
    """What is done with one request; `accept` is the way it should be."""

    ACCEPT = "accept"
    DROP = "drop"
    """The connection is reset before anything is read."""
    FAIL = "fail"
    """500, and nothing is done."""
    FAIL_AFTER = "fail after"
    """It is done, and answered by 500."""
    RESET_AFTER = "reset after"
    """It is done, and the connection is reset without an answer."""
    SLOW_DOWN = "slow down"
    """429: nothing is done, come again in a second."""
    GARBLE = "garble"
    """It is done, and the answer is not JSON."""

    @property
    def does(self) -> bool:
        """Whether the request is done, whatever its client hears."""
        return self in (Mischief.ACCEPT, Mischief.FAIL_AFTER, Mischief.RESET_AFTER, Mischief.GARBLE)


MischiefMaker = Callable[[str, int], Mischief]
"""Decides by the method that is called and by how many requests came before."""


def harmless(_method: str, _number: int) -> Mischief:
    """Do everything as it should be."""
    return Mischief.ACCEPT


def one_after_the_other(*acts: Mischief, method: str) -> MischiefMaker:
    """Do these to the first requests of a method, then nothing wrong any more."""
    left = list(acts)
    return lambda called, _number: left.pop(0) if called == method and left else Mischief.ACCEPT


def mischief_of(seed: int, trouble: float = 0.3) -> MischiefMaker:
    """Do something wrong with the share `trouble` of requests; the same seed does the same."""
    bad = [one for one in Mischief if one is not Mischief.ACCEPT]

    def decide(method: str, number: int) -> Mischief:
        chance = random.Random(f"mischief:{seed}:{method}:{number}")  # noqa: S311 - repeatable, not secret
        return chance.choice(bad) if chance.random() < trouble else Mischief.ACCEPT

    return decide
