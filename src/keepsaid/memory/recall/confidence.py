"""Confidence: how far a leg's answer to this query can be relied on, beside its answers to most queries.

1 stands for the answer a leg gives to most; the weight of the leg is multiplied with it. Each looks at scores alone,
so that one configuration fits short messages and long ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from keepsaid.domain.memory import Found

Confidence = Callable[[Sequence[Found]], float]

_LEAST, _MOST = 1 / 3, 3.0
"""However sure or unsure a leg is, it is no more and no less than so many times as sure as with most queries."""

_COVERED = 0.4
"""The share of a query's words, by how rare they are, that the best match has with most queries."""

_BESIDE, _SPREAD = 10, 0.3
"""How far the nearest memory stands before the eleventh with most queries, as a share of its own score."""


def steady(found: Sequence[Found]) -> float:  # noqa: ARG001 - the signature of Confidence
    """A leg that is always as sure."""
    return 1.0


def coverage(found: Sequence[Found]) -> float:
    """For scores that are shares of what all words of the query together would come to: how much the best has."""
    return _bounded((found[0].score / _COVERED) ** 0.5) if found else 1.0


def spread(found: Sequence[Found]) -> float:
    """For scores that crowd together where nothing fits: how far the best stands out."""
    if len(found) <= _BESIDE or found[0].score <= 0:
        return 1.0
    return _bounded((1 - found[_BESIDE].score / found[0].score) / _SPREAD)


def _bounded(value: float) -> float:
    return min(max(value, _LEAST), _MOST)
