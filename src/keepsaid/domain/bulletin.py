"""Bulletins: a standing briefing of what is known in one scope, picked, ordered and rendered (seed 001, Cortex)."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from itertools import islice

from keepsaid.domain.memory import IMPORTANCE, Kind, Memory
from keepsaid.domain.message import Trust
from keepsaid.text.normal import cut, digest
from keepsaid.values import frozen

MINUTE_MS = 60_000
_LINE_CHARS_MAX = 240
_WORD = re.compile(r"\S+")


@frozen
class BulletinSection:
    """A part of a bulletin: of these kinds the `most` newest, or the most important."""

    heading: str
    kinds: tuple[Kind, ...]
    most: int
    newest: bool = True


_REST = (Kind.TODO, Kind.FACT)
SECTIONS = (
    BulletinSection("Identity", (Kind.IDENTITY,), 15, newest=False),
    BulletinSection("Recent", tuple(IMPORTANCE), 15),
    BulletinSection("Decisions", (Kind.DECISION,), 10),
    BulletinSection("Important", _REST, 10, newest=False),
    BulletinSection("Preferences", (Kind.PREFERENCE,), 10, newest=False),
    BulletinSection("Goals", (Kind.GOAL,), 10),
    BulletinSection("Events", (Kind.EVENT,), 10),
    BulletinSection("Observations", (Kind.OBSERVATION,), 5),
)
"""The sections of a bulletin in order (seed 001). What stands in one stands in no other: `Recent` has what is left."""


@frozen
class Material:
    """What a bulletin may be made of: memories of one scope that hold now, and the store's revision."""

    memories: tuple[Memory, ...]
    revision: int

    @property
    def digest(self) -> str:
        """Names exactly what is there to tell: another bulletin is worth making only when it changed."""
        parts = (f"{memory.id}\0{memory.text}" for memory in picked(self.memories))
        return digest(*parts).hex()


@frozen
class Edition:
    """What a bulletin was made of: the store's revision, a digest of what there was to tell, and the memories it tells.

    `model` wrote it and used `tokens`; "" where it is rendered word for word. `trust` is the least of the
    memories; nothing from outside is among them.
    """

    revision: int
    material: str
    memories: tuple[int, ...]
    model: str = ""
    tokens: int = 0
    trust: Trust = Trust.KNOWN

    @property
    def by_model(self) -> bool:
        """Whether a model wrote it."""
        return bool(self.model)

    @property
    def as_json(self) -> str:
        """As it stands in the metadata of the memory."""
        return json.dumps(asdict(self), ensure_ascii=False)


def edition_in(metadata: str) -> Edition | None:
    """What the metadata of a bulletin says; None when it is none of ours."""
    try:
        stored = json.loads(metadata)
        memories, trust = tuple(map(int, stored["memories"])), Trust(stored.get("trust", Trust.KNOWN))
        made = str(stored["model"]), int(stored["tokens"]), trust
        return Edition(int(stored["revision"]), str(stored["material"]), memories, *made)
    except (ValueError, TypeError, KeyError):
        return None


@frozen
class Bulletin:
    """The bulletin of a scope as it is stored; one of version 0 is not there.

    `whole` says that all its sources still hold and are readable.
    """

    scope: str
    text: str = ""
    version: int = 0
    made_at: int = 0
    edition: Edition | None = None
    whole: bool = True


def bulletin_key(scope: str) -> str:
    """The name of the memory that is the bulletin of a scope."""
    return f"{Kind.BULLETIN}:{scope}"


def sectioned(memories: Sequence[Memory]) -> list[tuple[BulletinSection, list[Memory]]]:
    """The memories of each section; those of a kind of its own first, then the important, then the recent."""
    taken: set[int] = set()
    found: dict[str, list[Memory]] = {}
    for section in sorted(SECTIONS, key=lambda one: len(one.kinds)):
        there = [one for one in memories if one.new.kind in section.kinds and one.id not in taken]
        there.sort(key=lambda one: (one.new.said_at, one.id), reverse=True)
        if not section.newest:
            there.sort(key=lambda one: one.new.importance, reverse=True)
        found[section.heading] = there[: section.most]
        taken.update(one.id for one in found[section.heading])
    return [(section, found[section.heading]) for section in SECTIONS]


def picked(memories: Sequence[Memory]) -> list[Memory]:
    """What of the memories a bulletin tells, in its order."""
    return [memory for _, there in sectioned(memories) for memory in there]


def rendered(memories: Sequence[Memory], words_max: int) -> tuple[str, tuple[int, ...]]:
    """The bulletin without a model, and which memories it tells: of each section line after line while words last."""
    sections = [(section.heading, [(one.id, line(one)) for one in there]) for section, there in sectioned(memories)]
    kept: dict[str, list[tuple[int, str]]] = {heading: [] for heading, _ in sections}
    left = words_max
    longest = max((len(lines) for _, lines in sections), default=0)
    in_turn = ((heading, lines[n]) for n in range(longest) for heading, lines in sections if n < len(lines))
    for heading, (id_, text) in in_turn:
        if (words := len(text.split()) + (not kept[heading])) <= left:
            left -= words
            kept[heading].append((id_, text))
    parts = ["\n".join([f"{heading}:", *(text for _, text in lines)]) for heading, lines in kept.items() if lines]
    return "\n\n".join(parts), tuple(id_ for lines in kept.values() for id_, _ in lines)


def line(memory: Memory) -> str:
    """One memory, on one line, with the day it was said."""
    day = datetime.fromtimestamp(memory.new.said_at / 1_000, UTC).date()
    return f"- {cut(' '.join(memory.text.split()), _LINE_CHARS_MAX)} ({day})"


def shortened(text: str, words_max: int) -> str:
    """A text of a limited number of words, cut at the end of a sentence or line where one is near."""
    ends = [word.end() for word in islice(_WORD.finditer(text), words_max + 1)]
    if len(ends) <= words_max:
        return text
    kept = text[: ends[words_max - 1]] if words_max else ""
    end = 1 + max(map(kept.rfind, ".!?\n"))
    return kept[:end].rstrip() if end > len(kept) / 2 else kept
