"""The simulator can fail: a runtime with a known fault is caught, with words for its breach."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from keepsaid_testkit.simulator.faults import FAULTS
from keepsaid_testkit.simulator.play import play

_SEEDS = 80
_FIRST: Mapping[str, int] = {"fenceless": 3, "careless": 6, "eager": 7, "certain": 17}
"""Seeds at which a fault was caught: the search begins there, and goes round."""
_CLEAN = 4
_WILD: Mapping[str, Any] = {"deaths_s": 5.0, "jumps": ()}
_LOST: Mapping[str, Any] = {**_WILD, "calm_s": 1_200.0}
_TOLD: Mapping[str, Any] = {"commands": 0.5, "people": 4, "model": 0.0}
_HEARD: Mapping[str, Any] = {"hearing": 0.0, "deaths_s": None, "points_mean": None}
_EARS: Mapping[str, Any] = {"hearing": 0.5, "jumps": (), "deaths_s": 8.0}
_MADE: Mapping[str, Any] = {"making": 0.6, "deaths_s": 12.0, "jumps": (), "people": 2, "webhooks": 0, "storm_s": 15.0}
_PAUSED: Mapping[str, Any] = {"pauses": 0.5, "people": 3, "webhooks": 0, "commands": 0.2}
_RACES: Mapping[str, Any] = {"deaths_s": 6.0, "races": 1.0, "points_mean": None, "model": 0.1, "storm_s": 40.0}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_caught(name: str) -> None:
    way, words = FAULTS[name]
    of = {"fenceless": _RACES, "deaf": _TOLD, "eager": _TOLD, "inattentive": _HEARD, "repeating": _HEARD}
    of |= {"absent": _MADE, "forgetful": _LOST}
    weather = of.get(name, _WILD)
    first = _FIRST.get(name, 0)
    seeds = (*range(first, _SEEDS), *range(first))
    caught = (breach for seed in seeds for breach in play(seed, way=way, changed=weather).breaches)
    assert any(words in breach for breach in caught)


_WEATHERS = (_WILD, _RACES, _TOLD, _EARS, _MADE, _PAUSED)


@pytest.mark.parametrize("weather", _WEATHERS)
def test_without_the_fault_nothing_is_found(weather: Mapping[str, Any]) -> None:
    for seed in range(_CLEAN):
        assert play(seed, changed=weather).breaches == []


@pytest.mark.soak
@pytest.mark.parametrize("weather", _WEATHERS)
def test_without_the_fault_nothing_is_found_in_many_seeds(weather: Mapping[str, Any]) -> None:
    for seed in range(_CLEAN, 200):
        assert play(seed, changed=weather).breaches == []
