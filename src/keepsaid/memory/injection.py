"""Injection: recall done for a turn without the model asking (seed 001, section 3); and the bulletins of its scopes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from keepsaid.domain import memory, message, turn, visibility
from keepsaid.domain.bulletin import MINUTE_MS, Bulletin, Edition, Material, bulletin_key, rendered, shortened
from keepsaid.domain.memory import Hit, Injection, Listener, PinnedOrder, Recalled, chat_of, person_of, summary_key
from keepsaid.domain.message import RESULT, SYSTEM, Lane, Origin, StoredMessage
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.errors import ModelError
from keepsaid.memory.fact_questions import NO_QUESTION, fact_question
from keepsaid.memory.gates import InjectionSettings, PromptShown, Relevance, Selection, Visible, read_of
from keepsaid.memory.recall.ranking import Missing, ask
from keepsaid.memory.recall.recollection import cut_note, query_of
from keepsaid.memory.recording import RECORDED_MAX, Recorder
from keepsaid.ports import memory_store, runtime
from keepsaid.text.words import DocumentFrequencies
from keepsaid.values import frozen

T = TypeVar("T")

LEG_SHARE = 0.6
"""How much of the deadline one leg of recall may take, so that a slow one leaves time for what the others found."""

_RECALL_SHARE, _FRESH_SHARE, _AGAIN_SHARE, _ALIKE_SHARE = 0.8, 1 / 3, 0.4, 0.1
"""Of the deadline: all of recall, recording what is new, looking again after it, and finding what says the same."""


@dataclass(slots=True, eq=False)
class Injector:
    """Brings memory to mind for a turn; what it gives is for that turn's prompt alone and is never stored."""

    recall: memory_store.Recall
    memories: memory_store.Memories
    recorder: Recorder
    clock: runtime.Clock
    settings: InjectionSettings = InjectionSettings()
    offload: runtime.Offload = runtime.inline
    _recording: dict[str, asyncio.Task[int]] = field(default_factory=dict, init=False)

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        began = self.clock.monotonic_ms()
        said = tuple(message for message in claimed.messages if not _is_result(message))
        if not said:
            return Injection(skipped="a turn about results")
        missing = [*cut_note(sum(len(message.text) + 1 for message in said) - 1)]
        made = await ask("recall", partial(self._select, claimed, said, recent, missing), self.settings.deadline_ms)
        took = self.clock.monotonic_ms() - began
        if isinstance(made, Missing):
            return Injection(missing=(*missing, made.why), took_ms=took)
        selection, recalled = made
        found = Injection(selection.block, tuple(selection.candidates), tuple(missing), took)
        return replace(found, searched=recalled.searched, beyond=recalled.beyond)

    async def _select(
        self, claimed: ClaimedBatch, said: Sequence[StoredMessage], recent: Awaitable[Recent], missing: list[str]
    ) -> tuple[Selection, Recalled]:
        listener = replace(listener_of(claimed, said), cross=self.settings.cross, chats=self.settings.chats)
        recent = asyncio.ensure_future(recent)
        text = await query_of(claimed, said, asyncio.shield(recent))
        limit = _RECALL_SHARE * self.settings.deadline_ms
        recalled, pinned, rarity = await asyncio.gather(
            ask("recall", partial(self._recalled, claimed, listener, text, missing), limit),
            ask("pinned", partial(self._pinned, listener), limit),
            ask("document frequencies", partial(self.memories.read_document_frequencies, text), limit),
        )
        if isinstance(recalled, Missing):
            recalled = Recalled((), (recalled.why,))
        missing.extend(recalled.missing)
        pinned, rarity = _or(pinned, [], missing), _or(rarity, DocumentFrequencies(), missing)
        before = await asyncio.shield(recent)
        own = frozenset((*(f"message:{one.id}" for one in claimed.messages), summary_key(claimed.batch.lane)))
        shown = PromptShown(before.shown, own, before.standing, before.lately, claimed.around.flagged)
        visible = Visible(shown, before.records, "\n".join(message.text for message in said))
        question = fact_question(said[-1].text, person_of(said[-1].inbound.origin)) if said else NO_QUESTION
        relevance = await self.offload(len(text), partial(Relevance, text, rarity))
        selection = Selection(visible, relevance, self.settings, question)
        passing = await self.offload(read_of(pinned, recalled.hits), partial(selection.sift, pinned, recalled.hits))
        selection.choose(await self._alike(passing, missing) if recalled.by_meaning else ())
        return selection, recalled

    async def _alike(self, passing: Sequence[int], missing: list[str]) -> Sequence[tuple[int, int]]:
        """Which of the memories say the same; none when that is unknown, or not known in time."""
        if len(passing) < 2:
            return ()
        limit = _ALIKE_SHARE * self.settings.deadline_ms
        found = await ask("alike", partial(self.memories.alike, passing, self.settings.alike), limit)
        return _or(found, (), missing)

    async def _recalled(self, claimed: ClaimedBatch, listener: Listener, text: str, missing: list[str]) -> Recalled:
        """Recall that knows the conversation's newest episodes: asked at once, and again if any were unrecorded.

        Or were recorded meanwhile: the first answer may have been read before.
        """
        search = partial(self.recall.recall, listener, text, self.settings.per_leg)
        if self.recorder.shares:  # whatever another process has recorded by then, one look finds it
            await self._freshened(claimed, missing)
            return await search()
        before = self.recorder.recorded
        first = asyncio.ensure_future(search())
        if self.recorder.caught_up:
            return await first
        try:
            fresh = await self._freshened(claimed, missing)
            if fresh is not None and (fresh or self.recorder.recorded != before):
                anew = await ask("fresh", search, _AGAIN_SHARE * self.settings.deadline_ms)
                if isinstance(anew, Recalled):
                    return anew
                missing.append(anew.why)
            return await first
        finally:
            first.cancel()

    async def _freshened(self, claimed: ClaimedBatch, missing: list[str]) -> int | None:
        """How many batches of the conversation were recorded just now; None if that took too long."""
        wait = min(self.settings.fresh_ms, _FRESH_SHARE * self.settings.deadline_ms)
        fresh = await ask("fresh", partial(self._freshen, claimed.batch.lane.conversation), wait)
        if isinstance(fresh, Missing):
            missing.append(fresh.why)
            return None
        if fresh >= RECORDED_MAX:
            missing.append(f"fresh: recorded {fresh} batches, more may be waiting")
        return fresh

    async def _freshen(self, conversation: str) -> int:
        """Have the conversation's episodes recorded; giving up the wait does not stop the recording."""
        if (task := self._recording.get(conversation)) is None:
            task = asyncio.create_task(self.recorder.catch_up(RECORDED_MAX, conversation))
            self._recording[conversation] = task
            task.add_done_callback(lambda done: self._recorded(conversation, done))
        return await asyncio.shield(task)

    def _recorded(self, conversation: str, done: asyncio.Task[int]) -> None:
        del self._recording[conversation]
        if not done.cancelled():
            done.exception()  # a waiter received the error; without one, the recorder's own loop meets it again

    async def _pinned(self, listener: Listener) -> list[Hit]:
        hits: list[Hit] = []
        each, newest = self.settings.pinned_each, self.settings.pinned_by is PinnedOrder.RECENT
        for kind in self.settings.pinned_kinds:
            if newest:
                found = await self.memories.find(listener, (kind,), each)
            else:
                found = await self.memories.important(listener, kind, each)
            hits += [Hit(memory, "pinned", rank, memory.new.importance) for rank, memory in enumerate(found, start=1)]
        return hits


def _is_result(message: StoredMessage) -> bool:
    """Whether it is the result of side work, which nobody asks memory about (seed 001)."""
    return message.inbound.origin.sender == SYSTEM and message.inbound.content.event == RESULT


def _or(found: T | Missing, otherwise: T, missing: list[str]) -> T:
    """Return what was found; otherwise note in `missing` why there is nothing."""
    if isinstance(found, Missing):
        missing.append(found.why)
        return otherwise
    return found


def listener_of(claimed: ClaimedBatch, said: Sequence[StoredMessage]) -> Listener:
    """The listener of the answer: the lane of the batch, and in a direct chat the person who wrote, or it is for."""
    found = listening(claimed.batch.lane, [message.inbound.origin for message in said])
    person = found.person or claimed.around.chat_of
    return replace(found, person=person, direct=bool(person))


def listening(lane: Lane, origins: Sequence[Origin], *, cross: bool = False, chats: bool = True) -> Listener:
    """The listener in a lane of the answer to these; `cross` and `chats` say which episodes of other lanes it reads."""
    person = chat_of(origins)
    return Listener(lane, person, bool(person), cross=cross, chats=chats)


_log = logging.getLogger("keepsaid.bulletin")
_LOOK_MS, _RETRY_MS = MINUTE_MS, 15 * MINUTE_MS
"""A scope is not looked at more often than this, however many turns hear it; and longer after a model failed."""

_SCOPES_MAX = 10_000
_ALL_WORDS = 5_000
"""What a model is given is the whole of what the sections hold."""

_OVER = 1.5
"""A model's text is cut at this multiple of the words that were requested."""


@frozen
class BulletinTerms:
    """How long a bulletin stands at least, its words, the seconds a model may take, and how long a read may."""

    every_ms: int = 60 * MINUTE_MS
    words: int = 500
    limit_s: float = 60.0
    read_ms: float = 150.0


@dataclass(slots=True, eq=False)
class Briefings:
    """Gives turns the bulletins of their scopes, and renews them outside of turns, one at a time.

    Only a turn that reads a scope requests its bulletin, so that an idle instance makes none. If one cannot be made,
    the old one stays. One whose sources were withdrawn is not shown, and is rendered again without a model.
    """

    store: memory_store.BulletinStore
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
        """Renew the bulletin of a scope, if it is due and its content changed; returns whether it was renewed.

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
        new = _memory(scope, text, edition, there.version + 1, now if due else there.made_at)
        return await self.store.keep(new, now)

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


def _memory(scope: str, text: str, edition: Edition, version: int, at: int) -> memory.NewMemory:
    new = memory.NewMemory(bulletin_key(scope), memory.Kind.BULLETIN, text, scope, message.Trust.KNOWN)
    return replace(new, said_at=at, derived=True, version=version, metadata=edition.as_json)
