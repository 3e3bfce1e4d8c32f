"""Statements found by rules: what somebody says outright is to be remembered, in twelve languages."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise

from keepsaid.domain.learning import NAME_CHARS_MAX, TEXT_CHARS_MAX, Statement
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory
from keepsaid.domain.plain_facts import LEAD, PARTNERS, plain_fact
from keepsaid.text.memory_commands import content_to_remember, is_question, sentences
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

CONFIDENCE = 0.9
_REMEMBER_TO = lazy(rf"{LEAD}(?:remember|do not forget|don['’]t forget)\s+to\s+(?P<what>\S.*)", re.IGNORECASE)
_TODO = lazy(rf"{LEAD}(?:to[- ]?do|task)\s*:\s*(?P<what>\S.*)", re.IGNORECASE)

_DIVIDED_CHARS_MAX = 1_000
"""A longer sentence is read as one: people do not introduce themselves so."""

_COUPLE = "".join(rf"(?<!my {one})" for one in PARTNERS)
_CLAUSE = lazy(rf"(?:[,;] ?(?:(?:and|but) )?| but | and (?!i\b)|{_COUPLE} and )(?=(?:i|my|we)\b)", re.IGNORECASE)
"""What stands before a further clause in English that says something of its speaker: not in "my wife and I"."""


@frozen
class LooseStatement:
    """A statement before it has a place: `about` says that its subject is the speaker.

    One that is `asked` is to be remembered by the speaker's own word.
    """

    kind: Kind
    text: str
    about: bool = False
    attribute: str = ""
    value: str = ""
    asked: bool = False

    @property
    def is_immediate(self) -> bool:
        """Whether it is learned as soon as it is recorded, and not when the conversation is read."""
        return self.attribute != "" or self.asked

    def by(self, speaker: str, position: int) -> Statement:
        """The statement as somebody made it in a record."""
        subject = speaker[:NAME_CHARS_MAX] if self.about else ""
        text = f"{subject or 'The speaker'}: {self.text}" if self.about else self.text
        slot = (subject, self.attribute, self.value) if subject and self.attribute else (subject, "", "")
        importance = IMPORTANCE[self.kind]
        return Statement(
            self.kind, text[:TEXT_CHARS_MAX], *slot, importance=importance, confidence=CONFIDENCE, records=(position,)
        )


FactFinder = Callable[[str], list[LooseStatement]]
"""Finds the facts about its speaker in a sentence."""


def extract_statements(text: str) -> tuple[LooseStatement, ...]:
    """Return what a message states outright, in order, without repetitions."""
    return _extract(text, _facts)


def with_slot(memory: NewMemory) -> NewMemory:
    """A memory whose text plainly states one fact about its speaker, with the slot that it fills; else as it is."""
    stated = [one for one in _extract(memory.text, _first_fact) if one.attribute]
    if len(stated) != 1 or memory.attribute or not memory.speaker_id:
        return memory
    [found] = stated
    return replace(
        memory, subject=memory.speaker, subject_id=memory.speaker_id, attribute=found.attribute, value=found.value
    )


def asks_to_remember(text: str) -> bool:
    """Whether a message asks outright, in a language that is known here, that something be remembered."""
    pairs = pairwise(("", *sentences(text)))
    return any(_is_todo(one) or content_to_remember(one, before) for before, one in pairs)


def _is_todo(sentence: str) -> bool:
    return not is_question(sentence) and _REMEMBER_TO.fullmatch(sentence) is not None


def _extract(text: str, find: FactFinder) -> tuple[LooseStatement, ...]:
    pairs = pairwise(("", *sentences(text)))
    return tuple(dict.fromkeys(one for pair in pairs for one in _extract_sentence(*pair, find)))


def _extract_sentence(before: str, sentence: str, find: FactFinder) -> Iterator[LooseStatement]:
    asks = is_question(sentence)
    for pattern in () if asks else (_REMEMBER_TO, _TODO):
        if found := pattern.fullmatch(sentence):
            yield LooseStatement(Kind.TODO, _bare(found["what"]), asked=True)
            return
    if what := _bare(content_to_remember(sentence, before)):
        for one in find(what) or [LooseStatement(Kind.FACT, what, about=True)]:
            yield replace(one, asked=True)
    elif not asks:
        yield from find(sentence)


def _facts(sentence: str) -> list[LooseStatement]:
    """The facts about the speaker that a sentence states, each in its own words, so that each can change by itself.

    A sentence is divided only where its first clause states a fact, and no two clauses state one of the same kind.
    """
    parts = _divided(sentence)
    facts = [one for part in parts for one in _first_fact(part)]
    differ = len({one.attribute for one in facts}) == len(parts)
    return facts if len(parts) > 1 and differ else _first_fact(sentence)


def _divided(sentence: str) -> list[str]:
    """A sentence, divided before each clause that states a fact."""
    found = list(_CLAUSE.finditer(sentence)) if len(sentence) <= _DIVIDED_CHARS_MAX else []
    ends = [*(one.start() for one in found), len(sentence)][1:]
    cuts = [one for one, end in zip(found, ends, strict=True) if _first_fact(_begun(sentence, one.end(), end))]
    spans = zip([0, *(one.end() for one in cuts)], [*(one.start() for one in cuts), len(sentence)], strict=True)
    return [_begun(sentence, start, end) for start, end in spans]


def _begun(sentence: str, start: int, end: int) -> str:
    """A part of a sentence, which begins as the sentence does: small letters say how its writer writes names."""
    part = sentence[start:end]
    return part if sentence[:1].islower() else part[:1].upper() + part[1:]


def _first_fact(sentence: str) -> list[LooseStatement]:
    """The first fact about the speaker that a sentence states, in the words of the whole; none where it states none."""
    found = plain_fact(sentence)
    if found is None:
        return []
    return [LooseStatement(_kind(found.attribute), _bare(sentence), True, found.attribute, found.value)]


def _kind(attribute: str) -> Kind:
    if attribute in ("name", "full name", "first name", "last name", "pronouns"):
        return Kind.IDENTITY
    return Kind.PREFERENCE if attribute.startswith(("favourite", "favorite", "preferred")) else Kind.FACT


def _bare(text: str) -> str:
    """Without the punctuation around it."""
    return text.strip().rstrip(".!,;:").strip()
