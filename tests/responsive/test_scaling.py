"""Every regular expression and text function of the package takes linear time, on whatever text.

The subjects are found by walking the package. Times are those of the processor, of this thread alone. Every text is
given in two short sizes; only the slowest of them, and those that grow too fast, are given in long ones. A subject
fails when it is too slow each time it is measured, so that a busy machine fails none.
"""

import gc
import logging
import re
import unicodedata
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

SIZES = (500, 2_500)
"""Characters of every text. Work that takes 0.25 s for 80,000 takes 0.24 ms for 2,500 where its time is quadratic."""

GROWTH_MAX = 5.75
"""A text whose time grows more from the first size to the second is measured with long ones."""

LONG = (20_000, 80_000)
"""Characters of the text that took longest, and of those that grew too fast; in the soak tests, of every text."""

MIDDLE = (2_500, 10_000)
"""Characters of a text that grew too fast, before it is given in longer ones, which might take minutes."""

RATIO_MAX = 6.0
LIMIT_S = 0.250
FLOOR_S = 0.010
"""A time below the floor is short enough, whatever its growth."""

NOISE_S = 0.000_03
SHORT_S = 0.000_03
"""A time for the second size that does not come to `FLOOR_S` for 80,000 characters, even if it is quadratic."""

EARLY_S = 0.020
"""A text that takes so long in the first size is not given in longer ones before it is judged."""

ROUNDS = 4
"""A subject fails when it is too slow so many times in a row."""

SHARES = 8
"""The subjects are divided, so that a failure names few, and several processes can share the soak tests."""


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

    def __init__(self, subject: Subject, slowness: Callable[[], float]) -> None:
        self._subject = subject
        self._slowness = slowness
        self._count = 0
        self._ways = (False, True) if subject.has_pieces else (False,)

    def once(self, name: str, chars: int) -> float:
        """Seconds of the work on a text; where it may be given in pieces, the longer of both times."""
        return max(self._measured(name, chars, in_pieces) for in_pieces in self._ways)

    def _measured(self, name: str, chars: int, in_pieces: bool) -> float:
        self._count += 1
        work = self._subject.given(repeated(name, chars, f" ab{self._count}"), in_pieces)
        began = thread_time()
        with Refused():
            work()
        return thread_time() - began

    def grows(self, name: str) -> bool:
        """Whether the time grows too fast between two short texts, however often it is measured."""
        short, long = SIZES
        return all(self.once(name, long) > GROWTH_MAX * self.once(name, short) + NOISE_S for _ in range(ROUNDS))

    def fault(self, name: str, sizes: tuple[int, int] = LONG) -> str:
        """Why the subject is too slow for a text; "" when it is not."""
        why = ""
        for _ in range(ROUNDS):
            why = self._fault(name, sizes)
            if not why:
                break
        return why

    def _fault(self, name: str, sizes: tuple[int, int]) -> str:
        short, long = sizes
        before = self.once(name, short)
        if before > LIMIT_S and before > LIMIT_S * self._slowness():
            return f"{before:.3f} s for {short:,} characters of {name!r}"
        after = self.once(name, long)
        if after > RATIO_MAX * before + FLOOR_S:
            return f"{after / before:.1f} times as long for {long:,} characters of {name!r} ({after:.3f} s)"
        if after > LIMIT_S and after > LIMIT_S * self._slowness():
            return f"{after:.3f} s for {long:,} characters of {name!r}"
        return ""


def fault_of(subject: Subject) -> str:
    """Why a subject is too slow; "" when it is not."""
    watch = Stopwatch(subject, slowness)
    times: dict[str, float] = {}
    for name in NAMES:
        before = watch.once(name, SIZES[0])
        if before > EARLY_S and (why := watch.fault(name, SIZES)):
            return why
        times[name] = watch.once(name, SIZES[1])
        if times[name] > GROWTH_MAX * before + NOISE_S and watch.grows(name):
            why = watch.fault(name, MIDDLE) or watch.fault(name)
            if why:
                return why
    slowest = max(times, key=times.__getitem__)
    return watch.fault(slowest) if times[slowest] > SHORT_S else ""


def whole_fault_of(subject: Subject) -> str:
    """Why a subject is too slow; "" when it is not. Every text is long."""
    watch = Stopwatch(subject, slowness)
    return fault_of(subject) or next((why for name in NAMES if (why := watch.fault(name))), "")


def faults(share: int, found_in: Callable[[Subject], str]) -> dict[str, str]:
    """The subjects of one share that are too slow, each with the reason."""
    subjects = {**regexes(), **functions()}
    mine = sorted(subjects)[share::SHARES]
    with uncollected():
        found = {name: found_in(subjects[name]) for name in mine}
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
    assert "keepsaid.text.time_spans._READERS[0]" in regexes()
    assert {"keepsaid.text.normal.normalise", "keepsaid.text.time_spans.times_in"} <= functions().keys()
    assert (len(regexes()) > 100, len(functions()) > 400) == (True, True)


_OUTSIDE = re.compile(
    r"Connection|(?:Sql|Memory|Sqlite)Session|Path|Callable|Instance|Error|Exception|ExitStack|Fields|Found|NDArray|expr|Match|Config"
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
        lambda text, _: lambda: unicodedata.normalize("NFC", text),
        lambda text, _: lambda: [one for one in text.split() if text.split().count(one) > 1],
    ],
)
def test_what_takes_quadratic_time_is_found(slow: Callable[[str, bool], Callable[[], Any]]) -> None:
    with uncollected():
        assert fault_of(Subject("slow", slow))


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
