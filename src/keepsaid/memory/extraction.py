"""Extraction: reads spans of transcripts once, within a daily budget, and turns findings into memories."""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain import forgetting, message, process, prompt, session, visibility
from keepsaid.domain.attribute_values import is_of_kind
from keepsaid.domain.attributes import value_name
from keepsaid.domain.graph import Association
from keepsaid.domain.learning import LEARNABLE, RULES, ExtractionResult, Statement, kept
from keepsaid.domain.memory import Listener, NewMemory, Source, chat_of, episode_scope, person_of, person_scope
from keepsaid.domain.statements import asks_to_remember, extract_statements
from keepsaid.errors import KeepsaidError, ModelAuth, ModelQuota, ModelUnavailable
from keepsaid.ports import memory_store, model, runtime, store_views
from keepsaid.ports.store import Store
from keepsaid.values import frozen

_DAY_MS = 86_400_000
_NAME = "collection spent"


class Spending:
    """Calls and tokens of one day (UTC)."""

    def __init__(self, notes: store_views.Notes, clock: runtime.Clock) -> None:
        self._notes = notes
        self._clock = clock
        self._day = -1
        self.calls = 0
        self.tokens = 0

    async def look(self) -> bool:
        """Read what was spent today, where that is not known; returns whether a day has begun."""
        now = self._clock.now_ms()
        day = now // _DAY_MS
        if day == self._day:
            return False
        noted = await self._notes.note(f"{_NAME} {day}", now)
        self._day = day
        self.calls, self.tokens = json.loads(noted) if noted else (0, 0)
        return True

    async def spend(self, calls: int, tokens: int) -> None:
        """Add to it. Raises a StoreError: then it is not to be spent."""
        await self.look()
        self.calls += calls
        self.tokens += tokens
        now, ends = self._clock.now_ms(), (self._day + 1) * _DAY_MS
        await self._notes.apply(process.Note(f"{_NAME} {self._day}", json.dumps([self.calls, self.tokens]), ends, now))


_WEIGHT_LEAST = 0.1
"""What belongs together does so at least so much, however uncertain either is."""


def memories_of(finding: ExtractionResult, utterances: Sequence[session.Utterance]) -> list[NewMemory]:
    """The memories made from a finding; none for a statement whose sources are gone, or were never fit."""
    cited = {at for one in finding.statements if one is not None for at in one.records}
    sources = {one.position: one for one in utterances if one.is_source and one.position in cited}
    asking = {one.position for one in sources.values() if asks_to_remember(one.text)}
    stated = [(n, one) for n, one in enumerate(finding.statements) if one is not None]
    found = (_of_statement(finding, n, one, sources, asking) for n, one in stated)
    return [memory for several in found for memory in several]


def links_of(finding: ExtractionResult, memories: Sequence[NewMemory], ids: Sequence[int]) -> list[Association]:
    """How the memories of a finding belong together, as its statements are linked; `ids` are theirs, 0 for none.

    Only memories of one scope are associated, each as far as both are certain.
    """
    places: dict[tuple[int, str], tuple[int, float]] = {}
    for memory, id_ in zip(memories, ids, strict=True):
        if id_:
            n = int(memory.sources[0].ref.partition(":")[2])
            places[n, memory.scope] = id_, memory.confidence
    found = []
    for (n, scope), (id_, certain) in places.items():
        statement = finding.statements[n]
        for link in () if statement is None else statement.links:
            other, sure = places.get((link.to, scope), (id_, 0.0))
            if other != id_:
                found.append(Association(id_, other, link.relation, max(_WEIGHT_LEAST, min(certain, sure))))
    return found


def _of_statement(
    finding: ExtractionResult, n: int, one: Statement, sources: Mapping[int, session.Utterance], asking: Container[int]
) -> Iterator[NewMemory]:
    if any(at not in sources for at in one.records):
        return
    cited = [sources[at] for at in sorted(set(one.records))]
    origins = [_origin(said, finding.lane) for said in cited]
    parents = [visibility.Parent(episode_scope(origin, finding.lane), origin.trust) for origin in origins]
    for place, share in enumerate(visibility.shares(parents)):
        said = [cited[at] for at in share.parents]
        last, origin = said[-1], origins[share.parents[-1]]
        ref = f"{finding.id}:{n}"
        slot = (one.attribute, one.value) if is_of_kind(one.attribute, one.value) else ("", "")
        by = person_of(origin)
        memory = NewMemory(
            key=f"finding:{ref}" + (f":{place}" if place else ""),
            kind=one.kind,
            text=one.text,
            scope=share.scope,
            trust=share.trust,
            lane=finding.lane,
            speaker=last.speaker,
            speaker_id=by,
            subject=one.subject,
            subject_id=by if one.subject and value_name(one.subject) == value_name(last.speaker) else "",
            chat_of=chat_of([origins[at] for at in share.parents]),
            said_at=max(each.at for each in said),
            importance=one.importance,
            sources=(Source("finding", ref), *(Source(*each.ref.partition(":")[::2]) for each in said)),
            derived=True,
            attribute=slot[0],
            value=slot[1],
            valid_from=one.valid_from,
            valid_to=one.valid_to,
            confidence=one.confidence,
            asked=any(each.position in asking for each in said),
            about=one.about,
        )
        yield memory
        if _is_own(memory, [origins[at] for at in share.parents]):
            yield replace(memory, key=f"{memory.key}:own", scope=person_scope(by))


def _is_own(memory: NewMemory, origins: Sequence[message.Origin]) -> bool:
    """Whether it is a fact that one person stated about themself in a group: their direct chats show it too."""
    alone = len({person_of(one) for one in origins}) == 1 and not any(one.direct for one in origins)
    return alone and memory.subject_id != "" and memory.trust is not message.Trust.EXTERNAL


def speaker_of(one: session.Utterance, lane: message.Lane) -> str:
    """The person who said something, or AGENT."""
    return person_of(_origin(one, lane)) if one.role is prompt.Role.USER else forgetting.AGENT


def _origin(one: session.Utterance, lane: message.Lane) -> message.Origin:
    return message.Origin(lane.channel, lane.account, lane.conversation, one.sender, one.speaker, one.direct, one.trust)


def without_secrets(one: Statement, redacted: Callable[[str], str]) -> Statement:
    """A statement as it may be kept."""
    subject, attribute, value = redacted(one.subject), redacted(one.attribute), redacted(one.value)
    about = tuple(named._replace(name=redacted(named.name)) for named in one.about)
    return replace(one, text=redacted(one.text), subject=subject, attribute=attribute, value=value, about=about)


_SLOTS_MAX = 60
_SLOT_CHARS_MAX = 160
_LOOKED_AT = 300
_PEOPLE_MAX = 8


@frozen
class KnownSlots:
    """Reads what is known of the people of a passage, so that what is learned next is named alike."""

    memories: memory_store.Memories

    async def lines(self, passage: session.Passage) -> tuple[str, ...]:
        """Subject, attribute and value of current facts that may be read there, the newest first, sixty at most."""
        direct = {speaker_of(one, passage.lane): one.direct for one in passage.sources}
        found: dict[str, None] = {}
        for person, is_direct in list(direct.items())[:_PEOPLE_MAX]:
            listener = Listener(passage.lane, person, direct=is_direct)
            for one in await self.memories.find(listener, tuple(LEARNABLE), _LOOKED_AT):
                if one.new.subject and one.new.attribute:
                    slot = f"{one.new.subject} | {one.new.attribute} | {one.new.value}"
                    found[" ".join(slot.split())[:_SLOT_CHARS_MAX]] = None
        return tuple(found)[:_SLOTS_MAX]


_WAIT_MS_MAX = 3_600_000
_FINDING_RECORDS_MAX = 1_000


@frozen
class ExtractionLimits:
    """How sessions are read: records and estimated tokens of a passage, and what failing costs.

    After an attempt that came to nothing the next waits, `wait_ms` at first, then twice as long each time, an hour at
    most; after `tries` of them the session is parked. A claim that nobody ends is free after `lease_ms`. A session that
    goes on waits for `ripe` records.
    """

    records_max: int = 30
    tokens_max: int = 4_000
    tries: int = 5
    wait_ms: int = 60_000
    lease_ms: int = 600_000
    ripe: int = session.RIPE


@dataclass(slots=True, eq=False)
class Collection:
    """Reads marked sessions, one passage at a time."""

    store: Store
    learning: memory_store.Learning
    extractor: model.Extractor
    clock: runtime.Clock
    ids: runtime.Ids
    redactor: runtime.Redactor
    reading: ExtractionLimits = ExtractionLimits()
    graph: memory_store.Graph | None = None
    known: KnownSlots | None = None
    spending: Spending = field(init=False)
    _owner: str = field(init=False)

    def __post_init__(self) -> None:
        self.spending = Spending(self.store, self.clock)
        self._owner = f"{self.ids.next():x}"

    @property
    def thorough(self) -> bool:
        return self.extractor.thorough

    async def claim(self) -> session.ExtractionLease | None:
        """The session that is due for longest."""
        now = self.clock.due_ms()
        terms = self.extractor.thorough, self.reading.ripe
        claim = session.ClaimCollection(self._owner, now, now + self.reading.lease_ms, *terms)
        return await self.store.apply(claim)

    async def read(self, claimed: session.ExtractionLease) -> session.Left:
        """Read the next passage of a session. Raises a ModelError or a StoreError: then it is read again."""
        if (finding := claimed.finding) is None:
            passage = await self._passage(claimed)
            if not passage.sources:
                return await self._done(claimed, passage.last, thorough=claimed.whole or self.thorough)
            if self.thorough and not session.may_state(passage):
                return await self._done(claimed, passage.last, thorough=True)
            finding = await self._found(claimed, passage)
            if finding.statements and not await self.store.apply(session.KeepFinding(finding, claimed.fence)):
                return session.Left.REFUSED
            if not finding.statements:
                return await self._done(claimed, finding.last, thorough=finding.thorough)
        runtime.point("finding.kept")
        await self._apply(finding)
        runtime.point("finding.applied")
        return await self._done(claimed, finding.last, thorough=finding.thorough, finding_id=finding.id)

    async def failed(self, claimed: session.ExtractionLease, error: Exception) -> bool:
        """Record a reading that came to nothing; returns whether that is an outage, which nobody is charged for."""
        outage = isinstance(error, ModelUnavailable | ModelAuth | ModelQuota)
        now, reading = self.clock.due_ms(), self.reading
        attempts = claimed.attempts + (not outage)
        wait = min(_WAIT_MS_MAX, reading.wait_ms * 2 ** min(claimed.attempts, 16))
        what = error.what if isinstance(error, KeepsaidError) else f"unexpected {type(error).__name__}"
        next_at = None if attempts >= reading.tries else now + wait
        await self.store.apply(
            session.CollectionFailed(claimed.session_id, claimed.fence, what, now, next_at, charged=not outage)
        )
        return outage

    async def _passage(self, claimed: session.ExtractionLease) -> session.Passage:
        """What is to be read next, without the secrets in it."""
        passage = await self.store.passage(claimed.session_id, claimed.after, self.reading.records_max)
        if passage is None:
            return session.Passage(claimed.lane, claimed.after + 1, claimed.marked)
        readable = tuple(one for one in passage.utterances if one.is_readable)
        found = await runtime.masked_texts(self.redactor, [one.text for one in readable])
        plain = tuple(replace(one, text=text) for one, (text, _) in zip(readable, found, strict=True))
        kept = await self._unforgotten(replace(passage, utterances=plain))
        fitted = session.fitted(kept, self.reading.tokens_max)
        if self.known is None or not self.thorough:
            return fitted
        return replace(fitted, slots=await self.known.lines(fitted))

    async def _unforgotten(self, passage: session.Passage) -> session.Passage:
        """The passage without texts that repeat a sentence that was forgotten, unless they ask to remember it."""
        lane, said = passage.lane, passage.utterances
        echoes = await self.learning.echoes.in_texts([(speaker_of(one, lane), one.text) for one in said])
        if not any(echoes):
            return passage

        def read() -> tuple[session.Utterance, ...]:
            each = zip(said, echoes, strict=True)
            return tuple(one for one, echo in each if not echo or asks_to_remember(one.text))

        return replace(passage, utterances=await runtime.read_sentences(read, _chars(said)))

    async def _found(self, claimed: session.ExtractionLease, passage: session.Passage) -> ExtractionResult:
        if self.thorough:
            await self.spending.spend(1, 0)
        found = await self.extractor.extract(passage)
        if found.calls:
            await self.spending.spend(found.calls - 1, found.usage.tokens_in + found.usage.tokens_out)
        sources = {one.position for one in passage.sources}
        fit = kept(found.statements, lambda one: sources.issuperset(one.records))
        statements = tuple(without_secrets(one, self.redactor.redacted) for one in fit)
        number, now, name = self.ids.next(), self.clock.now_ms(), self.extractor.name
        place = (claimed.session_id, claimed.lane, passage.first, passage.last)
        return ExtractionResult(number, *place, name, statements, found.usage, now)

    async def _apply(self, finding: ExtractionResult) -> None:
        many = min(_FINDING_RECORDS_MAX, finding.last - finding.first + 1)
        passage = await self.store.passage(finding.session_id, finding.first - 1, many)
        utterances = () if passage is None else passage.utterances
        memories = await runtime.read_sentences(partial(memories_of, finding, utterances), _chars(utterances))
        if not memories:
            return
        now = self.clock.now_ms()
        learnt = await self.learning.learn(memories, now)
        links = links_of(finding, memories, [one.memory_id for one in learnt])
        if links and self.graph is not None:
            await self.graph.relate(links, (), now)

    async def _done(
        self, claimed: session.ExtractionLease, until: int, *, thorough: bool, finding_id: int | None = None
    ) -> session.Left:
        now = self.clock.due_ms()
        return await self.store.apply(
            session.Collected(claimed.session_id, claimed.fence, until, now, thorough, finding_id)
        )


def _chars(utterances: Sequence[session.Utterance]) -> int:
    return sum(len(one.text) for one in utterances)


class ExplicitExtractor:
    """Reads what people said, by the rules of `domain.explicit`."""

    name = RULES
    thorough = False

    async def extract(self, passage: session.Passage) -> model.Extracted:
        sources = passage.sources

        def read() -> model.Extracted:
            stated = (made.by(one.speaker, one.position) for one in sources for made in extract_statements(one.text))
            return model.Extracted(tuple(stated))

        return await runtime.read_sentences(read, _chars(sources))
