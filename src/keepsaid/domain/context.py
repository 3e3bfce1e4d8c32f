"""The context of a lane: the summary of its past (seed 003), and the records that follow."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import field, fields, replace
from enum import StrEnum

from keepsaid.domain import message, prompt, turn
from keepsaid.text.patterns import lazy
from keepsaid.text.tokens import estimate_tokens
from keepsaid.values import frozen

_LINES_MAX = 60
_LINE_CHARS_MAX = 400
_BULLET = "- "
_COST_OF_HEADINGS = 60
"""Estimated tokens of a summary that says nothing."""


@frozen
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


@frozen
class Summary:
    """The summary of a lane's transcript up to position `last`.

    `first` to `last` are the records this version took in; what came before them is in its text by way of the
    version before. `model` names who wrote it, "" for none; `created_at` is milliseconds UTC. `trust` is the least of
    all that it summarises, None where none is stored.
    """

    version: int
    first: int
    last: int
    text: str
    made: Made
    model: str = ""
    created_at: int = 0
    trust: message.Trust | None = field(default=None, compare=False)


def tidied(lines: Sequence[str]) -> tuple[str, ...]:
    """Lines as a section holds them: each on one line and of bounded length, none twice, the newest sixty."""
    whole = (" ".join(line.split())[:_LINE_CHARS_MAX].rstrip() for line in lines)
    newest_last = {line.casefold(): line for line in whole if line}
    return tuple(newest_last.values())[-_LINES_MAX:]


def written(sections: Sections, made: Made, tokens_max: int) -> str:
    """The text of a summary, in a limited number of estimated tokens; if it is too long, the oldest lines of the
    longest section are cut first."""
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


_SENTENCE = lazy(r"(?<=[.!?])\s+|(?<=[。！？])|\n+")
_TOLD_CHARS_MAX = 160
_SENTENCES_MAX = 200
_WORDS_LEAST = 3
_UNSPACED_LEAST = 6
"""A sentence says something from three words on, or from six letters of a script that does without spaces."""

_DECIDED = lazy(
    r"\b(decid\w*|decision|agreed?|settled on|let'?s|we(?:'ll| will) (?:go|use|take|do)|going with|chose|chosen|"
    r"confirm\w*)\b",
    re.IGNORECASE,
)
_PENDING = lazy(
    r"\b(to ?do|need(?:s|ed)? to|have to|has to|must|should|remind\w*|don'?t forget|waiting (?:for|on)|pending|"
    r"next (?:step|week|month)|tomorrow|tonight|by (?:mon|tues|wednes|thurs|fri|satur|sun)day|due|deadline|later|"
    r"i(?:'ll| will)|planning to|going to)\b",
    re.IGNORECASE,
)
_OUTCOME = lazy(
    r"\b(done|finish\w*|fixed|works?|worked|fail\w*|broke\w*|errors?|tried|passed|complet\w*|solved|went|got|won|lost|"
    r"deployed|merged|sent|bought|booked)\b",
    re.IGNORECASE,
)
_TELLING = lazy(
    r"\d|\b(my|i) (?:name|live|prefer|like|love|hate|work|am|was|have|own|need)\b|"
    r"\b(?:prefer|allergic|birthday|always|never)\b",
    re.IGNORECASE,
)
_NAME = lazy(r"(?<=[a-z,;:] )[A-Z][a-z]{2,}")
_QUESTION = ("?", "？")


def extracted(earlier: Sequence[Sections], records: Iterable[prompt.Record]) -> Sections:
    """What these records decide, ask, tell, report and leave to be done, after what earlier summaries say."""
    found: dict[str, list[str]] = {name: [line for one in earlier for line in getattr(one, name)] for name in HEADINGS}
    for record in records:
        if record.role is prompt.Role.TOOL:
            continue
        who = record.speaker or ("assistant" if record.role is prompt.Role.ASSISTANT else "user")
        for sentence in _sentences(record.text):
            if section := _extracted_section(sentence, record.role):
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


def _extracted_section(sentence: str, role: prompt.Role) -> str:
    """Under which heading a sentence belongs, "" where it may be left out."""
    if sentence.endswith(_QUESTION):
        return "goals" if role is prompt.Role.USER else ""
    if _DECIDED.search(sentence):
        return "decisions"
    if _PENDING.search(sentence):
        return "pending"
    if _OUTCOME.search(sentence):
        return "outcomes"
    return "facts" if _TELLING.search(sentence) or _NAME.search(sentence) else ""


TAIL_MAX = 1_000
"""Records of a lane that are read for a turn; a tail that is longer is summarised or cut before it gets there."""

POSTS_MAX = 10
"""The newest posts of schedules that are shown at most, of those between two turns of a lane."""


@frozen
class TranscriptSpan:
    """Records of a lane's transcript with their positions, oldest first."""

    records: tuple[prompt.Record, ...] = ()
    positions: tuple[int, ...] = ()


@frozen
class DroppedSpan:
    """A span that left a lane's context with version `version`: into a summary, or cut; `how` says which.

    `model` and `extractive` are summaries, `guard` and `reset` are cuts. A reset of nothing ends before it begins.
    """

    version: int
    first: int
    last: int
    how: str
    at: int


@frozen
class LaneSummary:
    """A summary with its lane; `messages` and `chars` count all that it and the ones before it took in.

    `external` says that the lane has held words from outside, also through a tool, `left` that it was reset after them.
    """

    lane: message.Lane
    summary: Summary
    messages: int = 0
    chars: int = 0
    external: bool = False
    left: bool = False


@frozen
class Block:
    """What an earlier turn was reminded of: the text it was shown, the memories in it, and where its records begin."""

    position: int
    text: str
    memories: tuple[int, ...] = ()
    trust: message.Trust = field(default=message.Trust.EXTERNAL, compare=False)


@frozen
class SchedulePost:
    """What a schedule said in the lane by itself, and the last position of the transcript when it did."""

    after: int
    text: str
    trust: message.Trust = field(default=message.Trust.EXTERNAL, compare=False)


@frozen
class Reminders:
    """What a lane was reminded of: `blocks` that are shown again, oldest first, and the memories given `lately`."""

    blocks: tuple[Block, ...] = ()
    lately: frozenset[int] = frozenset()


@frozen
class LaneTail:
    """The summary in force and the records after it.

    `version` is the fence: every change of a lane's context names the one it saw. `summarised_until` is the last
    position of the transcript that a summary covers, `floor` the last that was cut off by a guard or a reset,
    `head` the last of all; `positions` are those of the records. `left_out` counts the messages the guard cut off.
    After `attempts` summaries in a row that came to nothing none is tried before `next_at`. `used` is the most that a
    call of the lane's last turn was charged for, in tokens; 0 when the context changed since, or nobody knows.
    `reminders` are those of earlier turns, `posts` what schedules posted here since: no turn made them, and they
    are not records.
    """

    recent: turn.Recent = turn.Recent()
    positions: tuple[int, ...] = ()
    summary: Summary | None = None
    summarised_until: int = 0
    floor: int = 0
    version: int = 0
    left_out: int = 0
    head: int = 0
    attempts: int = 0
    next_at: int = 0
    used: int = 0
    reminders: Reminders = Reminders()
    posts: tuple[SchedulePost, ...] = ()

    @property
    def chars(self) -> int:
        """How many characters its records have."""
        return sum(record.chars for record in self.recent.records)

    @property
    def blocks(self) -> dict[int, Block]:
        """The earlier blocks that are shown, by the position of the record they stand before."""
        shown = set(self.positions)
        return {block.position: block for block in self.reminders.blocks if block.position in shown}

    @property
    def said_between(self) -> dict[int, tuple[str, ...]]:
        """The posts, by the position of the record that they stand behind; 0 for those before the first.

        What was posted before an older record that is left out is left out as well.
        """
        found: dict[int, tuple[str, ...]] = {}
        for post in self.posts:
            place = bisect_right(self.positions, post.after)
            if place or not self.positions or post.after >= self.positions[0] - 1:
                at = self.positions[place - 1] if place else 0
                found[at] = (*found.get(at, ()), post.text)
        return found

    @property
    def recalling(self) -> turn.Recent:
        """The records, with the memories that earlier blocks show, and those that are not to be given again."""
        standing = frozenset(one for block in self.blocks.values() for one in block.memories)
        return replace(self.recent, standing=standing, lately=self.reminders.lately)

    @property
    def standing_for(self) -> str:
        """What precedes the records: the summary, and how much was left out for lack of space."""
        said = [self.summary.text] if self.summary is not None else []
        if self.left_out:
            many = "1 older message was" if self.left_out == 1 else f"{self.left_out} older messages were"
            said.append(f"[System: {many} left out here, because the prompt would not have fitted]")
        return "\n\n".join(said)

    @property
    def covered(self) -> int:
        """The last position that is not part of the tail."""
        return max(self.summarised_until, self.floor)
