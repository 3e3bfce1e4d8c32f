"""What a client sends with a message for its turn alone: instructions, and tools of its own (spec: doors, A5 and A7).

Neither is said by anybody nor remembered. The message names the hash of each; the text is kept beside it for a day,
once for all calls that send the same, so that another process and a turn that is tried again have it too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from keepsaid.domain.client_tools import OfferedTool, tools_as_text, tools_from_text
from keepsaid.domain.message import StoredMessage, Trust, payload_fields
from keepsaid.domain.process import Note
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes
from keepsaid.text.normal import digest, normalise

INSTRUCTIONS, TOOLS, TOKENS = "client_instructions", "client_tools", "client_tokens_max"
"""The fields of a message's payload that have the hashes, and the tokens that an answer may have."""

TOKENS_LEAST = 16
"""The least limit of an answer: with fewer tokens no model answers."""

CHARS_MAX = 32_000
_KEPT_MS = 86_400_000
_BYTES_MAX = 1_000_000


class ClientContext(NamedTuple):
    """The instructions and the tools of a turn's client, and how many tokens an answer may have (0: any number)."""

    instructions: str = ""
    tools: tuple[OfferedTool, ...] = ()
    tokens_max: int = 0


class ClientParts:
    """Keeps and reads them."""

    def __init__(self, notes: Notes, clock: Clock) -> None:
        self._notes = notes
        self._clock = clock

    async def keep(self, sent: ClientContext) -> dict[str, object]:
        """Keep instructions and tools for a day; returns the fields that a message has of all."""
        fields = dict[str, object]()
        if sent.instructions:
            fields[INSTRUCTIONS] = await self._keep(normalise(sent.instructions)[:CHARS_MAX])
        if sent.tools:
            fields[TOOLS] = await self._keep(tools_as_text(sent.tools))
        if sent.tokens_max:
            fields[TOKENS] = sent.tokens_max
        return fields

    async def read(self, claimed: ClaimedBatch) -> ClientContext:
        """What the newest message of a batch came with; nothing for what nobody known sent."""
        fields = _fields_of(claimed.messages[-1])
        instructions, tools = [await self._read(fields.get(name)) for name in (INSTRUCTIONS, TOOLS)]
        given = fields.get(TOKENS)
        tokens_max = given if isinstance(given, int) and given >= TOKENS_LEAST else 0
        return ClientContext(instructions, tools_from_text(tools), tokens_max)

    async def _keep(self, text: str) -> str:
        hashed, now = digest(text).hex(), self._clock.now_ms()
        await self._notes.apply(Note(f"client:{hashed}", text, now + _KEPT_MS, now))
        return hashed

    async def _read(self, hashed: object) -> str:
        return await self._notes.note(f"client:{hashed}", self._clock.now_ms()) if isinstance(hashed, str) else ""


def _fields_of(message: StoredMessage) -> dict[str, Any]:
    payload = message.inbound.content.payload
    if message.inbound.origin.trust is Trust.EXTERNAL or b'"client_' not in payload:
        return {}
    return payload_fields(payload, _BYTES_MAX)
