"""Posted: what a message is in the words of its medium, before anybody says who may be trusted there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

EDITED = "edited"
"""The event of a message that takes the place of an earlier one with the same provider id."""


FORWARDED = "forwarded"
"""The first word of the line above a text that its sender forwards: `[forwarded: from Bob]`."""


@dataclass(frozen=True, slots=True)
class Posted:
    """A message as its medium tells it.

    `delivery` names this delivery: the same again is the same message. `topic` and `reply_to` say where it stands;
    what is attached is named in the text, never fetched.
    """

    conversation: str
    sender: str
    text: str
    provider_id: str
    delivery: str
    name: str = ""
    direct: bool = False
    topic: str | None = None
    reply_to: str | None = None
    event: str = ""


def is_forwarded(text: str) -> bool:
    """Whether a message is a text by somebody else, which its sender forwards."""
    return text.startswith((f"[{FORWARDED}:", f"[{FORWARDED}]"))


class Unsaid(NamedTuple):
    """Something a medium sends that nobody said to the agent, and why it is taken for that."""

    reason: str
