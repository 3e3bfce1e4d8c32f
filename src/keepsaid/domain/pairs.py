"""Pairs: two memories that stand close and say of no one slot which of them holds, and what was ruled of them."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from keepsaid.domain.commits import Commit


class Ruling(StrEnum):
    """What the newer of two memories is to the older."""

    SAME = "same"
    UPDATES = "updates"
    CONTRADICTS = "contradicts"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories that the same listeners hear; since when each holds stands beside it, in milliseconds UTC.

    They are `equal` where both fill one slot with one value: then nobody need be asked.
    """

    older: int
    newer: int
    texts: tuple[str, str]
    since: tuple[int, int]
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Ruled:
    """A ruling on a pair, and by which model; "" where none was asked."""

    older: int
    newer: int
    ruling: Ruling
    by: str = ""


@dataclass(frozen=True, slots=True)
class RulePairs(Commit[int]):
    """Keep rulings and do what they come to, each pair once; returns how many were new. `at` is milliseconds UTC.

    What is the same is merged, what updates takes the place of the older, what contradicts is associated with it.
    Nothing is deleted. Nobody's word takes the place of the owner's: it contradicts it.
    """

    rulings: tuple[Ruled, ...]
    at: int
