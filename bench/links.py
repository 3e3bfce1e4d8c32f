"""Reply links: whether the message that another answers is found, against links drawn by hand.

The data set is jkkummerfeld/irc-disentanglement (CC BY 4.0): its part `dev`, `*.ascii.txt` with `*.annotation.txt`.
Links are scored as by its `tools/evaluation/graph-eval.py`: pairs, of the messages from 1,000 on. Only what stands
before a message is shown for it. `predict` is the same for a program that brings its own reader of the data.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from keepsaid.text.references import REACH, MessageText, infer

TUNED_ON = ("2004-11-15_03", "2005-08-08_01", "2009-02-23_10", "2009-10-01_17", "2011-11-13_02", "2016-12-19_20")
"""The files that the weights of the signs were fitted to; all others were held out."""

_LINE = re.compile(r"\[(\d\d):(\d\d)\] (?:<([^>]*)> ?| \* (\S+) )(.*)")
_SCORED_FROM = 1_000
_DAY_MINUTES = 24 * 60

Links = set[tuple[int, int]]
"""Pairs of line numbers: a message and what it answers; a message that answers nothing is paired with itself."""

Guesser = Callable[[Sequence[MessageText], MessageText], "str | None"]


@dataclass(frozen=True, slots=True)
class Log:
    """One file: what people said, by number of line, how many lines there are, and the links of some."""

    name: str
    said: tuple[MessageText, ...]
    lines: int
    links: Links


@dataclass(frozen=True, slots=True)
class Score:
    """Counted pairs: right ones, guessed ones, true ones; the messages of people, and those placed right."""

    right: int = 0
    guessed: int = 0
    true: int = 0
    people: int = 0
    people_right: int = 0

    def __add__(self, other: Score) -> Score:
        """Both together."""
        return Score(
            self.right + other.right,
            self.guessed + other.guessed,
            self.true + other.true,
            self.people + other.people,
            self.people_right + other.people_right,
        )

    def shares(self) -> dict[str, float]:
        """Precision, recall, their F, and the share of people's messages placed right, in per cent."""
        return {
            "precision": _percent(self.right, self.guessed),
            "recall": _percent(self.right, self.true),
            "f": _percent(2 * self.right, self.guessed + self.true),
            "people_right": _percent(self.people_right, self.people),
            "people": self.people,
        }


def measure(folder: Path) -> dict[str, object]:
    """The figures of all files, of those the weights were fitted to, and of the others."""
    logs = [read(file) for file in sorted(folder.glob("*.annotation.txt"))]
    if not logs:
        raise SystemExit(
            f"there is no *.annotation.txt in {folder}: see docs/develop/benchmarks.md for where to get them"
        )
    began = perf_counter()
    ours = {log.name: score(log, _inferred) for log in logs}
    seconds = perf_counter() - began
    before = {log.name: score(log, _previous) for log in logs}
    tuned = [name for name in ours if name in TUNED_ON]
    held_out = [name for name in ours if name not in TUNED_ON]
    return {
        "all": _total(ours, ours),
        "tuned_on": {"files": tuned, **_total(ours, tuned)},
        "held_out": {"files": held_out, **_total(ours, held_out)},
        "previous_message": _total(before, before),
        "ms_each": round(1_000 * seconds / max(1, sum(one.people for one in ours.values())), 3),
    }


def predict(messages: Sequence[Mapping[str, object]], i: int) -> int:
    """The index of the message that number `i` answers, `i` for none; of `nick`, `text` and `system` of each.

    Without times, so that all count as said at once.
    """
    if messages[i]["system"]:
        return i
    earlier = (n for n in range(i - 1, -1, -1) if not messages[n]["system"])
    reach = [n for n, _ in zip(earlier, range(REACH), strict=False)][::-1]
    said = [MessageText(str(n), str(messages[n]["nick"]), str(messages[n]["text"])) for n in (*reach, i)]
    guess = infer(said[:-1], said[-1])
    return i if guess is None else int(guess.ref)


def read(annotation: Path) -> Log:
    """One file and its links."""
    name = annotation.name.removesuffix(".annotation.txt")
    lines = annotation.with_name(f"{name}.ascii.txt").read_text("utf-8", "replace").splitlines()
    return Log(name, tuple(_said(lines)), len(lines), _links(annotation.read_text("utf-8").splitlines()))


def score(log: Log, guesser: Guesser) -> Score:
    """The pairs that a guesser makes of the scored messages; what the server itself says answers nothing."""
    answered: dict[int, set[int]] = {}
    for line, target in log.links:
        answered.setdefault(line, set()).add(target)
    first = _SCORED_FROM if max(answered) >= _SCORED_FROM else 0
    scored = set(range(first, log.lines)) if first else set(answered)
    guessed: Links = {(line, line) for line in scored}
    people = right = 0
    for n, new in enumerate(log.said):
        line = int(new.ref)
        if line in scored:
            target = int(guesser(log.said[max(0, n - REACH) : n], new) or line)
            guessed = guessed - {(line, line)} | {(line, target)}
            people += line in answered
            right += target in answered.get(line, ())
    return Score(len(guessed & log.links), len(guessed), len(log.links), people, right)


def _inferred(history: Sequence[MessageText], new: MessageText) -> str | None:
    guess = infer(history, new)
    return None if guess is None else guess.ref


def _previous(history: Sequence[MessageText], _new: MessageText) -> str | None:
    return history[-1].ref if history else None


def _said(lines: Iterable[str]) -> Iterable[MessageText]:
    day = latest = 0
    for number, line in enumerate(lines):
        found = _LINE.fullmatch(line)
        if found is None:
            continue
        minute = day * _DAY_MINUTES + int(found[1]) * 60 + int(found[2])
        if minute < latest - _DAY_MINUTES // 2:
            day += 1
            minute += _DAY_MINUTES
        latest = minute
        nick = found[3] if found[3] is not None else found[4]
        yield MessageText(str(number), nick, found[5], minute * 60_000, nick)


def _links(lines: Iterable[str]) -> Links:
    links: Links = set()
    for line in lines:
        numbers = sorted(int(number) for number in line.split() if number != "-")
        if numbers:
            *targets, message = numbers
            links |= {(message, target) for target in targets} or {(message, message)}
    return links


def _total(scores: Mapping[str, Score], names: Iterable[str]) -> dict[str, float]:
    return sum((scores[name] for name in names), Score()).shares()


def _percent(part: int, whole: int) -> float:
    return round(100 * part / whole, 1) if whole else 0.0
