"""Every regular expression and text function of the package takes linear time, on whatever text.

The subjects are found by walking the package. Times are those of the processor, of this thread alone; each is the least
of several runs, and a difference counts only above a floor that noise does not reach.
"""

from __future__ import annotations

import gc
import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from time import thread_time
from typing import Any

import apsw
import pytest
from tests.responsive.hostile_patterns import NAMES, repeated
from tests.responsive.made_values import Maker, Unmade, bound
from tests.responsive.recipes import EXEMPT, RECIPES
from tests.responsive.subjects import (
    WITHOUT_FUNCTIONS,
    Refused,
    Subject,
    all_functions,
    functions,
    is_callable,
    modules,
    reads_text,
    regexes,
)
from tests.responsive.watched_loop import slowness

pytestmark = pytest.mark.soak

SIZES = (1_250, 5_000)
"""Characters of every text, in the suite. What takes a quarter of a second for 80,000 takes at least 0.9 ms for 5,000
where its time is quadratic and 0.06 ms where it is cubic, and so much more than for 1,250 that it is a suspect."""

LONG = (20_000, 80_000)
"""Characters of the texts that took longest and of all suspects; with the soak tests, of every text."""

SLOWEST = 1
RATIO_MAX = 6.0
LIMIT_S = 0.250
FLOOR_S = 0.010
NOISE_S = 0.00005
"""A difference below the floor never counts; one above the noise makes a suspect, when it is there the next time."""

EARLY_S = 0.040
"""What takes so long for the shortest text, or grows to six times that for the next, needs no longer one."""

RUNS = 3
SHARES = 12
"""The subjects are divided, so that several processes can measure them."""


@contextmanager
def uncollected() -> Iterator[None]:
    """Garbage is not collected while the block runs, which would be charged to whoever is measured.

    Nor is what the subjects print or log kept: it holds texts that no report can carry.
    """
    gc.disable()
    logging.disable(logging.CRITICAL)
    try:
        with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
            yield
    finally:
        logging.disable(logging.NOTSET)
        gc.enable()


class Stopwatch:
    """Measures one subject; no text is given twice, so that nothing comes from a cache."""

    def __init__(self, subject: Subject) -> None:
        self._subject = subject
        self._count = 0

    def once(self, name: str, chars: int) -> float:
        """Seconds of one run."""
        self._count += 1
        text = repeated(name, chars, f" ab{self._count}")
        work = self._subject.given(text, self._count % 2 == 0)
        began = thread_time()
        with Refused():
            work()
        return thread_time() - began

    def least(self, name: str, chars: int) -> float:
        """Seconds of the fastest of several runs; as many with a text in pieces as with a whole one."""
        self._count += self._count % 2
        return min(max(self.once(name, chars), self.once(name, chars)) for _ in range(RUNS))

    def grows(self, name: str) -> bool:
        """Whether the longer of two short texts takes much more time than the shorter, however often it is tried."""
        short, long = SIZES
        return all(self.once(name, long) > RATIO_MAX * self.once(name, short) + NOISE_S for _ in range(RUNS))


def fault_of(subject: Subject, limit_s: float) -> str:
    """What is wrong with a subject; "" for nothing. Only suspects are measured with long texts."""
    watch = Stopwatch(subject)
    times: dict[str, float] = {}
    suspects: set[str] = set()
    for name in NAMES:
        before, times[name] = watch.once(name, SIZES[0]), 0.0
        if before < EARLY_S:
            times[name] = watch.once(name, SIZES[1])
        early = before >= EARLY_S or times[name] > RATIO_MAX * EARLY_S
        if early and (why := grown(watch, name, SIZES, RATIO_MAX * EARLY_S)):
            return why
        if times[name] > RATIO_MAX * before + NOISE_S and watch.grows(name):
            suspects.add(name)
    suspects.update(sorted(times, key=times.__getitem__)[-SLOWEST:])
    return next((why for name in sorted(suspects) if (why := grown(watch, name, LONG, limit_s))), "")


def whole_fault_of(subject: Subject, limit_s: float) -> str:
    """What is wrong with a subject; "" for nothing. Every text is long."""
    watch = Stopwatch(subject)
    return fault_of(subject, limit_s) or next((why for name in NAMES if (why := grown(watch, name, LONG, limit_s))), "")


def grown(watch: Stopwatch, name: str, sizes: tuple[int, int], limit_s: float) -> str:
    """Why a subject is too slow for the larger of two texts; "" when it is not. It is measured again to be sure."""
    short, long = sizes
    if watch.once(name, short) > limit_s and (before := watch.least(name, short)) > limit_s:
        return f"{before:.3f} s for {short:,} characters of {name!r}"
    before, after = watch.once(name, short), watch.once(name, long)
    if after <= min(RATIO_MAX * before + FLOOR_S, limit_s):
        return ""
    before, after = watch.least(name, short), watch.least(name, long)
    if after > RATIO_MAX * before + FLOOR_S:
        return f"{after / before:.1f} times as long for {long:,} characters of {name!r} ({after:.3f} s)"
    return f"{after:.3f} s for {long:,} characters of {name!r}" if after > limit_s else ""


def faults(share: int, found_in: Callable[[Subject, float], str]) -> dict[str, str]:
    """The subjects of one share that are too slow, each with the reason."""
    subjects = {**regexes(), **functions()}
    limit_s = LIMIT_S * slowness()
    mine = sorted(subjects)[share::SHARES]
    with uncollected():
        found = {name: found_in(subjects[name], limit_s) for name in mine}
    return {name: why for name, why in found.items() if why}


@pytest.mark.parametrize("share", range(SHARES))
def test_every_function_and_regex_takes_linear_time(share: int) -> None:
    assert faults(share, fault_of) == {}


@pytest.mark.soak
@pytest.mark.parametrize("share", range(SHARES))
def test_every_function_and_regex_takes_linear_time_on_every_long_text(share: int) -> None:
    assert faults(share, whole_fault_of) == {}


def test_the_walk_finds_what_reads_text() -> None:
    assert len(NAMES) >= 40
    assert "keepsaid.domain.spans._READERS[0]" in regexes()
    assert {"keepsaid.domain.text.normalise", "keepsaid.domain.spans.times_in"} <= functions().keys()
    assert (len(regexes()) > 100, len(functions()) > 400) == (True, True)


_OUTSIDE = re.compile(
    r"Connection|Path|Callable|Instance|Error|Exception|ExitStack|Fields|Found|NDArray|expr|Match|Config"
)
"""Annotations of what no text makes: files, databases, code, and what was read already."""


def needs_recipe(function: Callable[..., Any]) -> bool:
    """Whether a function reads a text and cannot be called with made-up arguments, though it needs nothing outside."""
    if not reads_text(function) or is_callable(function):
        return False
    return not any(_OUTSIDE.search(str(hint)) for hint in getattr(function, "__annotations__", {}).values())


def test_every_public_function_is_measured_or_has_a_reason() -> None:
    left = {name for name, function in all_functions() if not name.rpartition(".")[2].startswith("_")}
    unmeasured = {name for name, function in all_functions() if name in left and needs_recipe(function)}
    assert unmeasured - RECIPES.keys() - EXEMPT.keys() == set()


def test_exemptions_are_still_needed() -> None:
    known = dict(all_functions())
    assert [
        name for name in EXEMPT if name not in known or not (is_callable(known[name]) or needs_recipe(known[name]))
    ] == []
    there = [module.__name__ for module in modules()]
    for part in WITHOUT_FUNCTIONS.keys() - {"keepsaid.testing", "keepsaid.__main__"}:
        assert any(name.startswith(part) for name in there), part


def _searching_backwards(text: str) -> list[bool]:
    """As spans once read the word before each date: in all that stands before it."""
    before = re.compile(r"\b(before|after)\s+$")
    return [before.search(text[: found.start()]) is not None for found in re.finditer(r"\d{4}", text)]


SPACED = re.compile(r"\d\s*\s*x")


@pytest.mark.parametrize(
    "slow",
    [
        lambda text, _: lambda: _searching_backwards(text),
        lambda text, _: lambda: SPACED.search(text),
        lambda text, _: lambda: [one for one in text.split() if text.split().count(one) > 1],
    ],
)
def test_what_takes_quadratic_time_is_found(slow: Callable[[str, bool], Callable[[], Any]]) -> None:
    with uncollected():
        assert fault_of(Subject("slow", slow), LIMIT_S * slowness())


def test_what_is_made_up_holds_the_text() -> None:
    maker = Maker("a text")

    def takes(first: str, second: list[str], third: int) -> None:
        assert (first, second, third) == ("a text", ["a text"], 10_000)

    bound(takes, maker)()
    assert maker.held

    def wants(db: apsw.Connection) -> None:
        raise AssertionError

    with pytest.raises(Unmade):
        bound(wants, Maker("a text"))
