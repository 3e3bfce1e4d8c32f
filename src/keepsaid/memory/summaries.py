"""Summaries in memory: copies of what the operational store says of lanes and conversations (seed 003, Storage)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.compaction import SummariesCopied
from keepsaid.domain.context import LaneSummary
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import Kind, NewMemory, Source, conversation_scope, summary_key
from keepsaid.domain.message import Trust, Trusted
from keepsaid.domain.summary import HEADINGS, Made, Sections, read, written
from keepsaid.domain.visibility import least
from keepsaid.ports.failpoints import point
from keepsaid.ports.memory_store import Memories
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import ContextView, Operations
from keepsaid.text.normal import joined

COPIED_MAX = 20
"""Summaries that are copied in one go."""

_CHARS_PER_TOKEN = 4


class SummaryStore(Operations, ContextView, Protocol):
    """Where the truth is."""


@dataclass(frozen=True, slots=True)
class WholeTerms:
    """When the summary of a conversation is made anew: for each so many messages or tokens that lanes took in.

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

    def __init__(self, store: SummaryStore, memories: Memories, clock: Clock, terms: WholeTerms | None = None) -> None:
        self._store = store
        self._memories = memories
        self._clock = clock
        self._terms = terms or WholeTerms()

    async def catch_up(self) -> int:
        """Copy what is due, twenty lanes at most; returns how many. Raises a StoreError: then it is still due."""
        due = await self._store.summaries_due(COPIED_MAX)
        if not due:
            return 0
        copies = [thread_summary(one) for one in due]
        for lane in {one.lane[:3]: one.lane for one in due}.values():
            whole = session_summary(await self._store.summaries_of(lane, self._terms.keep), self._terms)
            copies += [whole] if whole is not None else []
        await self._memories.keep(copies, self._clock.now_ms())
        point("summaries.kept")
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
    version = _version(known, terms)
    if not version:
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
    known = (one for one in lanes if not one.external)
    return sorted(known, key=lambda one: (one.summary.created_at, one.lane.key))


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
    the prompt; so are lanes that hold words from outside, and those that began anew since.
    """

    def __init__(self, contexts: ContextView, terms: WholeTerms) -> None:
        self._contexts = contexts
        self._terms = terms

    async def told(self, lane: Lane) -> str:
        """The summary of the conversation without this lane; "" for none. Raises StoreError."""
        known = known_of(await self._contexts.summaries_of(lane, self._terms.keep))
        if not _version(known, self._terms):
            return ""
        stand = [one for one in known if one.lane != lane and not one.left]
        if not stand:
            return ""
        return Trusted(merged(stand, self._terms.tokens_max), least(one.summary.trust or Trust.KNOWN for one in stand))
