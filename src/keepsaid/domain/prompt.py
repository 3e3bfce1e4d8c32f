"""The prompt: layers in order, each with a budget, and the records a transcript is made of."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Role(StrEnum):
    """Who a record of the transcript is from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Record:
    """One entry of a transcript: what was said, the calls of an assistant, or the result of one call."""

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    speaker: str = ""


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of the context: its text as sent, its cost in estimated tokens, and why it was cut, if it was."""

    name: str
    text: str
    tokens: int
    cut: str = ""


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a model sees before its first step.

    `system` is policy and identity; `history` the lane's recent records; `recalled` the memory of this
    turn, which is handed over apart so that it can never be stored; `user` the new messages.
    """

    system: str
    history: tuple[Record, ...]
    recalled: str
    user: str
    layers: tuple[Layer, ...] = ()


_WORD = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]|\s*\n\s*|[^\w\s]|_")
_LETTERS_PER_TOKEN = 6.0


@lru_cache(4_096)
def estimate_tokens(text: str) -> int:
    """Estimated tokens of a text, by classes of words: a short word is one token, a long one several."""
    total = 0.0
    for match in _WORD.finditer(text):
        word = match.group()
        letters = len(word)
        total += max(1.0, letters / _LETTERS_PER_TOKEN) if word[0].isascii() else 0.85
    return int(total + 0.5)
