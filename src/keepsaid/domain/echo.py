"""Echoes of what was forgotten: hashes of its sentences, by which the same sentence is recognised in other texts.

The hashes are stored, so how a sentence is cut out and folded here must not change.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from keepsaid.domain.text import digest
from keepsaid.domain.words import STOPWORDS, topic

AGENT = ""
"""Stands for the agent where the speaker of a text is named: an echo by it is one whoever said the sentence."""

SENTENCES_MAX = 200
"""Sentences of a text that are hashed; later ones are not recognised."""

_WORDS_MAX = 60
_SHORTEST = 3
_TELLING_LEAST = 2
_LED_BY_MAX = 6
_PARTS_MAX = 5

_ENDS = re.compile(
    r"(?<!\b[A-Za-z])(?<!\b[DMS][rst])(?<!\bMrs)[.!?\u2026]+(?=\s|$|[\"\u201d\u00bb)*_])"
    r"|[\n;:\"\u201c\u201d\u00ab\u00bb\u201e()\[\]{}|*_`\u3002\uff01\uff1f\uff1b\uff1a]+|\s[-\u2013\u2014]\s"
)
_PARTS = re.compile(r"[,\uff0c\u3001]")
_WORD = re.compile(r"[^\W_]+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that say something by which they can be recognised, each as its folded words."""
    for words, unit in _units(text):
        if len(words) <= _WORDS_MAX and _weight(words) >= _TELLING_LEAST and topic(unit):
            yield " ".join(words)


def sentence_digest(person: str, sentence: str) -> bytes:
    """The digest under which a sentence of a person is forgotten; AGENT for an echo of it by the agent."""
    return digest("sentence", person, sentence)


def echo_digests(person: str, text: str) -> tuple[bytes, ...]:
    """The digests of all sentences that a text of a person may repeat.

    A sentence is recognised between commas, and behind a few other words ("ok, I have noted that ...").
    """
    found: dict[str, None] = {}
    for _, unit in _units(text):
        parts = _PARTS.split(unit, _PARTS_MAX)
        for start in range(len(parts)):
            for end in range(start + 1, len(parts) + 1):
                found |= dict.fromkeys(_inner(_folded(" ".join(parts[start:end]))))
    return tuple(sentence_digest(person, one) for one in found)


def _units(text: str) -> Iterable[tuple[list[str], str]]:
    pieces = _ENDS.split(text, SENTENCES_MAX)[:SENTENCES_MAX]
    return ((words, unit) for unit in pieces if (words := _folded(unit)))


def _folded(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFC", text[: _WORDS_MAX * 40].casefold()))


def _weight(words: Sequence[str]) -> int:
    """How many words tell something; one of a script without spaces counts for each two characters."""
    telling = [word for word in words if word not in STOPWORDS and (len(word) >= _SHORTEST or not word.isascii())]
    telling += [word for word in words if word.isdecimal() and len(word) < _SHORTEST]
    return sum(1 if word.isascii() else max(1, len(word) // 2) for word in telling)


def _inner(words: Sequence[str]) -> Iterator[str]:
    for start in range(min(_LED_BY_MAX, len(words) - 1) + 1):
        if len(words) - start <= _WORDS_MAX:
            yield " ".join(words[start:])
