"""The prompt: layers in order, each with a budget, and the records a transcript is made of."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from keepsaid.domain.message import Trust

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
    """One entry of a transcript: what was said, the calls of an assistant, or the result of one call.

    `ref` names the message that a user's record of a running turn shows, such as `message:17`. `attached` says by name
    and reference what came with the words, "" for nothing. `trust` is that of the text: of a message its sender's,
    of an answer that of its turn when it was given, of an output what its tool declares; None where none is stored.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    speaker: str = ""
    ref: str = ""
    attached: str = ""
    trust: Trust | None = field(default=None, compare=False, repr=False)

    @property
    def chars(self) -> int:
        """How many characters its text, its calls and its attachments have."""
        return len(self.text) + len(self.attached) + sum(len(call.arguments) for call in self.calls)


@dataclass(frozen=True, slots=True)
class Layer:
    """A part of the context: its text as sent, its cost in estimated tokens, and why it was cut, if it was."""

    name: str
    text: str
    tokens: int
    cut: str = ""


class Order(StrEnum):
    """Where recalled memory stands: after the recent messages, or before them as seed 003 lists it."""

    STABLE = "stable"
    SEED003 = "seed003"


@dataclass(frozen=True, slots=True)
class Prompt:
    """All that a model sees before its first step.

    `system`, `summary`, `session_summary` and `history` stay as they are from turn to turn, and are only appended
    to. `status`, `recalled`, `extra`, `quoted` and `user` belong to this turn alone: they are handed over apart, so
    that they can never be stored. `summary` stands for what the lane said before `history`, `session_summary` for
    what was said in the other lanes of the conversation, `extra` is what extensions add below memory.
    """

    system: str
    history: tuple[Record, ...]
    recalled: str
    user: str
    layers: tuple[Layer, ...] = ()
    summary: str = ""
    status: str = ""
    quoted: str = ""
    extra: str = ""
    order: Order = Order.STABLE
    session_summary: str = ""

    @property
    def chars(self) -> int:
        """How many characters it has."""
        return len(self.system) + sum(record.chars for _, record in self.parts)

    @property
    def parts(self) -> tuple[tuple[str, Record], ...]:
        """Everything that follows the system text, in the order in which it is sent, each with its layer's name."""
        stands = (*_said("summary", self.summary), *_said("session_summary", self.session_summary))
        recalled = _said("memory", self.recalled)
        recent = tuple(("recent", record) for record in self.history)
        now, extra = _said("status", self.status), _said("extensions", self.extra)
        asked = (*_said("quoted", self.quoted), *_said("message", self.user))
        if self.order is Order.SEED003:
            return (*stands, *recalled, *recent, *now, *extra, *asked)
        return (*stands, *recent, *now, *recalled, *extra, *asked)


def _said(name: str, text: str) -> tuple[tuple[str, Record], ...]:
    return ((name, Record(Role.USER, text)),) if text else ()
