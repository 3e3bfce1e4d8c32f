"""The block: how recalled memory is written for a model, one line a memory (seed 001, section 3)."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from functools import lru_cache

from keepsaid.domain.memory import Kind, Memory
from keepsaid.text.normal import cut

PINNED = "[Pinned context]"
RELEVANT = "[Relevant to this message]"

_SPEAKER_CHARS = 60
_SPEAKER_READ = 256
_DAY_MS = 86_400_000
_CONTEXT = 80
_LAST_MS = 253_402_300_799_999
_BRACKETED = re.compile(r"\[([^\[\]]{1,80})\]")
_ROUND = str.maketrans("[]", "()")


def _letters(name: str) -> str:
    return "".join(letter for letter in name if letter.isalnum()).casefold()


_RESERVED = frozenset(_letters(name) for name in (PINNED, RELEVANT, "Context from memory", *Kind))


def folded(text: str) -> str:
    """A text on one line, in which nothing in brackets can pass for a heading or label of ours."""
    text = " ".join(text.split())
    return _BRACKETED.sub(_disarmed, text) if "[" in text else text


def _disarmed(found: re.Match[str]) -> str:
    return f"({found.group(1)})" if _letters(found.group(1)) in _RESERVED else found.group(0)


def date(said_at: int) -> str:
    """The day of a time in milliseconds UTC, as 2026-11-20; empty when the time is not known."""
    return _day(said_at // _DAY_MS) if 0 < said_at <= _LAST_MS else ""


@lru_cache(1_024)
def _day(number: int) -> str:
    return datetime.fromtimestamp(number * _DAY_MS // 1_000, UTC).date().isoformat()


def label(kind: Kind) -> str:
    """A kind of memory as a label: `[Episode]`, `[Thread summary]`."""
    return f"[{kind.replace('_', ' ').capitalize()}]"


def line(memory: Memory, chars_max: int, at: int = 0) -> str:
    """A memory on one line: `[Episode] alice, 2026-11-20: text`, and what ended: `[Fact] held until 2026-11-20: text`.

    Of a text longer than `chars_max` characters the part around place `at` is shown.
    """
    new = memory.new
    ends = "" if memory.valid_to is None else date(memory.valid_to)
    head = _head(new.kind, new.speaker[:_SPEAKER_READ], date(new.said_at), ends)
    start = 0 if at < chars_max - _CONTEXT else at - _CONTEXT
    # A fact begins with the name of who stated it, which the head has already.
    text = f"…{memory.text[start:]}" if start else memory.text.removeprefix(f"{new.speaker}: ")
    return f"{head} {folded(cut(text, chars_max))}"


@lru_cache(1_024)
def _head(kind: Kind, speaker: str, day: str, ends: str) -> str:
    speaker = cut(" ".join(speaker.split()).translate(_ROUND), _SPEAKER_CHARS)
    about = ", ".join(part for part in (speaker, day, ends and f"held until {ends}") if part)
    return f"{label(kind)} {about}:" if about else label(kind)
