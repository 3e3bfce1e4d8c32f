"""Memories, by their owner's word: searched, added, put right, pinned, merged, archived, marked as wrong for a turn."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from keepsaid.domain import commits, learning, memory, message, receipt, redaction, views
from keepsaid.domain.ids import moment, read, show
from keepsaid.domain.revision import RevisionRefusal
from keepsaid.domain.statements import extract_statements, with_slot
from keepsaid.errors import InputError, KeyConflict, StoreError
from keepsaid.memory.importing import whole_object
from keepsaid.memory.recall.ranking import TEXT
from keepsaid.memory.recall.recollection import narrowed
from keepsaid.ports import memory_store, store
from keepsaid.ports.runtime import Clock, Redactor, masked_texts, read_sentences
from keepsaid.ports.store_views import Operations
from keepsaid.text.languages import content_roots, indexed_terms, query_terms
from keepsaid.text.normal import cut, digest, normalise
from keepsaid.text.time_spans import times_in
from keepsaid.text.topics import only_asks
from keepsaid.text.words import root, said_words, spelled
from keepsaid.values import frozen

_SAFE = "Nothing was changed."
_CHARS_MAX = 50_000


def kind_in(
    name: str, kinds: Collection[memory.Kind] = tuple(memory.Kind), hint: str = "keepsaid memory search --help"
) -> memory.Kind:
    """The kind of memory that has a name; raises InputError for what is none of these."""
    if name not in kinds:
        raise InputError(f"there is no kind {name!r}; one of: {', '.join(kinds)}", safe=_SAFE, hint=hint)
    return memory.Kind(name)


@frozen
class MemoryAuthor:
    """Whose word a memory is: who may read it, how far it is trusted, and who said it, by name and as a person."""

    scope: str
    trust: message.Trust
    name: str
    person: str

    def key_of(self, *parts: str) -> str:
        """The key of a memory that this author wrote: no other author's is called the same."""
        own = () if self.person == memory.OWNER else (self.scope,)
        return digest(*own, *parts).hex()

    def note_key(self, named: str) -> str:
        """The key under which a memory is stored that this author names."""
        return f"note:{self.key_of('named', named)}"


NO_METADATA = "{}"
"""The metadata of a memory that has none."""

OWNER_AUTHOR = MemoryAuthor(memory.person_scope(memory.OWNER), message.Trust.OWNER, memory.OWNER, memory.OWNER)
"""The owner, in words that are readable in the owner's direct chats."""


def note(text: str, kind: str, now_ms: int, author: MemoryAuthor = OWNER_AUTHOR, named: str = "") -> memory.NewMemory:
    """An author's own memory. The same text twice is one memory, and so is what is `named` the same.

    Raises InputError when the text is empty or too long, or the kind is none a person can add.
    """
    if not (said := normalise(text).strip()):
        raise InputError("a memory needs a text", hint='keepsaid memory add "TEXT"')
    if len(said) > _CHARS_MAX:
        what = f"a memory may have {_CHARS_MAX:,} characters; this has {len(said):,}"
        raise InputError(what, hint="keepsaid memory add --help")
    one = kind_in(kind, memory.IMPORTANCE, "keepsaid memory add --help")
    key = author.note_key(named) if named else f"note:{author.key_of(kind, said)}"
    weight, sources = memory.IMPORTANCE[one], (memory.Source("note", _named(key, said) if named else key),)
    return replace(_word(key, one, said, now_ms, author), importance=weight, sources=sources)


def _named(key: str, said: str) -> str:
    """The source of a memory under a key that its author gave: it shows whether the same was said under that key."""
    return f"{key}:{digest(said).hex()}"


def _word(key: str, kind: memory.Kind, said: str, now_ms: int, author: MemoryAuthor) -> memory.NewMemory:
    new = memory.NewMemory(key, kind, said, author.scope, author.trust, speaker=author.name, said_at=now_ms)
    return replace(new, speaker_id=author.person, asked=True)


@frozen
class AddedMemory:
    """A memory that was added: its id, 0 when it was forgotten before; secrets left out, by kind.

    `lifted` says that it had been forgotten and may be remembered again; one that is not `is_new` was there before.
    """

    id: int
    redacted: Mapping[str, int]
    lifted: bool
    is_new: bool = True


class MemoryService:
    """Changes memories; no stored text is lost by it."""

    def __init__(self, memories: store.MemoryStore, operations: Operations, clock: Clock, redactor: Redactor) -> None:
        self._memories = memories
        self._operations = operations
        self._clock = clock
        self._redactor = redactor

    async def add(
        self, text: str, kind: str, author: MemoryAuthor = OWNER_AUTHOR, named: str = "", metadata: str = NO_METADATA
    ) -> AddedMemory:
        """Remember what an author says, without the secrets in it; `named` names it for who adds it again.

        `metadata` is an object of JSON, which is kept with a memory that is new, without the secrets in it. Raises
        InputError, KeyConflict where `named` named another text before, and StoreError.
        """
        new = note(text, kind, self._clock.now_ms(), author, named)
        plain, about = await masked_texts(self._redactor, [new.text, metadata])
        new = replace(new, metadata=whole_object(about.text))
        lifted = await self._memories.echoes.in_memory(new)
        new = replace(with_slot(replace(new, text=plain.text)), text=new.text)
        number = await self._stored(new)
        there = await self._memories.get(OWNER_HEARS, number)
        while there is not None and there.state != "active" and not named:
            # the same was said before and holds no more: said again after what replaced it, it holds from now on
            key = f"{new.key}:{there.superseded_by or 0:x}"
            new = replace(new, key=key, sources=(memory.Source("note", key),))
            number = await self._stored(new)
            there = await self._memories.get(OWNER_HEARS, number)
        is_new = there is None or there.recorded_at >= new.said_at
        if named and there is not None and new.sources[0] not in there.new.sources:
            raise KeyConflict(f"the key {cut(named, 80)!r} was used before for another text")
        return AddedMemory(number, redaction.counted_kinds(plain.marks), lifted, is_new=is_new)

    async def _stored(self, new: memory.NewMemory) -> int:
        """Store a memory, in its slot if it has one; returns its id."""
        if new.attribute:
            [learned] = await self._memories.learn([new], new.said_at)
            return learned.memory_id
        [number] = await self._memories.keep([new], new.said_at)
        return number

    async def edit(
        self,
        memory_id: int,
        text: str,
        value: str,
        author: MemoryAuthor = OWNER_AUTHOR,
        metadata: str = NO_METADATA,
    ) -> learning.LearnResult:
        """Put a memory right, by the word of an author who may; what it said before is kept as past.

        `value` is what its slot is from now on, where it has one; without, the text is. Raises InputError when it
        cannot be done.
        """
        said, now = normalise(text).strip(), self._clock.now_ms()
        if not said:
            raise InputError("a memory needs a text", safe=_SAFE)
        if len(said.encode()) > learning.BYTES_MAX:
            raise InputError(f"a memory needs a text of at most {learning.BYTES_MAX:,} bytes", safe=_SAFE)
        key = f"edit:{digest(str(memory_id), said, value, str(now)).hex()}"
        sources = (memory.Source("person", key),)
        word = replace(_word(key, memory.Kind.FACT, said, now, author), value=normalise(value).strip(), sources=sources)
        word = replace(word, metadata=metadata)
        done = await self._memories.revisions.correct(memory_id, word, now)
        if done.how is learning.LearnOutcome.REFUSED:
            name = show("memory", memory_id)
            why = done.why if done.why.startswith(name) else f"{name}: {done.why}"
            raise InputError(why, safe=_SAFE, hint="keepsaid memory ls")
        if done.how is learning.LearnOutcome.FORGOTTEN:
            raise InputError("this was forgotten, and what was forgotten is not learned again", safe=_SAFE)
        return done

    async def pin(self, memory_id: int, *, pinned: bool) -> None:
        """Pin or unpin a memory; raises InputError if it is not current."""
        _check(await self._memories.revisions.pin(memory_id, self._clock.now_ms(), pinned=pinned))

    async def merge(self, into: int, others: Sequence[int], *, anyway: bool = False) -> None:
        """Move the sources of duplicates to one memory; raises InputError if they cannot be merged.

        Memories that share less than half of their words are merged `anyway` only: they may not say the same.
        """
        read_now = await self._memories.fetch(OWNER_HEARS, [into, *others])
        found = {one.id: one for one in read_now if one.state == "active"}
        for other in others:
            if not anyway and into in found and other in found and not _alike(found[into].text, found[other].text):
                name, kept = show("memory", other), show("memory", into)
                what = f"{name} does not seem to say the same as {kept}, and merging them would hide what it says"
                raise InputError(what, safe=_SAFE, hint=f"keepsaid memory merge {kept} {name} --anyway")
        _check(await self._memories.revisions.merge(into, others, self._clock.now_ms()))

    async def archive(self, named: Sequence[int], *, back: bool = False) -> tuple[int, ...]:
        """Archive memories, all or none, or restore archived ones (`back`); returns the ids that were changed.

        Raises InputError if one to archive is not current, or if none to restore is archived.
        """
        done = await self._memories.revisions.archive(named, self._clock.now_ms(), back=back)
        if isinstance(done, RevisionRefusal):
            raise refused(done)
        if not done:
            what = "none of these memories is archived; what was forgotten is brought back by the id of the request"
            raise InputError(what, safe=_SAFE, hint="keepsaid memory forgotten")
        return done

    async def record_feedback(self, memory_id: int, turn_id: int, *, undo: bool = False) -> bool:
        """Mark a memory as wrong for a turn that was shown it, or withdraw that; False if it was not shown."""
        word = receipt.JudgeMemory(turn_id, memory_id, memory.OWNER, "withdraw" if undo else "mark")
        return await self._operations.apply(commits.RecordFeedback(word, self._clock.now_ms()))


_ALIKE = 0.5
"""Such a share of the words of the shorter text stands in the other where two are taken to say the same."""


def _alike(one: str, other: str) -> bool:
    told = [content_roots(text) for text in (one, other)]
    fewer = min(map(len, told))
    return one == other or (fewer > 0 and len(told[0] & told[1]) >= _ALIKE * fewer)


def refused(refusal: RevisionRefusal) -> InputError:
    """The error for a change to a memory that was refused."""
    return InputError(refusal.sentence, safe=_SAFE, hint=refusal.hint)


def _check(refusal: RevisionRefusal | None) -> None:
    if refusal is not None:
        raise refused(refusal)


_RECORDED_WITHIN_S = 2.0


@frozen
class RememberedService:
    """Reads what a message's turn stored. `record` stores what the turns of a conversation asked of memory."""

    memories: store.MemoryStore
    record: Callable[[str], Awaitable[object]]

    async def add_to(self, story: views.Story) -> views.Story:
        """The story with the memories that its turn stored; as it was where memory does not answer in time."""
        if story.turn_id is None:
            return replace(story, remembered=())
        said = story.message
        try:
            async with asyncio.timeout(_RECORDED_WITHIN_S):
                if story.staged or await read_sentences(partial(_is_learned, said.text), len(said.text)):
                    await self.record(said.lane.conversation)
                listener = memory.Listener(said.lane, memory.person_of(said.inbound.origin), direct=True)
                found = await self.memories.revisions.remembered(listener, story.turn_id, (said.id,))
        except (StoreError, TimeoutError):
            return story
        return replace(story, remembered=tuple(found))


def _is_learned(text: str) -> bool:
    return any(one.is_immediate for one in extract_statements(text))


FOUND_MAX = 10_000
"""The memories that one search or list returns at most."""

OWNER_HEARS = memory.Listener(None, everything=True, cross=True)


@frozen
class SearchRequest:
    """What is looked for, how many are wanted, what the search keeps to, and whether what was `archived` is meant."""

    query: str
    limit: int = 10
    narrowing: memory.Narrowing = memory.Narrowing()
    archived: bool = False

    def check(self) -> None:
        """Raise InputError for an empty query, and for filters that contradict each other."""
        if not self.query.strip():
            raise InputError("query must be a text that is not empty", safe=_SAFE)
        since, until = self.narrowing.since, self.narrowing.until
        if since is not None and until is not None and since > until:
            raise InputError("since must not be later than until", safe=_SAFE)
        if self.archived and replace(self.narrowing, as_of=None) != memory.Narrowing():
            raise InputError("what was archived is searched by its words and by as_of alone", safe=_SAFE)


def filters_of(given: Mapping[str, str]) -> memory.Narrowing:
    """The filters `kind`, `person`, `since`, `until` and `as_of` as people write them; a day as `until` or `as_of`
    includes all of the day. An empty text does not filter. Raises InputError that names the filter.
    """
    kind = given.get("kind", "")
    times: dict[str, int | None] = {}
    for name in ("since", "until", "as_of"):
        text = given.get(name, "")
        try:
            times[name] = moment(text, ends=name != "since") if text else None
        except ValueError as error:
            raise InputError(f"{name}: {text!r} is not {error}", safe=_SAFE) from None
    return memory.Narrowing(kind_in(kind) if kind else None, normalise(given.get("person", "")), **times)


def hits_in(found: memory.Recalled) -> Sequence[memory.Hit]:
    """What was found, best first; raises StoreError when memory could not answer, which is not finding nothing."""
    if not found.answered:
        raise StoreError(f"memory could not answer: {'; '.join(found.missing)}", safe=_SAFE)
    return found.hits


_LISTED_FROM = 30
"""How many memories are recalled at least for a list, so that its order can bring one of them into the list."""


def listed(query: str, hits: Sequence[memory.Hit], at: int) -> tuple[memory.Hit, ...]:
    """The hits in the order of a list: by their own words or meaning before by their neighbours' words alone.

    The latter are marked as `neighbour`. Messages that only ask come behind both. In each group those that are current
    at `at` (milliseconds UTC) come first; otherwise the order of recall stays.
    """
    asked, terms = content_roots(query), frozenset(query_terms(query))
    asks_for_time = bool(times_in(query, at).spans)

    def is_neighbour(hit: memory.Hit) -> bool:
        if hit.leg != TEXT or asks_for_time:
            return False
        new = hit.memory.new
        own = f"{new.text} {new.speaker} {new.subject} {new.value} {said_words(new.said_at)}"
        return asked.isdisjoint(map(root, spelled(own))) and terms.isdisjoint(indexed_terms(own))

    marked = [replace(hit, neighbour=True) if is_neighbour(hit) else hit for hit in hits]
    return tuple(sorted(marked, key=lambda hit: (only_asks(hit.memory.text), hit.neighbour, hit.memory.past(at))))


class SearchService:
    """Reads memories as its owner hears them, or as the listener that is named; changes nothing."""

    def __init__(
        self, memories: store.MemoryStore, recall: memory_store.Recall, archive: memory_store.Recall, clock: Clock
    ) -> None:
        self._memories = memories
        self._recall = recall
        self._archive = archive
        self._clock = clock

    async def search(self, asked: SearchRequest, listener: memory.Listener = OWNER_HEARS) -> memory.Recalled:
        """The best memories in the order of `listed`, with the legs that could not answer named.

        Raises InputError for filters that contradict each other.
        """
        asked.check()
        keeps, limit = asked.narrowing, max(0, min(asked.limit, FOUND_MAX))
        if asked.archived:
            return await self._archive.recall(listener, asked.query, limit, keeps.as_of)
        wanted = (asked.query, max(_LISTED_FROM, limit) if limit else 0)
        found = await narrowed(self._recall, self._memories.library, listener, wanted, keeps)
        at = self._clock.now_ms() if keeps.as_of is None else keeps.as_of
        return replace(found, hits=listed(asked.query, found.hits, at)[:limit])

    async def newest(
        self, kinds: Sequence[memory.Kind] = (), limit: int = 20, listener: memory.Listener = OWNER_HEARS
    ) -> Sequence[memory.Memory]:
        """Memories, newest first; of all kinds when none is named."""
        return await self._memories.find(listener, kinds, max(0, min(limit, FOUND_MAX)))

    async def get(self, name: str, listener: memory.Listener = OWNER_HEARS) -> memory.Memory:
        """One memory by its id as people see it; raises InputError when there is none that is readable."""
        number = read("memory", name)
        found = None if number is None else await self._memories.get(listener, number)
        if found is None:
            raise InputError(f"there is no memory {name}", safe=_SAFE, hint="keepsaid memory ls")
        return found

    async def history(self, name: str, listener: memory.Listener = OWNER_HEARS) -> Sequence[memory.Memory]:
        """What was known when of the same, in the order in which it began to hold. Raises InputError."""
        return await self._memories.revisions.history(listener, (await self.get(name, listener)).id)
