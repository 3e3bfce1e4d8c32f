"""Statements found by rules: what somebody says outright is to be remembered, in twelve languages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from keepsaid.domain.learning import NAME_CHARS_MAX, TEXT_CHARS_MAX, Statement
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory
from keepsaid.domain.plain_facts import LEAD, plain_fact
from keepsaid.text.memory_commands import content_to_remember, is_question, sentences
from keepsaid.text.patterns import lazy
from keepsaid.values import frozen

CONFIDENCE = 0.9
_REMEMBER_TO = lazy(rf"{LEAD}(?:remember|do not forget|don['’]t forget)\s+to\s+(?P<what>\S.*)", re.IGNORECASE)
_TODO = lazy(rf"{LEAD}(?:to[- ]?do|task)\s*:\s*(?P<what>\S.*)", re.IGNORECASE)


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


def extract_statements(text: str) -> tuple[LooseStatement, ...]:
    """Return what a message states outright, in order, without repetitions."""
    pairs = pairwise(("", *sentences(text)))
    return tuple(dict.fromkeys(one for before, sentence in pairs for one in _extract_sentence(sentence, before)))


def with_slot(memory: NewMemory) -> NewMemory:
    """A memory whose text plainly states one fact about its speaker, with the slot that it fills; else as it is."""
    stated = [one for one in extract_statements(memory.text) if one.attribute]
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


def _extract_sentence(sentence: str, before: str) -> Iterator[LooseStatement]:
    asks = is_question(sentence)
    for pattern in () if asks else (_REMEMBER_TO, _TODO):
        if found := pattern.fullmatch(sentence):
            yield LooseStatement(Kind.TODO, _bare(found["what"]), asked=True)
            return
    if what := _bare(content_to_remember(sentence, before)):
        yield replace(_fact(what) or LooseStatement(Kind.FACT, what, about=True), asked=True)
    elif not asks and (fact := _fact(sentence)):
        yield fact


def _fact(sentence: str) -> LooseStatement | None:
    """A fact about the speaker; None where the sentence states none."""
    found = plain_fact(sentence)
    if found is None:
        return None
    return LooseStatement(_kind(found.attribute), _bare(sentence), True, found.attribute, found.value)


def _kind(attribute: str) -> Kind:
    if attribute in ("name", "full name", "first name", "last name", "pronouns"):
        return Kind.IDENTITY
    return Kind.PREFERENCE if attribute.startswith(("favourite", "favorite", "preferred")) else Kind.FACT


def _bare(text: str) -> str:
    """Without the punctuation around it."""
    return text.strip().rstrip(".!,;:").strip()
