"""Stating: a plain fact about its speaker fills its slot as soon as the message is recorded, beside any extractor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from keepsaid.domain.learning import STATED_MAX, stated_key
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory, person_scope
from keepsaid.domain.message import RECORDED, SYSTEM, StoredMessage, Trust
from keepsaid.domain.statements import CONFIDENCE, asks_to_remember, extract_statements
from keepsaid.ports.memory_store import Learning
from keepsaid.ports.runtime import read_sentences
from keepsaid.values import frozen

Facts = Callable[[NewMemory], Iterator[NewMemory]]
"""Finds what an episode states."""


@frozen
class StatedFacts:
    """Learns what people plainly state of themselves. Learning it again, here or by an extractor, changes nothing.

    What is learned must hold no secrets. `at` is milliseconds UTC.
    """

    learning: Learning

    async def learn(self, said: Sequence[tuple[StoredMessage, NewMemory]], at: int) -> None:
        """Learn from messages and their episodes."""
        await self._learn([(episode, partial(_stated, message)) for message, episode in said], at)

    async def learn_imported(self, episodes: Sequence[NewMemory], at: int) -> None:
        """Learn from messages of another program. None of them asks for what was forgotten here."""
        await self._learn([(one, _stated_elsewhere) for one in episodes if one.kind is Kind.EPISODE], at)

    async def _learn(self, said: Sequence[tuple[NewMemory, Facts]], at: int) -> None:
        def read() -> list[tuple[NewMemory, tuple[NewMemory, ...]]]:
            found = ((episode, tuple(facts_of(episode))) for episode, facts_of in said)
            return [(episode, facts) for episode, facts in found if facts]

        stated = await read_sentences(read, sum(min(len(one.text), _READ_CHARS_MAX) for one, _ in said))
        if not stated:
            return
        texts = [(episode.speaker_id, episode.text) for episode, _ in stated]
        echoes = await self.learning.echoes.in_texts(texts)
        kept = [
            fact
            for (_, facts), echo in zip(stated, echoes, strict=True)
            if not echo or facts[0].asked
            for fact in facts
        ]
        if kept:
            await self.learning.learn(kept, at)


def _stated(message: StoredMessage, episode: NewMemory) -> Iterator[NewMemory]:
    origin = message.inbound.origin
    if origin.sender == SYSTEM or message.inbound.content.event not in ("", RECORDED):
        return
    facts = list(_facts(episode, message.id))
    asked = bool(facts) and asks_to_remember(_beginning(episode.text))
    for fact in (replace(one, asked=asked) for one in facts):
        yield fact
        if not origin.direct:
            yield replace(fact, key=f"{fact.key}:own", scope=person_scope(episode.speaker_id))


def _stated_elsewhere(episode: NewMemory) -> Iterator[NewMemory]:
    return _facts(episode, episode.key)


def _facts(episode: NewMemory, name: int | str) -> Iterator[NewMemory]:
    if episode.trust is Trust.EXTERNAL:
        return
    facts = [one for one in extract_statements(_beginning(episode.text)) if one.is_immediate]
    for n, one in enumerate(facts[:STATED_MAX]):
        yield replace(
            episode,
            key=stated_key(name, n),
            kind=one.kind,
            text=f"{episode.speaker}: {one.text}" if one.about else one.text,
            subject=episode.speaker if one.about else "",
            subject_id=episode.speaker_id if one.about else "",
            attribute=one.attribute,
            value=one.value,
            importance=IMPORTANCE[one.kind],
            confidence=CONFIDENCE,
            derived=True,
        )


_READ_CHARS_MAX = 2_000
"""The characters of a message that are read at once; an extractor reads all of it later."""


def _beginning(text: str) -> str:
    """The first sentences of a long text; the whole of any other."""
    if len(text) <= _READ_CHARS_MAX:
        return text
    return text[: max(text.rfind(mark, 0, _READ_CHARS_MAX) for mark in ".!?\n") + 1]
