"""The weather of a play: how often what goes wrong, drawn from its seed."""

from __future__ import annotations

import random
from collections.abc import Sequence

from keepsaid.values import frozen

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
YEAR_MS = 365 * DAY_MS
JUMPS: Sequence[tuple[int, ...]] = ((-HOUR_MS,), (DAY_MS,), (10 * YEAR_MS,), (10 * YEAR_MS, -10 * YEAR_MS))
"""How the wall clock is set, milliseconds; a mistake may be set right again."""


@frozen
class FaultProfile:
    """Rates of faults and of load in one simulation. Shares are from 0 to 1, times in seconds.

    `points_mean` is the mean number of failpoints that a process passes before it dies at one, None if it dies at
    none; `deaths_s` is the mean time until it dies anywhere. `races` is the share of starts at which the former
    process is taken for dead and is not. `commands` is how often people send commands and the model asks them
    questions. `hearing` is how often a subscriber fails, hangs or is slow, None if there is no subscriber.
    `making` is how often the model starts work outside its turn, or for later. Once nothing goes wrong any more,
    everything must have ended within `calm_s`. `pauses` is how often people pause or resume their conversation;
    it is 0 unless a test asks for it. At the end they resume it.
    """

    points_mean: int | None
    deaths_s: float | None
    races: float
    model: float
    sends: float
    calls: float
    full: float
    slow_disk: float
    jumps: tuple[int, ...]
    stops: float
    turns_max: int
    people: int
    webhooks: int
    storm_s: float
    commands: float
    hearing: float | None
    making: float
    calm_s: float = 3 * 3_600.0
    pauses: float = 0.0


def draw_profile(chance: random.Random, aside: random.Random) -> FaultProfile:
    """Draw the fault profile of a seed: most profiles are mild, some are severe.

    Parameters that were added later are drawn from `aside`, so that the runs of older seeds do not change.
    """

    def share(*shares: float) -> float:
        return chance.choice(shares)

    return FaultProfile(
        points_mean=chance.choice((None, 12, 30, 80, 200)),
        deaths_s=chance.choice((None, 4.0, 15.0, 60.0)),
        races=share(0.0, 0.0, 0.2, 0.6),
        model=share(0.0, 0.1, 0.3, 0.6),
        sends=share(0.0, 0.1, 0.3, 0.6),
        calls=share(0.0, 0.05, 0.3),
        full=share(0.0, 0.0, 0.02, 0.08),
        slow_disk=share(0.0, 0.3, 0.8),
        jumps=tuple(ms for _ in range(chance.choice((0, 0, 0, 1, 2))) for ms in chance.choice(JUMPS)),
        stops=share(0.0, 0.0, 0.3),
        turns_max=chance.choice((1, 2, 4, 8)),
        people=chance.randint(1, 4),
        webhooks=chance.choice((0, 3, 8)),
        storm_s=chance.choice((15.0, 40.0, 90.0)),
        commands=aside.choice((0.0, 0.2, 0.4)),
        hearing=aside.choice((None, None, None, None, 0.0, 0.3)),
        making=aside.choice((0.0, 0.0, 0.0, 0.25)),
    )
