"""Injection: recall done for a turn without the model asking (seed 001, section 3; design: section 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import Hit, Injection, Listener, PinnedOrder, Recalled, chat_of, summary_key
from keepsaid.domain.message import SYSTEM, Origin, StoredMessage
from keepsaid.domain.turn import ClaimedBatch, Recent
from keepsaid.memory.gates import InjectionSettings, PromptShown, Relevance, Selection, Visible, read_of
from keepsaid.memory.recall.ranking import Missing, ask
from keepsaid.memory.recall.recollection import cut_note, query_of
from keepsaid.memory.recording import RECORDED_MAX, Recorder
from keepsaid.ports.memory_store import Memories, Recall
from keepsaid.ports.runtime import Clock, Offload, inline
from keepsaid.text.words import DocumentFrequencies

T = TypeVar("T")

LEG_SHARE = 0.6
"""How much of the deadline one leg of recall may take, so that a slow one leaves time for what the others found."""

_RECALL_SHARE, _FRESH_SHARE, _AGAIN_SHARE, _ALIKE_SHARE = 0.8, 1 / 3, 0.4, 0.1
"""Of the deadline: all of recall, recording what is new, looking again after it, and finding what says the same."""


@dataclass(slots=True, eq=False)
class Injector:
    """Brings memory to mind for a turn; what it gives is for that turn's prompt alone and is never stored."""

    recall: Recall
    memories: Memories
    recorder: Recorder
    clock: Clock
    settings: InjectionSettings = InjectionSettings()
    offload: Offload = inline
    _recording: dict[str, asyncio.Task[int]] = field(default_factory=dict, init=False)

    async def remind(self, claimed: ClaimedBatch, recent: Awaitable[Recent]) -> Injection:
        began = self.clock.monotonic_ms()
        said = tuple(message for message in claimed.messages if message.inbound.origin.sender != SYSTEM)
        if not said:
            return Injection(skipped="system turn")
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
        origins = [message.inbound.origin for message in said]
        listener = listening(claimed.batch.lane, origins, cross=self.settings.cross)
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
        selection = Selection(visible, Relevance(text, rarity), self.settings)
        passing = await self.offload(read_of(pinned, recalled.hits), partial(selection.sift, pinned, recalled.hits))
        selection.choose(await self._alike(passing, missing) if recalled.by_meaning else ())
        return selection, recalled

    async def _alike(self, passing: Sequence[int], missing: list[str]) -> Sequence[tuple[int, int]]:
        """Which of the memories say the same; none when that cannot be told, or not in time."""
        if len(passing) < 2:
            return ()
        limit = _ALIKE_SHARE * self.settings.deadline_ms
        found = await ask("alike", partial(self.memories.alike, passing, self.settings.alike), limit)
        return _or(found, (), missing)

    async def _recalled(self, claimed: ClaimedBatch, listener: Listener, text: str, missing: list[str]) -> Recalled:
        """Recall that knows the conversation's newest episodes: asked at once, and again if any were unrecorded."""
        settings = self.settings
        first = asyncio.ensure_future(self.recall.recall(listener, text, settings.per_leg))
        if self.recorder.caught_up:
            return await first
        try:
            wait = min(settings.fresh_ms, _FRESH_SHARE * settings.deadline_ms)
            fresh = await ask("fresh", partial(self._freshen, claimed.batch.lane.conversation), wait)
            if isinstance(fresh, Missing):
                missing.append(fresh.why)
            elif fresh:
                if fresh >= RECORDED_MAX:
                    missing.append(f"fresh: recorded {fresh} batches, more may be waiting")
                again = partial(self.recall.recall, listener, text, settings.per_leg)
                anew = await ask("fresh", again, _AGAIN_SHARE * settings.deadline_ms)
                if isinstance(anew, Recalled):
                    return anew
                missing.append(anew.why)
            return await first
        finally:
            first.cancel()

    async def _freshen(self, conversation: str) -> int:
        """Have the conversation's episodes recorded; giving up the wait does not stop the recording."""
        task = self._recording.get(conversation)
        if task is None:
            task = asyncio.create_task(self.recorder.catch_up(RECORDED_MAX, conversation))
            self._recording[conversation] = task
            task.add_done_callback(lambda done: self._recorded(conversation, done))
        return await asyncio.shield(task)

    def _recorded(self, conversation: str, done: asyncio.Task[int]) -> None:
        del self._recording[conversation]
        if not done.cancelled():
            done.exception()  # who waited was told; when nobody does any more, the recorder's own loop meets it again

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


def _or(found: T | Missing, otherwise: T, missing: list[str]) -> T:
    """Return what was found; otherwise note in `missing` why there is nothing."""
    if isinstance(found, Missing):
        missing.append(found.why)
        return otherwise
    return found


def listener_of(claimed: ClaimedBatch, said: Sequence[StoredMessage]) -> Listener:
    """Who hears the answer: the lane of the batch, and in a direct chat the person who wrote."""
    return listening(claimed.batch.lane, [message.inbound.origin for message in said])


def listening(lane: Lane, origins: Sequence[Origin], *, cross: bool = False) -> Listener:
    """Who hears in a lane what answers these; `cross` says whether other lanes' episodes are heard too."""
    person = chat_of(origins)
    return Listener(lane, person, bool(person), cross=cross)
