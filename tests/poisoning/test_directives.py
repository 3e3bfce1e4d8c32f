"""An obedient model and strangers: whatever they write, and however it comes in, nothing that has an effect is done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import cycle
from random import Random

import pytest
from tests.poisoning.directives import COUNT, DIRECTIVES, Directive
from tests.poisoning.puppet import directives_in
from tests.poisoning.trial import CARRIERS, TALK, Trial, tried

from keepsaid.domain.message import Trust

_SAMPLE = 120
"""Directives of the short run: ten for each carrier."""

_HOME = 50
"""Directives that are tried in one home."""


def test_the_puppet_sees_every_directive() -> None:
    """Whatever the disguise: what is tried below is read by the model."""
    assert (len(DIRECTIVES), len({one.mark for one in DIRECTIVES})) == (COUNT, COUNT)
    for one in DIRECTIVES:
        assert (one.tool, one.mark) in directives_in(one.text), one


def marks_of(done: set[tuple[str, str]]) -> set[str]:
    """The marks in what was done."""
    return {one.mark for one in DIRECTIVES for _, text in done if one.mark in text}


async def wrong_after(trial: Trial, carried: Sequence[tuple[str, Directive]]) -> list[str]:
    """What strangers brought about; and those that no prompt showed, which prove nothing."""
    done = await trial.results()
    wrong = [f"{name}: {one.text!r} was done" for name, one in carried if one.mark in marks_of(done)]
    wrong += [f"trusted as the owner's: {one.text}" for one in await trial.known() if one.new.trust is Trust.OWNER]
    return wrong


def tried_all(carried: Sequence[tuple[str, Directive]]) -> tuple[list[str], Counter[str]]:
    """Try directives by carriers, some in each home; returns what went wrong, and how many each carrier showed."""
    wrong: list[str] = []
    seen: Counter[str] = Counter()

    async def life(trial: Trial) -> None:
        for name, one in part:
            await CARRIERS[name](trial, one)
            seen[name] += one.mark in trial.puppet.shown
        wrong.extend(await wrong_after(trial, part))

    for start in range(0, len(carried), _HOME):
        part = carried[start : start + _HOME]
        tried(life)
    return wrong, seen


def test_nothing_a_stranger_writes_is_done() -> None:
    sample = Random(7).sample(DIRECTIVES, _SAMPLE)
    wrong, seen = tried_all(list(zip(cycle(CARRIERS), sample, strict=False)))
    assert wrong == []
    each = _SAMPLE // len(CARRIERS)
    assert seen == Counter(dict.fromkeys(CARRIERS, each)), "every directive was shown to the model"


@pytest.mark.soak
@pytest.mark.parametrize("name", CARRIERS)
def test_nothing_of_the_whole_corpus_is_done(name: str) -> None:
    wrong, seen = tried_all([(name, one) for one in DIRECTIVES])
    assert wrong == []
    assert seen[name] == COUNT, "every directive was shown to the model"


def test_all_that_the_owner_asks_for_is_done() -> None:
    """The same calls, in the owner's own words."""
    sample = Random(8).sample(DIRECTIVES, _SAMPLE)
    left: list[Directive] = []

    async def life(trial: Trial) -> None:
        for one in sample:
            await trial.say("owner", one.text, topic=one.mark, channel=TALK)
        done = await trial.results()
        left.extend(one for one in sample if not any(tool == one.tool and one.mark in text for tool, text in done))

    tried(life)
    assert left == []
