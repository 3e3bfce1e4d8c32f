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


_PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]|\s*\n\s*|[^\w\s]|_")
_LONG = re.compile(r"[A-Za-z]{7,}")
_LETTERS_PER_TOKEN = 6.0
_OTHER_SCRIPT = 0.85


@lru_cache(4_096)
def estimate_tokens(text: str) -> int:
    """Estimated tokens of a text, by classes of words: a short word is one token, a long one several."""
    pieces, long = _PIECE.findall(text), _LONG.findall(text)
    total = len(pieces) + sum(map(len, long)) / _LETTERS_PER_TOKEN - len(long)
    if not text.isascii():
        total -= (1 - _OTHER_SCRIPT) * sum(not piece[0].isascii() for piece in pieces)
    return int(total + 0.5)
