"""Extraction: a summary picked word for word from what was said, without a model; the same words give the same."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.summary import HEADINGS, Sections, tidied

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
            section = _section(sentence, record.role)
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


def _section(sentence: str, role: Role) -> str:
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
