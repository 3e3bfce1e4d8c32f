"""Recall: all search legs are asked at once and their results fused; it may start before its turn (design: 4.3)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from keepsaid.domain import prompt, receipt, turn
from keepsaid.domain.graph import Seed
from keepsaid.domain.memory import Found, Hit, Listener, Memory, Narrowing, Recalled
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.quotation import quote_of
from keepsaid.domain.slot import DatedText, read_answer
from keepsaid.memory.recall import ranking
from keepsaid.ports.memory_store import Library, Recall, Shelf
from keepsaid.ports.runtime import Clock
from keepsaid.text import normal, time_spans, topics
from keepsaid.values import frozen

QUERY_CHARS_MAX = 4_000
"""The characters of a query. Of a longer text these are its beginning and its end."""

_FOCUS_CHARS = 500
"""The characters of a quoted message, or of the answered question, that are added to the query."""

_LATELY, _LATELY_CHARS = 4, 400
"""The last messages of a lane, and the characters of each, that make the query of a message without words."""


async def query_of(claimed: turn.ClaimedBatch, said: Sequence[StoredMessage], recent: Awaitable[turn.Recent]) -> str:
    """The messages' own text, with what the newest replies to or answers; or what was last said, when it leans on that.

    It has at most 4,000 characters. Of longer messages the newest come first; of one that is too long by itself the
    beginning and the end are kept. What the prompt shows is only waited for when it is needed: recall begins while it
    is read.
    """
    focus = focus_text(claimed, said[-1])[:_FOCUS_CHARS]
    text = bounded_text([message.text for message in said], QUERY_CHARS_MAX - len(focus) - 1)
    if focus:
        return f"{text}\n{focus}"
    if not topics.leans(text):
        return text
    texts = [record.text for record in (await recent).records if record.text and record.role is not prompt.Role.TOOL]
    last = "\n".join(one[:_LATELY_CHARS] for one in texts[-_LATELY:])
    return normal.ends_of(f"{text}\n{last}".rstrip(), QUERY_CHARS_MAX)


def bounded_text(texts: Sequence[str], limit: int) -> str:
    """The texts on lines of their own, in at most `limit` characters, for which the last ones come first."""
    kept: list[str] = []
    for text in reversed(texts):
        if limit <= 0:
            break
        kept.append(normal.ends_of(text, limit))
        limit -= len(kept[-1]) + 1
    return "\n".join(reversed(kept))


def cut_note(length: int) -> tuple[str, ...]:
    """A note for receipts that a query of `length` characters was cut; none where it was not."""
    if length <= QUERY_CHARS_MAX:
        return ()
    return (f"query: {QUERY_CHARS_MAX:,} of {length:,} characters were searched for",)


def focus_text(claimed: turn.ClaimedBatch, newest: StoredMessage) -> str:
    """What the newest message replies to, or the question it answers; empty when it does neither."""
    reply_to = newest.inbound.marks.reply_to
    target = None if reply_to is None else claimed.around.target(reply_to)
    if target is not None:
        return target.text
    if (found := quote_of(newest)) is not None:
        return found[0].text
    heard = DatedText(newest.text, newest.received_at)
    for slot in claimed.around.slots:
        waits = slot.opened_at <= newest.received_at < slot.expires_at and slot.person == newest.inbound.origin.sender
        if waits and read_answer(slot.question, heard) is not None:
            return slot.question.text
    return ""


_DEEP = 200
"""The candidates of a search with filters."""


async def narrowed(
    recall: Recall, library: Library, listener: Listener, wanted: tuple[str, int], narrowing: Narrowing
) -> Recalled:
    """The best memories for a query that keep within filters; `wanted` is the query and how many."""
    query, limit = wanted
    if narrowing == Narrowing():
        return await recall.recall(listener, query, limit)
    recalled = await recall.recall(listener, query, max(_DEEP, limit), narrowing.as_of)
    fitting = set(await library.narrowed(listener, [hit.memory.id for hit in recalled.hits], narrowing))
    hits = tuple(hit for hit in recalled.hits if hit.memory.id in fitting and narrowing.about(hit.memory))
    return replace(recalled, hits=hits[:limit])


NO_EMBEDDER = f"{ranking.VECTOR}: no embedder"

_DEPTH, _DEPTH_EACH = 100, 2
"""How many memories each leg gives at least, and at least for each that is wanted."""

_READ_MIN, _READ_SHARE = 60, 3.0
"""How many of the best are read, and for each that is wanted, so that what stands in them can change their order."""

_DEPTH_AS_OF = 400
"""And at least where only what held true at some time is wanted."""

_FEW_WORDS = 3
"""A query of so few words that speaks of some days looks for what was said on them by their names."""

_WALKED_MAX = 50
"""The results of the graph retriever at most."""

_BEYOND_MAX = 100
"""The memories after the hits that are listed at most, to report where a memory ended."""


class _RecallQuery(NamedTuple):
    """A query, the times it mentions, when it is asked, and the time whose truth it asks for."""

    query: str
    when: time_spans.When
    now: int
    as_of: int | None


@frozen
class Recollection:
    """Ranked recall over legs, ungated. `absent` names the legs that are not configured, each with its reason.

    A leg has its own time limit, and reading what was found has that of the slowest leg; for a caller that can
    wait longer, make another with slower legs. The graph leg, if there is one, goes on from what the others found.
    """

    legs: Sequence[ranking.Leg]
    memories: Shelf
    clock: Clock
    absent: Sequence[str] = (NO_EMBEDDER,)
    graph: ranking.GraphLeg | None = None

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best `limit` memories of all legs, best first, and the legs that could not answer. Never raises.

        With `as_of`, of what held true at that time (milliseconds UTC); else what holds now comes first. Of a query of
        more than 4,000 characters the beginning and the end are searched for, and `missing` says so.
        """
        began = self.clock.monotonic_ms()
        limit = max(0, limit)
        depth = max(_DEPTH if as_of is None else _DEPTH_AS_OF, limit * _DEPTH_EACH) if limit else 0
        now = self.clock.now_ms()
        cut, query = cut_note(len(query)), normal.ends_of(query, QUERY_CHARS_MAX)
        when = time_spans.times_in(query, now)
        sought = query
        if when.spans and len([word for word in topics.topic(query) if not word.isdigit()]) <= _FEW_WORDS:
            sought = f"{query} {when.days()}".rstrip()
        searches = (self._run_leg(leg, partial(leg.search, listener, sought, depth)) for leg in self.legs)
        answers = await asyncio.gather(*searches)
        shares = [share for _, share in answers if share is not None]
        fused = ranking.fuse(shares)
        if self.graph is not None and depth and shares:
            seeds = [Seed(id_, value / fused[0].value) for id_, value in fused[:_DEPTH] if value > 0]
            how, walked = await self._run_leg(self.graph, partial(self.graph.walk, listener, query, seeds, _WALKED_MAX))
            answers.append((how, walked))
            if walked is not None and walked.found:
                shares.append(walked)
                fused = ranking.fuse(shares)
        searched = tuple(how for how, _ in answers)
        missing = [how.why for how in searched if how.why]
        asked = _RecallQuery(query, when, now, as_of)
        slowest_ms = max((leg.limit_ms for leg in self.legs), default=0.0)
        read = await ranking.ask("memories", partial(self._read, listener, asked, shares, fused, limit), slowest_ms)
        # most queries ask for no slot: that no fact fills one says nothing of what memory holds
        answered = any(share.found or share.name != ranking.FACT for share in shares)
        if isinstance(read, ranking.Missing):
            missing.append(read.why)
            read, answered = ((), ()), False
        took = self.clock.monotonic_ms() - began
        hits, beyond = read
        by_meaning = any(leg.name == ranking.VECTOR for leg in self.legs)
        return Recalled(hits, (*missing, *cut, *self.absent), took, answered, searched, beyond, by_meaning)

    async def _run_leg(
        self, leg: ranking.Leg | ranking.GraphLeg, search: Callable[[], Awaitable[tuple[Found, ...]]]
    ) -> tuple[receipt.Searched, ranking.LegShare | None]:
        """Run a leg; returns its measurements and its results."""
        began = self.clock.monotonic_ms()
        found = await ranking.ask(leg.name, search, leg.limit_ms)
        took = self.clock.monotonic_ms() - began
        if isinstance(found, ranking.Missing):
            return receipt.Searched(leg.name, 0, took, found.why), None
        return receipt.Searched(leg.name, len(found), took), leg.share(found)

    async def _read(
        self,
        listener: Listener,
        asked: _RecallQuery,
        shares: Sequence[ranking.LegShare],
        fused: Sequence[ranking.Fused],
        limit: int,
    ) -> tuple[tuple[Hit, ...], tuple[receipt.Beyond, ...]]:
        """The best, read; and what came next."""
        first = fused if asked.as_of is not None else fused[: max(_READ_MIN, int(limit * _READ_SHARE))]
        if not first:
            return (), ()
        read = await self.memories.fetch(listener, [one.memory_id for one in first], asked.as_of)
        found = {memory.id: memory for memory in read}
        now = asked.now if asked.as_of is None else None
        ranked = ranking.weighed(asked.query, first, found, asked.when, now)
        if now is not None and not asked.when.spans:
            found |= await self._successors(listener, found)
            ranked = ranking.behind_successors(ranked, found)
        ranked = ranking.apart(ranked, found)
        best = ranked[:limit]
        after = [*ranked[limit:], *fused[len(first) :]][:_BEYOND_MAX]
        there = ranking.places(shares, [one.memory_id for one in (*best, *after)])
        for rank, (id_, value) in enumerate((*best, *after), 1):
            there[id_] = there[id_] or (receipt.Place(ranking.SUCCESSOR, rank, value),)
        now_ids = {id_: now for id_, _ in best if (now := ranking.current(id_, found)) != id_}
        hits = [Hit(found[id_], *there[id_][0][:3], value, there[id_], now_ids.get(id_, 0)) for id_, value in best]
        beyond = [receipt.Beyond(id_, rank, value, there[id_]) for rank, (id_, value) in enumerate(after, limit + 1)]
        return tuple(hits), tuple(beyond)

    async def _successors(self, listener: Listener, found: Mapping[int, Memory]) -> dict[int, Memory]:
        """What took the place of these, and of that, as far as the listener may read it."""
        more: dict[int, Memory] = {}
        named = [one.superseded_by for one in found.values()]
        for _ in range(_SUCCESSIONS_MAX):
            wanted = {one for one in named if one is not None} - found.keys() - more.keys()
            if not wanted:
                break
            read = await self.memories.fetch(listener, sorted(wanted))
            more |= {memory.id: memory for memory in read}
            named = [one.superseded_by for one in read]
        return more


_SUCCESSIONS_MAX = 8
"""How often in a row what took a place is read, and what took the place of that."""

_KEPT_MS = 1_000.0
"""What was begun is of use for so long; where nobody asked for it, nothing else is begun in that time."""


class _Begun(NamedTuple):
    """A recall under way: what was asked, how many commits memory had seen, when that was, and the answer."""

    asked: tuple[Listener, str, int]
    changes: int
    at: float
    answer: asyncio.Task[Recalled]


class RecallPrefetch:
    """Recall with a prefetch: at most one recall may have been started before its result is requested.

    The result is that of a recall started on request: if memory has changed since, recall runs again.
    `changes` counts the finished commits to memory. A prefetch is not stored: if it is lost, recall runs again.
    """

    def __init__(self, recall: Recall, changes: Callable[[], int], clock: Clock) -> None:
        self._recall = recall
        self._changes = changes
        self._clock = clock
        self._begun: _Begun | None = None
        self._rests_until = 0.0

    @property
    def rests(self) -> bool:
        """Whether nothing is begun now: something is already, or was in vain a short while ago."""
        return self._clock.monotonic_ms() < self._rests_until

    def begin(self, listener: Listener, query: str, limit: int) -> None:
        """Begin a recall that will be asked for soon, if there is time for it."""
        if self.rests:
            return
        self.stop()
        now = self._clock.monotonic_ms()
        answer = asyncio.create_task(self._recall.recall(listener, query, limit))
        self._begun = _Begun((listener, query, limit), self._changes(), now, answer)
        self._rests_until = now + _KEPT_MS

    async def recall(self, listener: Listener, query: str, limit: int, as_of: int | None = None) -> Recalled:
        """The best memories for a query, as of now; or of what held true at a time."""
        begun = self._begun
        if begun is None or as_of is not None or begun.asked != (listener, query, limit):
            return await self._recall.recall(listener, query, limit, as_of)
        if begun.changes != self._changes() or self._clock.monotonic_ms() - begun.at > _KEPT_MS:
            self.stop()
            return await self._recall.recall(listener, query, limit)
        self._begun, self._rests_until = None, 0.0
        return await begun.answer

    def stop(self) -> None:
        """Give up what was begun."""
        if self._begun is not None:
            self._begun.answer.cancel()
            self._begun = None
