"""Stating: a plain fact about its speaker fills its slot as soon as the message is recorded, beside any extractor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from keepsaid.domain.learning import STATED_MAX, stated_key
from keepsaid.domain.memory import IMPORTANCE, NewMemory, person_scope
from keepsaid.domain.message import RECORDED, SYSTEM, StoredMessage, Trust
from keepsaid.domain.statements import CONFIDENCE, asks_to_remember, extract_statements
from keepsaid.ports.memory_store import Learning
from keepsaid.ports.runtime import read_sentences
from keepsaid.values import frozen


@frozen
class StatedFacts:
    """Learns what people plainly state of themselves. Learning it again, here or by an extractor, changes nothing."""

    learning: Learning

    async def learn(self, said: Sequence[tuple[StoredMessage, NewMemory]], at: int) -> None:
        """Learn from messages and their episodes, which hold no secrets. `at` is milliseconds UTC."""

        def read() -> list[tuple[NewMemory, tuple[NewMemory, ...]]]:
            found = ((episode, tuple(_stated(message, episode))) for message, episode in said)
            return [(episode, facts) for episode, facts in found if facts]

        stated = await read_sentences(read, sum(min(len(one.text), _READ_CHARS_MAX) for _, one in said))
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
    if episode.trust is Trust.EXTERNAL or origin.sender == SYSTEM:
        return
    if message.inbound.content.event not in ("", RECORDED):
        return
    text = _beginning(episode.text)
    facts = [one for one in extract_statements(text) if one.is_immediate]
    asked = bool(facts) and asks_to_remember(text)
    for n, one in enumerate(facts[:STATED_MAX]):
        fact = replace(
            episode,
            key=stated_key(message.id, n),
            kind=one.kind,
            text=f"{episode.speaker}: {one.text}" if one.about else one.text,
            subject=episode.speaker if one.about else "",
            subject_id=episode.speaker_id if one.about else "",
            attribute=one.attribute,
            value=one.value,
            importance=IMPORTANCE[one.kind],
            confidence=CONFIDENCE,
            derived=True,
            asked=asked,
        )
        yield fact
        if not origin.direct:
            yield replace(fact, key=f"{fact.key}:own", scope=person_scope(episode.speaker_id))


_READ_CHARS_MAX = 2_000
"""The characters of a message that are read at once; an extractor reads all of it later."""


def _beginning(text: str) -> str:
    """The first sentences of a long text; the whole of any other."""
    if len(text) <= _READ_CHARS_MAX:
        return text
    return text[: max(text.rfind(mark, 0, _READ_CHARS_MAX) for mark in ".!?\n") + 1]
