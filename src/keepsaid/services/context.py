"""Context for agents outside: what keepsaid's own agent would be shown of memory before it answered a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from keepsaid.domain import batch, memory, message, turn
from keepsaid.domain.principal import Principal
from keepsaid.domain.route import Action, Verdict
from keepsaid.errors import InputError
from keepsaid.ports import memory_store
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Store
from keepsaid.text.normal import normalise
from keepsaid.text.tokens import estimate_tokens
from keepsaid.values import frozen

TOKENS_MAX = 4_000
"""Estimated tokens of recalled memory that a caller may ask for."""

TEXT_CHARS_MAX = 50_000
_RECENT = 20
"""Records of recorded talk that the caller's own prompt is taken to show."""


@frozen
class BuiltContext:
    """The block of memories, each with its reason in `injection`; the bulletin, and the summary of the lane's past."""

    injection: memory.Injection
    bulletin: str
    summary: str

    @property
    def tokens(self) -> int:
        """Estimated tokens of all three texts."""
        return sum(estimate_tokens(text) for text in (self.injection.block, self.bulletin, self.summary) if text)


@frozen
class ContextService:
    """Builds context as turns have it; `reminder` (for a number of tokens) and `bulletins` are those of the agent."""

    store: Store
    clock: Clock
    reminder: Callable[[int], memory_store.Reminder]
    bulletins: Callable[[], memory_store.Bulletins | None]

    async def build(self, who: Principal, conversation: str, text: str, tokens: int) -> BuiltContext:
        """What is known that bears on a text; nothing is stored. Raises InputError for what is out of range."""
        asked = normalise(text).strip()
        if not asked or len(asked) > TEXT_CHARS_MAX or not conversation.strip():
            raise InputError(f"context needs a conversation and a text of 1 to {TEXT_CHARS_MAX:,} characters")
        if not 0 <= tokens <= TOKENS_MAX:
            raise InputError(f"tokens must be a whole number from 0 to {TOKENS_MAX:,}")
        lane = who.recorded_lane(conversation)
        tail = await self.store.context(lane, _RECENT)
        claimed = _unstored_batch(who, lane, asked, self.clock.now_ms())
        recent: asyncio.Future[turn.Recent] = asyncio.get_running_loop().create_future()
        recent.set_result(tail.recent)
        injection = await self.reminder(tokens).remind(claimed, recent)
        bulletins = self.bulletins()
        bulletin = "" if bulletins is None else await bulletins.render_bulletins(claimed)
        return BuiltContext(injection, str(bulletin), tail.summary.text if tail.summary else "")


def _unstored_batch(who: Principal, lane: message.Lane, text: str, at: int) -> turn.ClaimedBatch:
    """A batch as its turn would see it; it is in no store."""
    origin = who.origin(lane.conversation)
    said = message.StoredMessage(0, lane, 1, message.Inbound(origin, message.Content(b"", text)), at)
    verdict = Verdict(Action.FORWARD, "context", "", "an agent outside asks for context")
    return turn.ClaimedBatch(batch.StoredBatch(0, lane, 1, 1, "leased", verdict, 10), 0, (said,))
