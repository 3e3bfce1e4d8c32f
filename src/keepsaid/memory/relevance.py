"""Relevance: whether a recalled memory is about the message at all, apart from its rank (design: section 4.3).

No model is asked, and no list of phrases. What speaks for a memory are the words it shares with the message, each by
how seldom it is said; how much nearer its meaning is than that of other memories; that it is by somebody the message
tells of; that something is asked, and that it holds most of what is asked for; and that it was kept for what it says,
not because it was said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from math import fsum

from keepsaid.domain.memory import LANE_BOUND, Hit, Memory
from keepsaid.memory.recall.legs import VECTOR
from keepsaid.text.chunks import grams, said_words
from keepsaid.text.dates import DAYS
from keepsaid.text.words import STOPWORDS, Rarity, fold, root, spelled

ENOUGH, ENOUGH_NEAR = 15.5, 17.5
"""What speaks for the best candidate before any is shown: by words alone, and where meaning is compared as well."""

SHARE = 0.5
"""And for each that is shown at least this part of it."""

EACH_WORD, NEARER, TOLD_OF, ASKED, KEPT = 1.0, 10.0, 4.0, 4.0, 6.0
"""A word that is shared, a cosine nearer than others; by somebody who is told of; something is asked; knowledge."""

COVERS = 7.0
"""It has a rare word of what is asked, and a good part of all: "who is my dentist?" says one thing.

Or it is knowledge, and has every word of what is asked, be they as common as they may: what is asked often and was
answered once.
"""

_WORDS_COVERED = 2
"""So many words at least."""

_COVERED, _RARE = 0.4, 0.85
"""Such a part of what all words of the question are worth; such a part of what a word is worth that is never said."""

_NEVER_SAID = ""

_MESSAGE_CHARS, _MEMORY_CHARS = 4_000, 8_000
_DAY_MS = 86_400_000
_WORD = re.compile(r"[^\W_]+")
_ASKS = ("?", "？", "؟", "¿")
_TALKING = ("hear", "see", "know", "tell", "say", "talk", "speak", "mean", "feel", "sound", "understand")
_OF_TALK = frozenset(map(root, (*DAYS, *_TALKING)))
"""Words that say when, seen from now, and words about talking itself: they stand in small talk as in questions."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What speaks for one memory: the sum, the shared words' part of it, and the first shared word with its place.

    `news` is false when the memory says nothing that the message does not say.
    """

    total: float
    shared: float
    nearer: float
    first: tuple[int, str] | None
    news: bool


class Relevance:
    """The test for one message, `said`, whose words are as rare as `rarity` tells."""

    def __init__(self, said: str, rarity: Rarity) -> None:
        said = said[:_MESSAGE_CHARS]
        self._worth = {stem: rarity.worth(stem) for stem in rarity.among}
        self._said = {root(word) for word in spelled(said)}
        self._initials = {letter for stem in self._worth for letter in (stem[0], stem[0].upper())}
        self._told_of = set(told_of(said))
        self._base = ASKED if any(mark in said for mark in _ASKS) else 0.0
        telling = {root(word) for word in spelled(said) if fold(word) not in STOPWORDS}
        self._wanted = telling - _OF_TALK
        never = rarity.worth(_NEVER_SAID)
        self._rare = _RARE * never
        self._covered = _COVERED * (fsum(self._worth.values()) + never * len(telling - self._worth.keys()))

    def weigh(self, hit: Hit) -> Evidence:
        """What speaks for a hit. It looks at the first 8,000 characters of the memory."""
        memory = hit.memory
        found, first, news = self._read(memory)
        names = {root(word) for word in (*spelled(memory.new.speaker), *spelled(memory.new.subject))}
        about = found - names
        found |= self._worth.keys() & names
        if memory.new.said_at and self._worth:
            found |= self._worth.keys() & _day(memory.new.said_at // _DAY_MS)
        shared = fsum(self._worth[stem] for stem in found)
        nearer = next((place.score for place in hit.places if place.leg == VECTOR), 0.0)
        total = self._base + shared + EACH_WORD * len(found) + NEARER * nearer
        if about and names & self._told_of:
            total += TOLD_OF
        if memory.new.kind not in LANE_BOUND:
            total += KEPT
        if self._base and (self._has_rare(found, shared) or self._is_known(memory, found)):
            total += COVERS
        return Evidence(total, shared, nearer, first, news)

    def _has_rare(self, found: set[str], shared: float) -> bool:
        return shared >= self._covered and any(self._worth[stem] >= self._rare for stem in found - _OF_TALK)

    def _is_known(self, memory: Memory, found: set[str]) -> bool:
        wanted = self._wanted
        return memory.new.kind not in LANE_BOUND and len(wanted) >= _WORDS_COVERED and wanted <= found

    def _read(self, memory: Memory) -> tuple[set[str], tuple[int, str] | None, bool]:
        """The shared words of a text, the first of them, and whether there are others that mean something."""
        text = memory.text[:_MEMORY_CHARS]
        found: set[str] = set()
        first: tuple[int, str] | None = None
        news = memory.new.kind not in LANE_BOUND
        for n, word in enumerate(spelled(text)):
            stem = root(word) if not news or word[0] in self._initials or not word[0].isascii() else ""
            if stem in self._worth:
                found.add(stem)
                first = first or (n, fold(word))
            elif not news:
                news = stem not in self._said and fold(word) not in STOPWORDS
        return found | (self._worth.keys() & grams(text, letters=True)), first, news


@lru_cache(1_024)
def _day(number: int) -> frozenset[str]:
    """The stems of the words that name a day, counted from 1970."""
    return frozenset(map(root, spelled(said_words(number * _DAY_MS or 1))))


def enough(evidence: Sequence[Evidence], least: float) -> float:
    """What must speak for a memory that is shown, given what speaks for all candidates; infinity shows none.

    A message that nothing known has to do with reaches `least` with no candidate; then nothing comes to mind.
    """
    best = max((one.total for one in evidence if one.news), default=0.0)
    return SHARE * least if best >= least else float("inf")


def told_of(said: str) -> Iterator[str]:
    """The stems of the words that somebody may be told of with, not spoken to.

    Who is spoken to stands first, last, or beside a comma: "good night, Eva", "Eva, listen", "thanks Eva!".
    """
    words = list(_WORD.finditer(said))
    for before, word in pairwise(words[:-1]):
        if said[word.end() : word.end() + 1] != "," and said[before.end() : word.start()].rstrip()[-1:] != ",":
            yield root(word.group())
