"""Collecting: a marked session is read once, in short passages, and what people said in it becomes memory.

What was found is kept before anything of it is learned, and learned under names that follow from it: a crash at any
point goes on with what was found, without reading again, and learns nothing twice (design: section 4.3).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from keepsaid.domain.collection import (
    ClaimCollection,
    Collected,
    Collecting,
    CollectionFailed,
    KeepFinding,
    Left,
    Passage,
    fitted,
    may_state,
)
from keepsaid.domain.explicit import asks_to_remember
from keepsaid.domain.finding import Finding, kept
from keepsaid.errors import KeepsaidError, ModelAuth, ModelQuota, ModelUnavailable
from keepsaid.memory.finding import links_of, memories_of, speaker_of, without_secrets
from keepsaid.memory.spending import Spending
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.collection import CollectionView
from keepsaid.ports.extractor import Extractor
from keepsaid.ports.graph import Graph
from keepsaid.ports.learning import Learning
from keepsaid.ports.notes import NoteView
from keepsaid.ports.operations import Operations
from keepsaid.ports.points import point
from keepsaid.ports.redactor import Redactor, masked_texts

_WAIT_MS_MAX = 3_600_000
_FINDING_RECORDS_MAX = 1_000


class CollectionStore(Operations, CollectionView, NoteView, Protocol):
    """Where sessions and findings are."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How sessions are read: records and estimated tokens of a passage, and what failing costs.

    After an attempt that came to nothing the next waits, `wait_ms` at first, then twice as long each time, an hour at
    most; after `tries` of them the session is parked. A claim that nobody ends is free after `lease_ms`.
    """

    records_max: int = 30
    tokens_max: int = 4_000
    tries: int = 5
    wait_ms: int = 60_000
    lease_ms: int = 600_000


class Collection:
    """Reads marked sessions, one passage at a time."""

    def __init__(
        self,
        store: CollectionStore,
        learning: Learning,
        extractor: Extractor,
        time: tuple[Clock, Ids],
        redactor: Redactor,
        reading: Reading | None = None,
        graph: Graph | None = None,
    ) -> None:
        self._store = store
        self._learning = learning
        self._extractor = extractor
        self._clock, self._ids = time
        self.spending = Spending(store, self._clock)
        self._redactor = redactor
        self._reading = reading or Reading()
        self._graph = graph
        self._owner = f"{self._ids.next():x}"

    @property
    def thorough(self) -> bool:
        """Whether what it has read is done with."""
        return self._extractor.thorough

    async def claim(self) -> Collecting | None:
        """The session that is due for longest."""
        now = self._clock.due_ms()
        return await self._store.apply(
            ClaimCollection(self._owner, now, now + self._reading.lease_ms, self._extractor.thorough)
        )

    async def read(self, claimed: Collecting) -> Left:
        """Read the next passage of a session. Raises a ModelError or a StoreError: then it is read again."""
        finding = claimed.finding
        if finding is None:
            passage = await self._passage(claimed)
            if not passage.told:
                return await self._done(claimed, passage.last, thorough=claimed.whole or self.thorough)
            if self.thorough and not may_state(passage):
                return await self._done(claimed, passage.last, thorough=True)
            finding = await self._found(claimed, passage)
            if finding.statements and not await self._store.apply(KeepFinding(finding, claimed.fence)):
                return Left.REFUSED
            if not finding.statements:
                return await self._done(claimed, finding.last, thorough=finding.thorough)
        point("finding.kept")
        await self._apply(finding)
        point("finding.applied")
        return await self._done(claimed, finding.last, thorough=finding.thorough, finding_id=finding.id)

    async def failed(self, claimed: Collecting, error: Exception) -> bool:
        """Record a reading that came to nothing; returns whether that is an outage, which nobody is charged for."""
        outage = isinstance(error, ModelUnavailable | ModelAuth | ModelQuota)
        now, reading = self._clock.due_ms(), self._reading
        attempts = claimed.attempts + (not outage)
        wait = min(_WAIT_MS_MAX, reading.wait_ms * 2 ** min(claimed.attempts, 16))
        what = error.what if isinstance(error, KeepsaidError) else f"unexpected {type(error).__name__}"
        next_at = None if attempts >= reading.tries else now + wait
        await self._store.apply(
            CollectionFailed(claimed.session_id, claimed.fence, what, now, next_at, charged=not outage)
        )
        return outage

    async def _passage(self, claimed: Collecting) -> Passage:
        """What is to be read next, without the secrets in it."""
        passage = await self._store.passage(claimed.session_id, claimed.after, self._reading.records_max)
        if passage is None:
            return Passage(claimed.lane, claimed.after + 1, claimed.marked)
        heard = tuple(one for one in passage.utterances if one.heard)
        found = await masked_texts(self._redactor, [one.text for one in heard])
        plain = tuple(replace(one, text=text) for one, (text, _) in zip(heard, found, strict=True))
        kept = await self._unforgotten(replace(passage, utterances=plain))
        return fitted(kept, self._reading.tokens_max)

    async def _unforgotten(self, passage: Passage) -> Passage:
        """The passage without texts that repeat a sentence that was forgotten, unless they ask to remember it."""
        lane, said = passage.lane, passage.utterances
        echoes = await self._learning.echoes.in_texts([(speaker_of(one, lane), one.text) for one in said])
        left = [one for one, echo in zip(said, echoes, strict=True) if not echo or asks_to_remember(one.text)]
        return replace(passage, utterances=tuple(left))

    async def _found(self, claimed: Collecting, passage: Passage) -> Finding:
        if self.thorough:
            await self.spending.spend(1, 0)
        found = await self._extractor.extract(passage)
        if found.calls:
            await self.spending.spend(found.calls - 1, found.usage.tokens_in + found.usage.tokens_out)
        told = {one.position for one in passage.told}
        fit = kept(found.statements, lambda one: told.issuperset(one.records))
        statements = tuple(without_secrets(one, self._redactor.redacted) for one in fit)
        return Finding(
            self._ids.next(),
            claimed.session_id,
            claimed.lane,
            passage.first,
            passage.last,
            self._extractor.name,
            statements,
            found.usage,
            self._clock.now_ms(),
        )

    async def _apply(self, finding: Finding) -> None:
        many = min(_FINDING_RECORDS_MAX, finding.last - finding.first + 1)
        passage = await self._store.passage(finding.session_id, finding.first - 1, many)
        utterances = () if passage is None else passage.utterances
        memories = memories_of(finding, utterances)
        if not memories:
            return
        now = self._clock.now_ms()
        learnt = await self._learning.learn(memories, now)
        links = links_of(finding, memories, [one.memory_id for one in learnt])
        if links and self._graph is not None:
            await self._graph.relate(links, (), now)

    async def _done(self, claimed: Collecting, until: int, *, thorough: bool, finding_id: int | None = None) -> Left:
        now = self._clock.due_ms()
        return await self._store.apply(Collected(claimed.session_id, claimed.fence, until, now, thorough, finding_id))
