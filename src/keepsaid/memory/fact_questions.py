"""Questions about one thing of somebody ("who is my boss?"): the answer is the fact that fills that slot.

However common its words are, what is asked and stated often stays answerable. So is what was stated in other words than
it is asked in: "I moved to Oslo" answers "where do I live?".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from keepsaid.domain.attributes import NAMES, slot_name, slot_of
from keepsaid.domain.memory import OWNER, Found, Listener, Memory
from keepsaid.ports.memory_store import Library
from keepsaid.text.languages import content_roots
from keepsaid.text.patterns import lazy
from keepsaid.text.words import fold, root, spelled
from keepsaid.values import frozen

_CHARS_MAX = 1_000
_ASKING = frozenset(
    ["who", "whom", "whose", "what", "which", "when", "where", "how", "remind", "tell", "show", "give", "name"]
)
_MARKS = ("?", "？", "؟", "¿")
_OPENING_CHARS = 100
_TO_ME = lazy(r"\A\s{0,9}(?:please\s)?(?:can you\s|could you\s)?(?:tell|give|show|remind)\s(?:me|us)\b", re.IGNORECASE)
"""Whoever asks to be shown something does not speak of themself by that."""

_OWN_WORDS = """
i me my mine myself we our ich mich mir mein meine meinen meiner meinem wir unser yo me mi mis nosotros eu meu minha
je j moi mon ma mes nous io mio mia miei ik mij mijn ja mnie moj moja moje mam я меня мне мой моя мое мои
"""
_OWN = frozenset(_OWN_WORDS.split())
_OWN_LETTERS = ("我", "私", "僕", "俺", "저", "제", "나", "내")
_VAGUE = frozenset(map(root, ("name", "called", "title", "number", "place", "work", "company")))
"""Words that stand in the names of several attributes: by these alone only what nothing else answers is meant."""


@frozen
class FactQuestion:
    """What a message asks: the roots of its words, and whether it speaks of its own `person`."""

    roots: frozenset[str] = frozenset()
    person: str = ""
    is_own: bool = False

    def answers(self, memories: Sequence[Memory]) -> frozenset[int]:
        """The ids of those that fill a slot that is asked for, as what holds now."""
        found = {one.id: self._matched(one) for one in memories if one.new.attribute and one.state == "active"}
        clear = {id_ for id_, words in found.items() if words - _VAGUE}
        return frozenset(clear or {id_ for id_, words in found.items() if words})

    def _matched(self, memory: Memory) -> frozenset[str]:
        """The words of the attribute, under one of its names, if all of them are asked, and of the subject."""
        if not self.roots or not self._is_about(memory):
            return frozenset()
        ways = (content_roots(memory.new.attribute), *_ways(slot_name(memory.new.attribute)))
        fitting = [words for words in ways if words and words <= self.roots]
        return max(fitting, key=lambda words: (bool(words - _VAGUE), len(words)), default=frozenset())

    def _is_about(self, memory: Memory) -> bool:
        new = memory.new
        if self.is_own and self.person and new.subject_id == self.person:
            return True
        names = {root(word) for word in spelled(new.subject)}
        return bool(names) and names <= self.roots


NO_QUESTION = FactQuestion()


def fact_question(said: str, person: str) -> FactQuestion:
    """The question that a message of a person asks; of a long one, or one that asks nothing, none."""
    words = spelled(said) if len(said) <= _CHARS_MAX else []
    if not words or not asks(said):
        return NO_QUESTION
    return FactQuestion(frozenset(root(word) for word in words), person, speaks_of_self(said))


def asks(said: str) -> bool:
    """Whether a text has a question mark, or begins as a question or a request for an answer does in English."""
    return any(mark in said for mark in _MARKS) or fold(next(iter(spelled(said[:_OPENING_CHARS])), "")) in _ASKING


def speaks_of_self(said: str) -> bool:
    """Whether a text has a word such as "my", in any of twelve languages."""
    said = _TO_ME.sub("", said)
    return not _OWN.isdisjoint(map(fold, spelled(said))) or any(letter in said for letter in _OWN_LETTERS)


@cache
def _ways(name: str) -> tuple[frozenset[str], ...]:
    """The words of every way to write the attribute with this one name."""
    return tuple(dict.fromkeys(words for way, of in NAMES.items() if of == name and (words := content_roots(way))))


_BESIDE = frozenset(map(root, ("now", "currently", "again", "exactly", "know", "remember", "tell", "remind", "please")))
"""Words that a question about a slot may have beside those of the slot."""


@frozen
class FactLeg:
    """The search leg that finds what a person asks of themself by its slot, in whatever words it was stated.

    It finds nothing for a message that asks for anything else besides: other legs find that by its words. Who reads
    everything asks as the owner.
    """

    library: Library

    async def search(self, listener: Listener, query: str, limit: int) -> tuple[Found, ...]:
        """The facts that are asked for and that the listener may read, the newest first, all equally near."""
        person = OWNER if listener.everything else listener.person
        if not (slots := _requested_slots(query, person)):
            return ()
        return tuple(Found(id_, 1.0) for id_ in await self.library.filling(listener, slots, limit))


def _requested_slots(said: str, person: str) -> tuple[bytes, ...]:
    """The slots of the person that a message asks for, if it asks for nothing else."""
    question = fact_question(said, person)
    if not (question.is_own and person):
        return ()
    asked = content_roots(said) - _BESIDE
    matched: dict[str, frozenset[str]] = {}
    for name, words in _named_ways():
        if words <= question.roots:
            matched[name] = matched.get(name, frozenset()) | words
    slots = (slot_of(person, name, _ANY) for name, words in matched.items() if asked and asked <= words)
    return tuple(slot for slot in slots if slot is not None)


_ANY = "any"
"""The slot is the same for every value."""


@cache
def _named_ways() -> tuple[tuple[str, frozenset[str]], ...]:
    """Each way to write an attribute, as its words, with the one name of the attribute."""
    return tuple((name, words) for way, name in NAMES.items() if (words := content_roots(way)))
