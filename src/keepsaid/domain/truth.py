"""Truth in time: from all that was said of one slot, what held when. A pure rule, the same in whatever order it came.

Statements stand in the order of their starts. One of another value ends the one before it, at its own start; those of
one value in a row are one period. A person's correction outranks what was extracted from words said before it: such a
statement never held, however late it begins.
A period is ended only by what everybody hears who hears the period.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from keepsaid.domain.visibility import within


@dataclass(frozen=True, slots=True)
class SlotStatement:
    """One statement about a slot, under its key; times are milliseconds UTC.

    It holds from `start`, until `ends` if it says so. `memory_id` is the memory that has it, 0 for none yet; one that
    `founds` gave that memory its name.
    """

    key: str
    value: str
    scope: str
    start: int
    said_at: int
    ends: int | None = None
    corrects: bool = False
    memory_id: int = 0
    founds: bool = False

    @property
    def place(self) -> tuple[int, int, bool, str]:
        """Where it stands among the others."""
        return self.start, self.said_at, self.corrects, self.key


@dataclass(slots=True)
class Period:
    """A time in which one value held, in one scope: the keys of the statements that say so, in order.

    `founder` is the one that names its memory. It held until `until`, and `after` is the statement that ended it.
    """

    value: str
    scope: str
    start: int
    told: list[SlotStatement] = field(default_factory=list)
    until: int | None = None
    after: SlotStatement | None = None

    @property
    def founder(self) -> SlotStatement:
        """The statement that gave the memory its name, or is to give it: the first."""
        return next((one for one in self.told if one.founds), self.told[0])

    @property
    def ends(self) -> int | None:
        """When it ends by its own word: the last that was said of it; what is told again after that went on."""
        said = [(one.said_at, one.key, one.ends) for one in self.told if one.ends is not None]
        ends = max(said)[2] if said else None
        return None if ends is None or any(one.start >= ends for one in self.told) else ends

    def takes(self, told: SlotStatement, scope: str) -> bool:
        """Whether a statement that follows says that it goes on; a memory of `scope` is not taken for another."""
        both_found = told.founds and told.scope == scope and any(one.founds and one.scope == scope for one in self.told)
        return told.value == self.value and not both_found

    def close(self, told: SlotStatement | None) -> None:
        """End it by what was told next, or by its own word, whichever is first."""
        self.until = self.ends
        if told is not None and (self.until is None or told.start < self.until):
            self.until, self.after = told.start, told


def periods(told: Sequence[SlotStatement]) -> list[Period]:
    """What held when, in each scope that anything was said in; every statement is in exactly one period."""
    return [period for scope in sorted({one.scope for one in told}) for period in _of(scope, told)]


def _of(scope: str, told: Sequence[SlotStatement]) -> Iterator[Period]:
    heard = sorted((one for one in told if within(scope, one.scope)), key=lambda one: one.place)
    corrections = [one for one in heard if one.corrects]
    found: list[Period] = []
    current: Period | None = None
    apart = False
    for one in heard:
        word = next((by for by in corrections if _outranks(by, one)), None)
        if word is not None:
            # it ends nothing; but what follows it is a period of its own, so that no two ever become one
            found.append(Period(one.value, scope, one.start, [one], one.start, word))
            apart = True
        elif current is not None and not apart and current.takes(one, scope):
            current.told.append(one)
        else:
            if current is not None:
                current.close(one)
            current, apart = Period(one.value, scope, one.start, [one]), False
            found.append(current)
    if current is not None:
        current.close(None)
    for period in found:
        period.told = [one for one in period.told if one.scope == scope]
        if period.told:
            period.start = period.told[0].start
            yield period


def _outranks(by: SlotStatement, one: SlotStatement) -> bool:
    """Whether a correction says that a statement never held."""
    extracted = not one.corrects and one.said_at <= by.said_at
    return extracted and by.start <= one.start and by.value != one.value
