"""Context for agents outside: what keepsaid's own agent would be shown of memory before it answered a message."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from keepsaid.domain import batch, memory, message, turn
from keepsaid.domain.context import LaneTail
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
class Reminding:
    """A text in a conversation to be reminded for, in a number of tokens; `lately` are memories not to give again."""

    conversation: str
    text: str
    tokens: int
    lately: frozenset[int] = frozenset()


@frozen
class ContextService:
    """Builds context as turns have it; `reminder` (for a number of tokens) and `bulletins` are those of the agent."""

    store: Store
    clock: Clock
    reminder: Callable[[int], memory_store.Reminder]
    bulletins: Callable[[], memory_store.Bulletins | None]

    async def build(self, who: Principal, conversation: str, text: str, tokens: int) -> BuiltContext:
        """What is known that bears on a text; nothing is stored. Raises InputError for what is out of range."""
        injection, tail, claimed = await self._reminded(who, Reminding(conversation, text, tokens))
        bulletins = self.bulletins()
        bulletin = "" if bulletins is None else await bulletins.render_bulletins(claimed)
        return BuiltContext(injection, str(bulletin), tail.summary.text if tail.summary else "")

    async def remind(self, who: Principal, asked: Reminding) -> memory.Injection:
        """Return the memories that bear on a text, without bulletin and summary. Raises InputError as `build` does."""
        return (await self._reminded(who, asked))[0]

    async def _reminded(self, who: Principal, given: Reminding) -> tuple[memory.Injection, LaneTail, turn.ClaimedBatch]:
        asked, conversation, tokens = normalise(given.text).strip(), given.conversation, given.tokens
        if not asked or len(asked) > TEXT_CHARS_MAX or not conversation.strip():
            raise InputError(f"context needs a conversation and a text of 1 to {TEXT_CHARS_MAX:,} characters")
        if not 0 <= tokens <= TOKENS_MAX:
            raise InputError(f"tokens must be a whole number from 0 to {TOKENS_MAX:,}")
        lane = who.recorded_lane(conversation)
        tail = await self.store.context(lane, _RECENT)
        claimed = _unstored_batch(who, lane, asked, self.clock.now_ms())
        recent: asyncio.Future[turn.Recent] = asyncio.get_running_loop().create_future()
        recent.set_result(replace(tail.recent, lately=tail.recent.lately | given.lately))
        return await self.reminder(tokens).remind(claimed, recent), tail, claimed

    async def standing(self, who: Principal, conversation: str) -> BuiltContext:
        """What stands of a caller's memory without a question: the bulletin, and the summary of the conversation."""
        lane = who.recorded_lane(conversation)
        tail, bulletins = await self.store.context(lane, 1), self.bulletins()
        claimed = _unstored_batch(who, lane, conversation, self.clock.now_ms())
        bulletin = "" if bulletins is None else await bulletins.render_bulletins(claimed)
        return BuiltContext(memory.Injection(), str(bulletin), tail.summary.text if tail.summary else "")

    async def recall(self, who: Principal, conversation: str, text: str, tokens: int) -> memory.Injection:
        """The memories alone, for a prompt that shows its own history; the text is cut at its limit."""
        asked = normalise(text[:TEXT_CHARS_MAX]).strip()
        if not asked:
            return memory.Injection(skipped="the message has no text")
        lane = who.recorded_lane(conversation)
        claimed = _unstored_batch(who, lane, asked, self.clock.now_ms())
        recent = asyncio.ensure_future(self._recent(lane))
        try:
            return await self.reminder(tokens).remind(claimed, recent)
        finally:
            recent.cancel()

    async def _recent(self, lane: message.Lane) -> turn.Recent:
        return (await self.store.context(lane, _RECENT)).recent


def _unstored_batch(who: Principal, lane: message.Lane, text: str, at: int) -> turn.ClaimedBatch:
    """A batch as its turn would see it; it is in no store."""
    origin = who.origin(lane.conversation)
    said = message.StoredMessage(0, lane, 1, message.Inbound(origin, message.Content(b"", text)), at)
    verdict = Verdict(Action.FORWARD, "context", "", "an agent outside asks for context")
    return turn.ClaimedBatch(batch.StoredBatch(0, lane, 1, 1, "leased", verdict, 10), 0, (said,))
