"""The offline responder: an honest answer when no model is set."""

from __future__ import annotations

import re

from keepsaid.domain.prompt import Prompt, Record, Role
from keepsaid.domain.turn import NO_MODEL, Answer
from keepsaid.ports.model import Delta, ModelRequest
from keepsaid.text.normal import cut
from keepsaid.text.words import STOPWORDS

_QUOTED_MAX = 5
_QUOTE_CHARS_MAX = 300
_LOOKED_AT_MAX, _READ_CHARS_MAX = 100, 1_000
"""So many of a lane's newest records are looked at, and so many characters of each and of the message."""
_HEADERS = ("[Context from memory", "[Pinned context]", "[Relevant to this message]", "[End of data")
_WORD = re.compile(r"\w+")


class OfflineResponder:
    """Says that no model is set, quotes what memory holds about the message, names the next command."""

    @property
    def name(self) -> str:
        """The word for no model."""
        return NO_MODEL

    async def answer(self, request: ModelRequest, delta: Delta) -> Answer:
        """Answer from the prompt alone."""
        await request.begun()
        text = _answer([*_recalled(request.prompt), *_said_here(request.prompt)])
        delta(text)
        return Answer(text, model=NO_MODEL)


def _answer(quotes: list[str]) -> str:
    parts = ["No model is set, so I cannot answer; your message is stored."]
    if quotes:
        parts.append("What I remember about it:")
        parts += [f"  - {cut(quote, _QUOTE_CHARS_MAX)}" for quote in quotes[:_QUOTED_MAX]]
        if len(quotes) > _QUOTED_MAX:
            parts.append(f"  - and {len(quotes) - _QUOTED_MAX} more: keepsaid memory search WORDS")
    else:
        parts.append("I remember nothing about it yet.")
    parts.append("To set a model: keepsaid init")
    return "\n".join(parts)


def _recalled(prompt: Prompt) -> list[str]:
    lines = prompt.recalled.splitlines()
    return [line for line in lines if line.strip() and not line.startswith(_HEADERS)]


def _said_here(prompt: Prompt) -> list[str]:
    """What people said in this lane that shares a word with the message; recall leaves out what a prompt shows."""
    asked, lately = _content_words(prompt.user), prompt.history[-_LOOKED_AT_MAX:]
    said = [record for record in lately if record.role is Role.USER and asked & _content_words(record.text)]
    return [" ".join(_named(record).split()) for record in reversed(said)]


def _named(record: Record) -> str:
    text = record.text[:_READ_CHARS_MAX]
    return f"{record.speaker}: {text}" if record.speaker else text


def _content_words(text: str) -> set[str]:
    return {word for word in map(str.casefold, _WORD.findall(text[:_READ_CHARS_MAX])) if word not in STOPWORDS}
