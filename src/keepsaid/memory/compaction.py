"""Compaction of one lane: what is older than its newest records gives way to a summary (design: section 4.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from keepsaid.domain.compaction import CompactionTerms, Summarise, SummaryFailed, ahead, due, piece
from keepsaid.domain.context import TAIL_MAX, LaneTail
from keepsaid.domain.lane import Lane
from keepsaid.domain.prompt import Record
from keepsaid.domain.summary import HEADINGS, Made, Sections, extracted, read, written
from keepsaid.errors import ModelError
from keepsaid.ports.failpoints import point
from keepsaid.ports.model import Summarised, Summariser, ToSummarise
from keepsaid.ports.runtime import Clock, Offload, inline
from keepsaid.ports.store_views import LaneView, Operations

_SPAN_MAX = 400
_PIECE_TOKENS = 8_000
_PIECES_MAX = 50
_FEW = 8
_WAIT_MS_MAX = 3_600_000
_SAYS_NOTHING = "the summary would say nothing of these messages"


class CompactionStore(Operations, LaneView, Protocol):
    """What is compacted."""


@dataclass(frozen=True, slots=True)
class Summaries:
    """How a summary is made: its estimated tokens, the seconds a call may take, and what failing costs.

    After an attempt that came to nothing the next waits, `wait_ms` at first, then twice as long each time; after
    `tries` of them in a row the program picks the summary itself.
    """

    tokens_max: int = 1_000
    limit_s: float = 60.0
    wait_ms: int = 60_000
    tries: int = 3


class Extractor:
    """Picks summaries word for word, where no model is set or none answers."""

    def __init__(self, offload: Offload = inline) -> None:
        self._offload = offload

    async def summarise(self, given: ToSummarise) -> Summarised:
        """What stands in the earlier ones, and what the records add to it."""
        sections = extracted([read(text) for text in given.earlier], ())
        for start in range(0, len(given.records), _FEW):
            few = given.records[start : start + _FEW]
            sections = await self._offload(_chars(few), partial(extracted, (sections,), few))
        return Summarised(sections, Made.EXTRACTIVE)


class Compaction:
    """Summarises lanes that are due. Nothing changes but by one commit, which names the version it saw."""

    def __init__(
        self,
        store: CompactionStore,
        summariser: Summariser,
        clock: Clock,
        redacted: Callable[[str], str],
        terms: CompactionTerms | None = None,
        summaries: Summaries | None = None,
        offload: Offload = inline,
    ) -> None:
        self._store = store
        self._summariser = summariser
        self._clock = clock
        self._redacted = redacted
        self._terms = terms or CompactionTerms()
        self._summaries = summaries or Summaries()
        self._offload = offload
        self._extractor = Extractor(offload)

    async def compact(self, lane: Lane, share: float = 0.0, *, at_once: bool = False) -> int:
        """Summarise a lane if it is due, or up to a share of its messages; returns how many summaries were made.

        `at_once` does not wait until a failed attempt may be repeated. Raises a StoreError.
        """
        full = 0
        for made in range(_PIECES_MAX):
            tail = await self._store.context(lane, TAIL_MAX)
            now = self._clock.now_ms()
            if tail.next_at > now and not at_once:
                return made
            if not made:
                full = ahead(tail, share) or 0
            wanted = await self._offload(tail.chars, partial(due, tail, self._terms, now))
            last = max(full, 0 if wanted is None else wanted.last)
            if last <= tail.covered or not await self._summarised(lane, tail, last):
                return made
        return _PIECES_MAX

    async def _summarised(self, lane: Lane, tail: LaneTail, last: int) -> bool:
        """Whether the oldest piece has given way to a summary."""
        span = await self._store.span(lane, tail.covered, _SPAN_MAX)
        end = await self._offload(_chars(span.records), partial(piece, span, last, _PIECE_TOKENS))
        if end is None:
            return False
        records = tuple(one for one, at in zip(span.records, span.positions, strict=True) if at <= end)
        earlier = () if tail.summary is None else (tail.summary.text,)
        given = ToSummarise(earlier, records, self._summaries.tokens_max, self._summaries.limit_s)
        try:
            made = await self._made(given, tail.attempts)
        except ModelError as error:
            await self._failed(lane, tail, error.what)
            return False
        text = await self._offload(_chars_of(made.sections), partial(self._written, made, given.tokens_max))
        if not read(text).count:
            await self._failed(lane, tail, _SAYS_NOTHING)
            return False
        point("summary.written")
        commit = Summarise(lane, tail.version, end, text, made.made, made.model, self._clock.now_ms())
        return await self._store.apply(commit)

    def _written(self, made: Summarised, tokens_max: int) -> str:
        return self._redacted(written(made.sections, made.made, tokens_max))

    async def _made(self, given: ToSummarise, attempts: int) -> Summarised:
        if attempts >= self._summaries.tries:
            picked = await self._extractor.summarise(given)
            if picked.sections.count:
                return picked
        return await self._summariser.summarise(given)

    async def _failed(self, lane: Lane, tail: LaneTail, why: str) -> None:
        now = self._clock.now_ms()
        wait = min(_WAIT_MS_MAX, self._summaries.wait_ms * 2 ** min(tail.attempts, 16))
        await self._store.apply(SummaryFailed(lane, tail.version, why, now + wait, now))


def _chars(records: Iterable[Record]) -> int:
    """How many characters records have."""
    return sum(record.chars for record in records)


def _chars_of(sections: Sections) -> int:
    return sum(len(line) for name in HEADINGS for line in getattr(sections, name))
