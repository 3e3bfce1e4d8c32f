"""Compaction: when and how much of a lane's past gives way to a summary or a marker, and the commits that do it.

Two ways, one fence (design: section 4.2): the lane's summary takes in what is older than its newest records, and the
guard of the window cuts where a prompt would not fit. Both name the version of the context they saw, and are refused
when it has moved on. All in the order of their versions, their spans follow one another without a gap from the first
record of the transcript on.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from enum import StrEnum

from keepsaid.domain import commits, context, message, prompt
from keepsaid.text.tokens import estimate_tokens
from keepsaid.values import frozen

HOUR_MS = 3_600_000
_KEPT_LEAST = 2


class CutReason(StrEnum):
    """Why records left the context without a summary: they did not fit the window, or a person reset the lane."""

    GUARD = "guard"
    RESET = "reset"


@frozen
class Summarise(commits.Commit[bool]):
    """Replace the transcript of a lane up to position `last` by a summary; its session is marked for collection.

    Refused (False) when the context is no longer of the version `seen`, when `last` is not among the records after
    what is covered, and when a tool's result would lose its call.
    """

    lane: message.Lane
    seen: int
    last: int
    text: str
    made: context.Made
    model: str
    at: int


@frozen
class CutContext(commits.Commit[bool]):
    """Take the records up to position `last` out of a lane's context; its session is marked for collection.

    The transcript keeps them. A guard's cut leaves summary and a count of what is left out in force, a reset neither.
    Refused as `Summarise` is; but a reset may also come where there are no records to cut.
    """

    lane: message.Lane
    seen: int
    last: int
    why: CutReason
    at: int


@frozen
class SummaryFailed(commits.Commit[bool]):
    """Record an attempt to summarise a lane that came to nothing; none is made before `next_at`.

    Refused (False) when the context is no longer of the version `seen`: then nothing was missed.
    """

    lane: message.Lane
    seen: int
    error: str
    next_at: int
    at: int


@frozen
class SummariesCopied(commits.Commit[int]):
    """Memory has copies of these versions of lanes' summaries; returns of how many no newer one was known."""

    copies: tuple[tuple[message.Lane, int], ...]


@frozen
class CompactionTerms:
    """When a lane is summarised (seed 003): more messages, tokens or hours than these, beside the newest `keep`.

    Messages are what people and the assistant said; tokens are estimated.
    """

    messages: int = 30
    tokens: int = 2_500
    age_ms: int = 24 * HOUR_MS
    keep: int = 10


@frozen
class SummaryDue:
    """A lane is to be summarised up to position `last`, and why."""

    last: int
    why: str


def due(tail: context.LaneTail, terms: CompactionTerms, at: int) -> SummaryDue | None:
    """Whether the tail of a lane is to be summarised now.

    What many tokens alone would start waits until there is half as much to take in: where few long messages are kept,
    each new one would else cost a summary.
    """
    if (last := boundary(tail, terms.keep)) is None:
        return None
    records = tail.recent.records
    if (said := messages(records)) > terms.messages:
        return SummaryDue(last, f"{said} messages since the last summary")
    gives_way = bisect_right(tail.positions, last)
    older = tokens(records[:gives_way])
    cost = older + tokens(records[gives_way:])
    if cost > terms.tokens and 2 * older > terms.tokens:
        return SummaryDue(last, f"{cost} tokens since the last summary")
    if tail.summary is not None and at - tail.summary.created_at >= terms.age_ms:
        return SummaryDue(last, f"{(at - tail.summary.created_at) // HOUR_MS} hours since the last summary")
    return None


def boundary(tail: context.LaneTail, keep: int) -> int | None:
    """The last position to take in so that `keep` messages stay; None when there is none.

    The records that stay begin with a person's words if any such beginning is left, and never with a tool's result.
    """
    records, kept, begins = tail.recent.records, 0, 0
    for n in range(len(records) - 1, 0, -1):
        if records[n].role is prompt.Role.TOOL:
            continue
        kept += 1
        if kept < keep:
            continue
        begins = begins or n
        if records[n].role is prompt.Role.USER:
            return tail.positions[n] - 1
    return tail.positions[begins] - 1 if begins else None


def ahead(tail: context.LaneTail, share: float) -> int | None:
    """The last position to take in so that a share of the tail's messages gives way, and two stay; None for none."""
    said = messages(tail.recent.records)
    return boundary(tail, max(_KEPT_LEAST, said - int(said * share))) if share > 0 else None


def piece(span: context.TranscriptSpan, last: int, tokens_max: int) -> int | None:
    """Up to which position one summary takes in a span that is to give way up to `last`; None where it is empty.

    The oldest records that cost `tokens_max` estimated tokens together, and at least one with the results of its calls.
    A span that does not reach beyond `last` was read in part: what follows its last record is not known.
    """
    cost, end = 0, None
    for n, (record, position) in enumerate(zip(span.records, span.positions, strict=True)):
        if position > last:
            return last
        cost += cost_of(record)
        if end is not None and cost > tokens_max:
            return end
        if n + 1 < len(span.records) and span.records[n + 1].role is not prompt.Role.TOOL:
            end = span.positions[n + 1] - 1
    return end


def messages(records: Sequence[prompt.Record]) -> int:
    """How many of these a person or the assistant said."""
    return sum(record.role is not prompt.Role.TOOL for record in records)


def tokens(records: Iterable[prompt.Record]) -> int:
    """What records cost, in estimated tokens."""
    return sum(map(cost_of, records))


def cost_of(record: prompt.Record) -> int:
    """What one record costs, with the calls it asks for."""
    called = sum(estimate_tokens(f"{call.name} {call.arguments}") for call in record.calls)
    return estimate_tokens(record.text) + estimate_tokens(record.attached) + called
