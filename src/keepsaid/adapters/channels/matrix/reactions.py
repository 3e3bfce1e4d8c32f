"""Reactions of an account of Matrix: events `m.reaction`, and what refusals mean for the model.

Source: Matrix specification v1.16, `m.annotation`: the server refuses a second one with the same key on the same event.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable, path_of
from keepsaid.errors import ToolError

_REACTION: Final = "m.reaction"
_DUPLICATE: Final = "M_DUPLICATE_ANNOTATION"
_UNKNOWN: Final = "whether the message has the reaction is not known"


async def send_reaction(api: MatrixApi, room: str, event: str, emoji: str) -> None:
    """Give an event an emoji, in a transaction whose id is made of both. Raises ToolError."""
    related = {"rel_type": "m.annotation", "event_id": event, "key": emoji}
    path = path_of("rooms", room, "send", _REACTION, transaction_of(room, event, emoji))
    try:
        await api.call("PUT", path, {"m.relates_to": related})
    except MatrixUnreachable:
        raise ToolError(f"the homeserver did not answer; {_UNKNOWN}") from None
    except MatrixRefused as error:
        if error.code != _DUPLICATE:
            raise ToolError(reason_of(error)) from None


def transaction_of(room: str, event: str, emoji: str) -> str:
    """The transaction id of a reaction: the same for the same one."""
    return f"r{blake2b(chr(0).join((room, event, emoji)).encode(), digest_size=16).hexdigest()}"


def reason_of(error: MatrixRefused) -> str:
    """Why the homeserver refused a reaction."""
    if error.is_throttled:
        return "the homeserver wants fewer requests now; nothing was done"
    if error.is_bad_token:
        return "the homeserver does not accept matrix.token; nothing was done"
    if error.code == "M_FORBIDDEN":
        return "the account may not react in that room"
    if error.is_in_doubt:
        return f"the homeserver failed (status {error.status}); {_UNKNOWN}"
    return f"the homeserver refuses the reaction (status {error.status})"
