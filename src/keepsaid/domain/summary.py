"""Summaries: text that stands for an older span of a lane's transcript (seed 003, Compaction and summarisation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

from keepsaid.domain.message import Trust
from keepsaid.domain.tokens import estimate_tokens

_LINES_MAX = 60
_LINE_CHARS_MAX = 400
_BULLET = "- "


@dataclass(frozen=True, slots=True)
class Sections:
    """What a summary says, under the five headings of seed 003; each line is one thing, the oldest first."""

    goals: tuple[str, ...] = ()
    decisions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()

    @property
    def count(self) -> int:
        """How many things it says."""
        return sum(len(getattr(self, name)) for name in HEADINGS)


HEADINGS = {
    "goals": "Current goals / open questions",
    "decisions": "Decisions made",
    "facts": "Important facts",
    "outcomes": "Recent outcomes",
    "pending": "Pending actions",
}
"""The headings, by the names of the sections."""

assert tuple(HEADINGS) == tuple(field.name for field in fields(Sections)), "every section has its heading"

EXTRACTED = "(Picked from the conversation word for word; no model has written this.)"
"""How a summary begins that no model wrote."""


class Made(StrEnum):
    """Who wrote a summary: a model, or the program itself, by picking sentences."""

    MODEL = "model"
    EXTRACTIVE = "extractive"


@dataclass(frozen=True, slots=True)
class Summary:
    """What stands for the transcript of a lane up to position `last`.

    `first` to `last` are the records this version took in; what came before them is in its text by way of the
    version before. `model` names who wrote it, "" for none; `created_at` is milliseconds UTC. `trust` is the least of
    all that it stands for, None where none is stored.
    """

    version: int
    first: int
    last: int
    text: str
    made: Made
    model: str = ""
    created_at: int = 0
    trust: Trust | None = field(default=None, compare=False)


def tidied(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines as a section holds them: each on one line and of bounded length, none twice, the newest sixty."""
    whole = (" ".join(line.split())[:_LINE_CHARS_MAX].rstrip() for line in lines)
    newest_last = {line.casefold(): line for line in whole if line}
    return tuple(newest_last.values())[-_LINES_MAX:]


def written(sections: Sections, made: Made, tokens_max: int) -> str:
    """The text of a summary, in at most so many estimated tokens; of what is too much the oldest lines of the
    longest section go first."""
    kept = {name: list(tidied(getattr(sections, name))) for name in HEADINGS}
    costs = {name: [estimate_tokens(line) + 1 for line in lines] for name, lines in kept.items()}
    while sum(map(sum, costs.values())) > tokens_max - _COST_OF_HEADINGS and any(kept.values()):
        longest = max(HEADINGS, key=lambda name: sum(costs[name]))
        del kept[longest][0], costs[longest][0]
    parts = [EXTRACTED] if made is Made.EXTRACTIVE else []
    parts += [
        "\n".join((f"{HEADINGS[name]}:", *(_BULLET + line for line in kept[name] or ["none"]))) for name in HEADINGS
    ]
    return "\n\n".join(parts)


def _section(name: str, lines: Sequence[str]) -> str:
    return "\n".join((f"{HEADINGS[name]}:", *(_BULLET + line for line in lines or ["none"])))


def read(text: str) -> Sections:
    """The sections of a summary's text; what stands under no heading is left out."""
    found: dict[str, list[str]] = {name: [] for name in HEADINGS}
    names = {f"{heading}:": name for name, heading in HEADINGS.items()}
    at = ""
    for line in text.splitlines():
        at = names.get(line, at)
        if at and line.startswith(_BULLET) and line != f"{_BULLET}none":
            found[at].append(line.removeprefix(_BULLET))
    return Sections(**{name: tuple(lines) for name, lines in found.items()})


_COST_OF_HEADINGS = 60
"""Estimated tokens of a summary that says nothing."""
