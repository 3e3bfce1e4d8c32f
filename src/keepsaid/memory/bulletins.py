"""Bulletins: each scope is briefed with what is known in it, anew only when that changed and a turn hears it.

The bulletin of a scope is made of memories of exactly this scope, and a turn hears those of its own scopes. So nobody
is told what he may not hear, and a thing that becomes known to everybody is told once.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain import memory, message, turn, visibility
from keepsaid.domain.bulletin import MINUTE_MS, Bulletin, Edition, Material, bulletin_key, rendered, shortened
from keepsaid.errors import ModelError
from keepsaid.memory.injection import listener_of
from keepsaid.memory.recall.ranking import Missing, ask
from keepsaid.ports import memory_store, runtime
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.bulletin")
_LOOK_MS, _RETRY_MS = MINUTE_MS, 15 * MINUTE_MS
"""A scope is not looked at more often than this, however many turns hear it; and longer after a model failed."""

_SCOPES_MAX = 10_000
_ALL_WORDS = 5_000
"""What a model is given is the whole of what the sections hold."""

_OVER = 1.5
"""A model may write so many times the words it was asked for before its text is cut."""


@frozen
class BulletinTerms:
    """How long a bulletin stands at least, its words, the seconds a model may take, and how long a read may."""

    every_ms: int = 60 * MINUTE_MS
    words: int = 500
    limit_s: float = 60.0
    read_ms: float = 150.0


@dataclass(slots=True, eq=False)
class Briefings:
    """Tells turns the bulletins of their scopes, and makes them anew beside the turns, one at a time.

    A turn that hears a scope names it; nothing else does, so that an idle instance makes none. What cannot be made
    leaves the old one as it is. One whose sources were withdrawn is not told, and is rendered anew without a model.
    """

    store: memory_store.BulletinStore
    memories: memory_store.Memories
    clock: runtime.Clock
    editor: memory_store.Editor | None = None
    terms: BulletinTerms = BulletinTerms()
    hint: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _named: dict[str, None] = field(default_factory=dict, init=False)
    _rests: dict[str, float] = field(default_factory=dict, init=False)
    _one: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)

    async def render_bulletins(self, claimed: turn.ClaimedBatch) -> str:
        listener, now = listener_of(claimed, claimed.messages), self.clock.now_ms()
        found = await ask("bulletin", partial(self.store.standing, listener, now), self.terms.read_ms)
        if isinstance(found, Missing):
            _log.warning("a turn goes without its bulletin: %s", found.why)
            return ""
        self._name(found, now)
        told = [one for one in found if one.whole and one.text]
        trusts = (one.edition.trust if one.edition else message.Trust.KNOWN for one in told)
        return message.Trusted("\n\n".join(one.text for one in told), visibility.least([message.Trust.OWNER, *trusts]))

    def _name(self, found: Sequence[Bulletin], now: int) -> None:
        """Name the scopes that may be due."""
        for one in found:
            rested = self.clock.steady_ms() >= self._rests.get(one.scope, 0)
            if not one.whole or (rested and self._due(one, now)):
                self._named[one.scope] = None
        if self._named:
            self.hint.set()

    def _due(self, bulletin: Bulletin, now: int) -> bool:
        """Whether it stood long enough; a clock that was set back counts as if it had."""
        return not bulletin.version or not 0 <= now - bulletin.made_at < self.terms.every_ms

    async def work(self) -> None:
        """Make the bulletins of the scopes that were named. Raises a StoreError; the scope is named again by a turn."""
        async with self._one:
            while self._named:
                scope = next(iter(self._named))
                del self._named[scope]
                await self.refresh(scope)

    async def refresh(self, scope: str) -> bool:
        """Make the bulletin of a scope anew, if it is due and there is anything else to tell; returns whether it was.

        Of one that is not whole only what was withdrawn is taken out, whenever that is.
        """
        now = self.clock.now_ms()
        self._rest(scope, _LOOK_MS)
        there = await self.store.of(scope, now)
        due, stands = self._due(there, now), there.whole and there.version > 0
        if stands and not due:
            return False
        material = await self.store.material(scope, now)
        if stands and self._tells(there, material):
            return False
        made = await self._made(scope, material, by_model=due)
        if made is None and stands:
            return False
        text, edition = made or _rendered(material, self.terms.words)
        if not text and not there.version:
            return False
        new = memory.NewMemory(bulletin_key(scope), memory.Kind.BULLETIN, text, scope, message.Trust.KNOWN)
        version, made_at = there.version + 1, now if due else there.made_at
        new = replace(new, said_at=made_at, derived=True, version=version, metadata=edition.as_json)
        [kept] = await self.memories.keep([new], now)
        return kept != 0

    def _tells(self, bulletin: Bulletin, material: Material) -> bool:
        """Whether a bulletin tells all there is, in the words of the model where there is one."""
        edition = bulletin.edition
        if edition is None or edition.material != material.digest:
            return False
        return self.editor is None or edition.by_model or not edition.memories

    def _rest(self, scope: str, ms: float) -> None:
        self._rests.pop(scope, None)
        self._rests[scope] = self.clock.steady_ms() + ms
        if len(self._rests) > _SCOPES_MAX:
            del self._rests[next(iter(self._rests))]

    async def _made(self, scope: str, material: Material, *, by_model: bool) -> tuple[str, Edition] | None:
        """The bulletin; None when a model should have written it and did not."""
        plain, edition = _rendered(material, self.terms.words)
        if self.editor is None or not by_model or not plain:
            return plain, edition
        whole, memories = rendered(material.memories, _ALL_WORDS)
        try:
            edited = await self.editor.edit(memory_store.EditRequest(whole, self.terms.words, self.terms.limit_s))
        except ModelError as error:
            _log.warning("bulletin not written: %s", error.what, extra={"code": error.code})
            self._rest(scope, _RETRY_MS)
            return None
        text = shortened(edited.text, int(_OVER * self.terms.words))
        tokens = edited.usage.tokens_in + edited.usage.tokens_out
        return text, replace(edition, memories=memories, model=edited.model, tokens=tokens)


def _rendered(material: Material, words: int) -> tuple[str, Edition]:
    text, memories = rendered(material.memories, words)
    trust = visibility.least([message.Trust.OWNER, *(one.new.trust for one in material.memories)])
    return text, Edition(material.revision, material.digest, memories, trust=trust)
