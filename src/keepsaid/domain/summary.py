"""Summaries: text that stands for an older span of a transcript, also one picked word for word (seed 003)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum

from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Record, Role
from keepsaid.text.tokens import estimate_tokens

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


_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_TOLD_CHARS_MAX = 160
_SENTENCES_MAX = 200
_WORDS_LEAST = 3
_UNSPACED_LEAST = 6
"""A sentence says something from three words on, or from six letters of a script that does without spaces."""

_DECIDED = re.compile(
    r"\b(decid\w*|decision|agreed?|settled on|let'?s|we(?:'ll| will) (?:go|use|take|do)|going with|chose|chosen|"
    r"confirm\w*)\b",
    re.IGNORECASE,
)
_PENDING = re.compile(
    r"\b(to ?do|need(?:s|ed)? to|have to|has to|must|should|remind\w*|don'?t forget|waiting (?:for|on)|pending|"
    r"next (?:step|week|month)|tomorrow|tonight|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|due|deadline|later|"
    r"i(?:'ll| will)|planning to|going to)\b",
    re.IGNORECASE,
)
_OUTCOME = re.compile(
    r"\b(done|finish\w*|fixed|works?|worked|fail\w*|broke\w*|errors?|tried|passed|complet\w*|solved|went|got|won|lost|"
    r"deployed|merged|sent|bought|booked)\b",
    re.IGNORECASE,
)
_TELLING = re.compile(
    r"\d|\b(my|i) (?:name|live|prefer|like|love|hate|work|am|was|have|own|need)\b|"
    r"\b(?:prefer|allergic|birthday|always|never)\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}")
_QUESTION = ("?", "？")


def extracted(earlier: Sequence[Sections], records: Iterable[Record]) -> Sections:
    """What these records decide, ask, tell, report and leave to be done, after what earlier summaries say."""
    found: dict[str, list[str]] = {name: [line for one in earlier for line in getattr(one, name)] for name in HEADINGS}
    for record in records:
        if record.role is Role.TOOL:
            continue
        who = record.speaker or ("assistant" if record.role is Role.ASSISTANT else "user")
        for sentence in _sentences(record.text):
            section = _extracted_section(sentence, record.role)
            if section:
                found[section].append(f"{who}: {sentence}")
        if record.attached:
            found["facts"].append(f"{who} attached {record.attached[:_TOLD_CHARS_MAX]}")
    return Sections(**{name: tidied(lines) for name, lines in found.items()})


def _sentences(text: str) -> list[str]:
    pieces = (" ".join(piece.split()) for piece in _SENTENCE.split(text[: _SENTENCES_MAX * _TOLD_CHARS_MAX]))
    said = [piece[:_TOLD_CHARS_MAX] for piece in pieces if _says_something(piece)]
    return said[:_SENTENCES_MAX]


def _says_something(piece: str) -> bool:
    return len(piece.split()) >= _WORDS_LEAST or (not piece.isascii() and len(piece) >= _UNSPACED_LEAST)


def _extracted_section(sentence: str, role: Role) -> str:
    """Under which heading a sentence belongs, "" where it may be left out."""
    if sentence.endswith(_QUESTION):
        return "goals" if role is Role.USER else ""
    if _DECIDED.search(sentence):
        return "decisions"
    if _PENDING.search(sentence):
        return "pending"
    if _OUTCOME.search(sentence):
        return "outcomes"
    return "facts" if _TELLING.search(sentence) or _NAME.search(sentence) else ""
