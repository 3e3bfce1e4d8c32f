"""Summaries: copies of lane summaries in memory, and the summaries that compaction makes (seed 003, Storage)."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from keepsaid.domain.compaction import CompactionTerms, SummariesCopied, Summarise, SummaryFailed, ahead, due, piece
from keepsaid.domain.context import HEADINGS, TAIL_MAX, LaneSummary, LaneTail, Made, Sections, extracted, read, written
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope, summary_key
from keepsaid.domain.message import Lane, Trust, Trusted
from keepsaid.domain.prompt import Record
from keepsaid.domain.visibility import least
from keepsaid.errors import ModelError
from keepsaid.ports import model, runtime, store_views
from keepsaid.ports.memory_store import Memories
from keepsaid.ports.store import Store
from keepsaid.text.normal import joined
from keepsaid.values import frozen

_SPAN_MAX = 400
_PIECE_TOKENS = 8_000
_PIECES_MAX = 50
_FEW = 8
_WAIT_MS_MAX = 3_600_000
_SAYS_NOTHING = "the summary would say nothing of these messages"


@frozen
class Summaries:
    """How a summary is made: its estimated tokens, the seconds a call may take, and what failing costs.

    After an attempt that came to nothing the next waits, `wait_ms` at first, then twice as long each time; after
    `tries` of them in a row the program picks the summary itself.
    """

    tokens_max: int = 1_000
    limit_s: float = 60.0
    wait_ms: int = 60_000
    tries: int = 3


class ExtractiveSummariser:
    """Picks summaries word for word, where no model is set or none answers."""

    def __init__(self, offload: runtime.Offload = runtime.inline) -> None:
        self._offload = offload

    async def summarise(self, given: model.ToSummarise) -> model.Summarised:
        sections = extracted([read(text) for text in given.earlier], ())
        for start in range(0, len(given.records), _FEW):
            few = given.records[start : start + _FEW]
            sections = await self._offload(_chars(few), partial(extracted, (sections,), few))
        return model.Summarised(sections, Made.EXTRACTIVE)


@frozen
class Compaction:
    """Summarises lanes that are due. Nothing changes but by one commit, which names the version it saw."""

    store: Store
    summariser: model.Summariser
    clock: runtime.Clock
    redacted: Callable[[str], str]
    terms: CompactionTerms = CompactionTerms()
    summaries: Summaries = Summaries()
    offload: runtime.Offload = runtime.inline

    async def compact(self, lane: Lane, share: float = 0.0, *, at_once: bool = False) -> int:
        """Summarise a lane if it is due, or up to a share of its messages; returns how many summaries were made.

        `at_once` does not wait until a failed attempt may be repeated. Raises a StoreError.
        """
        full = 0
        for made in range(_PIECES_MAX):
            tail = await self.store.context(lane, TAIL_MAX)
            now = self.clock.now_ms()
            if tail.next_at > now and not at_once:
                return made
            if not made:
                full = ahead(tail, share) or 0
            wanted = await self.offload(tail.chars, partial(due, tail, self.terms, now))
            last = max(full, 0 if wanted is None else wanted.last)
            if last <= tail.covered or not await self._summarised(lane, tail, last):
                return made
        return _PIECES_MAX

    async def _summarised(self, lane: Lane, tail: LaneTail, last: int) -> bool:
        """Whether the oldest piece has given way to a summary."""
        span = await self.store.span(lane, tail.covered, _SPAN_MAX)
        end = await self.offload(_chars(span.records), partial(piece, span, last, _PIECE_TOKENS))
        if end is None:
            return False
        records = tuple(one for one, at in zip(span.records, span.positions, strict=True) if at <= end)
        earlier = () if tail.summary is None else (tail.summary.text,)
        given = model.ToSummarise(earlier, records, self.summaries.tokens_max, self.summaries.limit_s)
        try:
            made = await self._made(given, tail.attempts)
        except ModelError as error:
            await self._failed(lane, tail, error.what)
            return False
        chars = sum(len(line) for name in HEADINGS for line in getattr(made.sections, name))
        text = await self.offload(chars, lambda: self.redacted(written(made.sections, made.made, given.tokens_max)))
        if not read(text).count:
            await self._failed(lane, tail, _SAYS_NOTHING)
            return False
        runtime.point("summary.written")
        commit = Summarise(lane, tail.version, end, text, made.made, made.model, self.clock.now_ms())
        return await self.store.apply(commit)

    async def _made(self, given: model.ToSummarise, attempts: int) -> model.Summarised:
        if attempts >= self.summaries.tries:
            picked = await ExtractiveSummariser(self.offload).summarise(given)
            if picked.sections.count:
                return picked
        return await self.summariser.summarise(given)

    async def _failed(self, lane: Lane, tail: LaneTail, why: str) -> None:
        now = self.clock.now_ms()
        wait = min(_WAIT_MS_MAX, self.summaries.wait_ms * 2 ** min(tail.attempts, 16))
        await self.store.apply(SummaryFailed(lane, tail.version, why, now + wait, now))


def _chars(records: Iterable[Record]) -> int:
    """How many characters records have."""
    return sum(record.chars for record in records)


COPIED_MAX = 20
"""Summaries that are copied in one go."""

_CHARS_PER_TOKEN = 4


@frozen
class WholeTerms:
    """When the summary of a conversation is renewed: after a number of new summarised messages or tokens.

    The newest `keep` records of each lane stay out of it; it costs `tokens_max` estimated tokens at most.
    """

    messages: int = 30
    tokens: int = 3_000
    keep: int = 20
    tokens_max: int = 1_000


class SummaryCopier:
    """Follows the operational store: the newest summary of each lane, and one for each conversation.

    A copy is named by its lane and replaces only what is older: doing it again changes nothing.
    """

    def __init__(self, store: Store, memories: Memories, clock: runtime.Clock, terms: WholeTerms | None = None) -> None:
        self._store = store
        self._memories = memories
        self._clock = clock
        self._terms = terms or WholeTerms()

    async def catch_up(self) -> int:
        """Copy what is due, twenty lanes at most; returns how many. Raises a StoreError: then it is still due."""
        if not (due := await self._store.summaries_due(COPIED_MAX)):
            return 0
        copies = [thread_summary(one) for one in due]
        for lane in {one.lane[:3]: one.lane for one in due}.values():
            whole = session_summary(await self._store.summaries_of(lane, self._terms.keep), self._terms)
            copies += [whole] if whole is not None else []
        await self._memories.keep(copies, self._clock.now_ms())
        runtime.point("summaries.kept")
        await self._store.apply(SummariesCopied(tuple((one.lane, one.summary.version) for one in due)))
        return len(due)


def thread_summary(one: LaneSummary) -> NewMemory:
    """The summary of a lane as memory keeps it."""
    lane, made = one.lane, one.summary
    metadata = {
        "threadKey": lane.key,
        "summaryVersion": made.version,
        "updatedAtMs": made.created_at,
        "messageRange": {"from": 1, "to": made.last},
        "made": str(made.made),
        "model": made.model,
    }
    return NewMemory(
        key=summary_key(lane),
        kind=Kind.THREAD_SUMMARY,
        text=made.text,
        scope=conversation_scope(lane),
        trust=Trust.EXTERNAL if one.external else made.trust or Trust.KNOWN,
        lane=lane,
        said_at=made.created_at,
        sources=(Source("lane", joined(":", *lane)),),
        derived=True,
        version=made.version,
        metadata=json.dumps(metadata, ensure_ascii=False),
    )


def session_summary(lanes: Sequence[LaneSummary], terms: WholeTerms) -> NewMemory | None:
    """The summary of a conversation, merged from those of its lanes; None while they took in too little.

    Lanes that hold words from outside are left out: what is external stays in its lane.
    """
    known = known_of(lanes)
    if not (version := _version(known, terms)):
        return None
    lane, at = known[-1].lane, known[-1].summary.created_at
    metadata = {
        "threadKey": None,
        "summaryVersion": version,
        "updatedAtMs": at,
        "messageRange": {one.lane.key: {"from": 1, "to": one.summary.last} for one in known},
    }
    return NewMemory(
        key=joined(":", str(Kind.SESSION_SUMMARY), *lane[:3]),
        kind=Kind.SESSION_SUMMARY,
        text=merged(known, terms.tokens_max),
        scope=conversation_scope(lane),
        trust=least(one.summary.trust or Trust.KNOWN for one in known),
        said_at=at,
        sources=tuple(Source("lane", joined(":", *one.lane)) for one in known),
        derived=True,
        version=version,
        metadata=json.dumps(metadata, ensure_ascii=False),
    )


def known_of(lanes: Sequence[LaneSummary]) -> list[LaneSummary]:
    """Those that hold no words from outside, in the order in which they were made."""
    return sorted((one for one in lanes if not one.external), key=lambda one: (one.summary.created_at, one.lane.key))


def _version(known: Sequence[LaneSummary], terms: WholeTerms) -> int:
    messages, chars = sum(one.messages for one in known), sum(one.chars for one in known)
    return messages // terms.messages + chars // (terms.tokens * _CHARS_PER_TOKEN)


def merged(known: Sequence[LaneSummary], tokens_max: int) -> str:
    """The summaries of several lanes in one text."""
    parts = [read(one.summary.text) for one in known]
    sections = Sections(**{name: tuple(line for part in parts for line in getattr(part, name)) for name in HEADINGS})
    made = Made.MODEL if all(one.summary.made is Made.MODEL for one in known) else Made.EXTRACTIVE
    return written(sections, made, tokens_max)


class OtherLanes:
    """Tells a turn what the other lanes of its conversation summarised, from the operational store.

    It says nothing until the conversation has a summary. The lane itself is left out, for its own summary stands in
    the prompt; so are lanes that hold words from outside, and those that were reset since.
    """

    def __init__(self, contexts: store_views.ContextView, terms: WholeTerms) -> None:
        self._contexts = contexts
        self._terms = terms

    async def render_other_lanes(self, lane: Lane) -> str:
        known = known_of(await self._contexts.summaries_of(lane, self._terms.keep))
        if not _version(known, self._terms):
            return ""
        if not (stand := [one for one in known if one.lane != lane and not one.left]):
            return ""
        return Trusted(merged(stand, self._terms.tokens_max), least(one.summary.trust or Trust.KNOWN for one in stand))
