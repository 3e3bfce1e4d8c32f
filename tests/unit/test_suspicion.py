"""Deaths of the process are evidence against a batch only where it lives much longer without that batch.

The lives of a process are drawn from many distributions, and a batch is in flight in each of them, until it is
answered or buried. Times are seconds here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import inf
from random import Random

import pytest

from keepsaid.domain.batch import (
    HELD_AFTER,
    LIVES_MAX,
    FatalTrial,
    PastLife,
    Suspicion,
    TrialEvidence,
    TrialTerms,
    charges,
    mean_life_ms,
    next_beat_ms,
    notice_text,
    trial_limit_ms,
)

Draw = Callable[[Random, int], float]
_SEEDS = 60
_LIVES_MAX = 400
_TRIAL_S_MAX = 60.0
_TERMS = TrialTerms()


@dataclass(frozen=True)
class Ending:
    """What became of a batch: `done`, `dead` or still `held`, after so many trials and seconds of running."""

    how: str
    trials: int
    seconds: float


def lived(age_s: float, trial_s: float | None = None) -> tuple[int, int]:
    """The last age a process recorded before it died, and the next it would have, in milliseconds."""
    trial_ms = None if trial_s is None else round(1_000 * trial_s)
    last = trial_ms or 0
    while (due := next_beat_ms(last, trial_ms)) <= 1_000 * age_s:
        last = due
    return last, due


def played(life: Draw, answer_s: Draw, seed: int, fuse_s: Draw | None = None) -> Ending:
    """Let one batch be worked on in one life after another; with a fuse it is poison."""
    chance = Random(seed)
    known, past, trials, ran = Suspicion(), list[PastLife](), 0, 0.0
    for n in range(_LIVES_MAX):
        lasts, needs = life(chance, n), answer_s(chance, n)
        fuse = inf if fuse_s is None else fuse_s(chance, n)
        held = known.crashes >= HELD_AFTER
        begins = known.trial_after_ms / 1_000 if held else chance.uniform(0.05, 1.5)
        ends = begins + min(needs, fuse)
        if fuse > needs and lasts > ends and (needs <= _TRIAL_S_MAX or not held):
            return Ending("done", trials, ran + ends)
        died = min(lasts, ends)
        ran += died
        if held and died >= begins:
            trials += 1
            trial = FatalTrial(round(1_000 * begins), lived(died, begins)[1])
            past = [*past, PastLife(trial.began_ms, has_died=False)][-LIVES_MAX:]
            known = known.after_death(trial, mean_life_ms(past), _TERMS)
        else:
            past = [*past, PastLife(lived(died)[0], has_died=True)][-LIVES_MAX:]
            known = known if died < begins else known.after_death(None, 0.0, _TERMS)
        if known.attempts >= 3:
            return Ending("dead", trials, ran)
    return Ending("held", trials, ran)


def exponential(mean_s: float) -> Draw:
    """Deaths that come at any moment."""
    return lambda chance, _: chance.expovariate(1 / mean_s)


def uniform(least_s: float, most_s: float) -> Draw:
    """Anything between."""
    return lambda chance, _: chance.uniform(least_s, most_s)


LOOPS: dict[str, Draw] = {
    "0 to 5 s": uniform(0, 5),
    "0 to 30 s": uniform(0, 30),
    **{f"{mean} s on average": exponential(mean) for mean in (1, 2, 5, 10, 20, 30, 60)},
    **{f"{length} s each": uniform(length, length) for length in (8, 10.5, 12, 15, 30, 100, 330)},
    "about 12 s": lambda chance, _: chance.gauss(12, 0.3),
    "about 30 s": lambda chance, _: chance.gauss(30, 1),
    "bursts after hours": lambda chance, n: chance.uniform(2, 20) if n // 20 % 2 else chance.expovariate(1 / 3_600),
    "a burst, then none": lambda chance, n: chance.uniform(8, 16) if n < 40 else 1e6,
    "heavy tails": lambda chance, _: 2 * chance.paretovariate(0.8),
    "young or old": lambda chance, _: chance.weibullvariate(10, 0.5),
}
ANSWERS: tuple[Draw, ...] = (uniform(1, 30), uniform(1, 1), uniform(5, 5), uniform(30, 30))


@pytest.mark.parametrize("loop", LOOPS)
def test_no_crash_loop_buries_an_innocent(loop: str) -> None:
    endings = [played(LOOPS[loop], answer, seed).how for answer in ANSWERS for seed in range(_SEEDS)]
    assert endings.count("dead") == 0


def test_innocent_batches_are_answered_once_the_process_lives_long_enough() -> None:
    for mean_s in (20, 30, 60):
        endings = [played(exponential(mean_s), uniform(1, 5), seed).how for seed in range(_SEEDS)]
        assert set(endings) == {"done"}


BOUNDS = {0.0: (6, 120), 0.2: (6, 120), 1.0: (7, 300), 5.0: (8, 600), 20.0: (9, 2_400), 40.0: (9, 5_400)}
"""How many trials, and how many seconds of running, a poison of each fuse may take where nothing else goes wrong."""


@pytest.mark.parametrize("fuse_s", BOUNDS)
def test_a_poison_is_buried_within_its_bounds(fuse_s: float) -> None:
    trials_max, seconds_max = BOUNDS[fuse_s]
    for life in (uniform(1e9, 1e9), exponential(86_400)):
        endings = [played(life, uniform(60, 60), seed, uniform(fuse_s, fuse_s)) for seed in range(_SEEDS)]
        assert {ending.how for ending in endings} == {"dead"}
        assert max(ending.trials for ending in endings) <= trials_max
        assert max(ending.seconds for ending in endings) <= seconds_max


def test_a_poison_that_strikes_nine_times_in_ten_is_buried_or_answered() -> None:
    def mostly(chance: Random, _: int) -> float:
        return 0.1 if chance.random() < 0.9 else inf

    endings = [played(uniform(1e9, 1e9), uniform(1, 1), seed, mostly).how for seed in range(_SEEDS)]
    assert endings.count("dead") > _SEEDS // 3
    assert set(endings) == {"dead", "done"}


def test_a_poison_is_buried_also_while_the_process_dies_of_other_things() -> None:
    endings = [played(exponential(60), uniform(1, 1), seed, uniform(0.1, 0.1)) for seed in range(_SEEDS)]
    assert {ending.how for ending in endings} == {"dead"}


def test_deaths_are_worth_nothing_where_nothing_is_known() -> None:
    assert charges(TrialEvidence(), 1e9) == 0
    assert charges(TrialEvidence(3, 750), 0.0) == 0
    assert mean_life_ms(()) == 0.0


def test_a_death_is_worth_one_charge_at_most() -> None:
    for deaths in (1, 2, 3, 500):
        assert charges(TrialEvidence(deaths, 1), 1e12) == min(deaths, charges(TrialEvidence(100, 1), 1e12))
    assert charges(TrialEvidence(3, 3_000), 3_000.0) == 0


def test_a_burst_of_crashes_counts_more_than_good_times_before_it() -> None:
    long, short = [PastLife(86_400_000, has_died=True)] * 50, [PastLife(1_000, has_died=True)] * 3
    assert mean_life_ms([*long, *short]) == 1_000
    assert mean_life_ms([*short, *long]) == 86_400_000
    assert mean_life_ms([PastLife(5_000, has_died=False)] * 2) == 10_000


def test_a_process_says_at_doubling_ages_that_it_lives() -> None:
    ages = [0]
    while ages[-1] < 86_400_000:
        ages.append(next_beat_ms(ages[-1]))
    assert ages[1:6] == [1_000, 2_000, 4_000, 8_000, 16_000]
    assert len(ages) < 40
    assert [next_beat_ms(age, 10_000) for age in (10_000, 10_250, 10_500, 14_000)] == [10_250, 10_500, 11_000, 18_000]


def test_a_trial_may_take_longer_after_each_that_was_survived() -> None:
    assert [trial_limit_ms(60_000, survived) for survived in (0, 1, 2, 9)] == [60_000, 120_000, 240_000, 960_000]


def test_a_notice_names_the_batch_and_the_deaths() -> None:
    assert notice_text("{batch} died {deaths} times {x}", "bat_1", 5) == "bat_1 died 5 times {x}"
