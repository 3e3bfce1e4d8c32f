"""Instructions of a client: the system prompt that a program sends with a call (spec: doors, A5).

They stand in the prompt of the turn, below the policy, and are neither said by anybody nor remembered. The message
names their hash; the text is kept beside it for a day, once for all calls that send the same, so that another process
and a turn that is tried again have it too.
"""

from __future__ import annotations

import json

from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.process import Note
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes
from keepsaid.text.normal import digest, normalise

FIELD = "client_instructions"
"""The field of a message's payload that has the hash."""

CHARS_MAX = 32_000
_KEPT_MS = 86_400_000
_BYTES_MAX = 1_000_000


class ClientInstructions:
    """Keeps and reads them."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock

    async def keep(self, text: str) -> str:
        """Keep a text for a day; returns its hash."""
        text, now = normalise(text)[:CHARS_MAX], self._clock.now_ms()
        hashed = digest(text).hex()
        await self._notes.apply(Note(_name(hashed), text, now + _KEPT_MS, now))
        return hashed

    async def read(self, claimed: ClaimedBatch) -> str:
        """What the newest message of a batch came with; "" for nothing, and for what nobody known sent."""
        hashed = next((found for one in reversed(claimed.messages) if (found := _hash_in(one))), "")
        return await self._notes.note(_name(hashed), self._clock.now_ms()) if hashed else ""


def _name(hashed: str) -> str:
    return f"client:{hashed}"


def _hash_in(message: StoredMessage) -> str:
    payload = message.inbound.content.payload
    if message.inbound.origin.trust is Trust.EXTERNAL or FIELD.encode() not in payload or len(payload) > _BYTES_MAX:
        return ""
    try:
        body = json.loads(payload)
    except (ValueError, RecursionError):
        return ""
    found = body.get(FIELD) if isinstance(body, dict) else None
    return found if isinstance(found, str) else ""
