"""Aims: lives are led to every point that is left, also to those that a life passes only once."""

from __future__ import annotations

from random import Random

import pytest

from keepsaid_testkit.crash.aims import Aims
from keepsaid_testkit.crash.points import points

_OFTEN = "commit.Receive.after"


def passes(*names: str, at_once: bool = False) -> set[int]:
    """At which passes a hundred lives would die."""
    aims = Aims(names, Random(1))
    return {n for _ in range(100) for n in aims.dealt(at_once=at_once).values()}


def test_a_life_dies_at_several_passes_of_what_comes_often() -> None:
    assert passes(_OFTEN) == {1, 2, 3}


def test_a_life_after_one_that_reached_nothing_dies_at_the_first_pass() -> None:
    assert passes(*points(), at_once=True) == {1}


@pytest.mark.parametrize(
    "point", ["relay.received", "commit.MarkTasksReported.before", "commit.MarkTasksReported.after"]
)
def test_a_result_is_told_once_a_life_so_that_its_first_pass_is_aimed_at(point: str) -> None:
    assert passes(point) == {1}
