"""Memories, by their owner's word: searched, added, put right, pinned, merged, archived, marked as wrong for a turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from keepsaid.domain.commits import RecordFeedback
from keepsaid.domain.ids import moment, read, show
from keepsaid.domain.learning import BYTES_MAX, LearnOutcome, LearnResult
from keepsaid.domain.memory import (
    IMPORTANCE,
    OWNER,
    Kind,
    Listener,
    Memory,
    Narrowing,
    NewMemory,
    Recalled,
    Source,
    person_scope,
)
from keepsaid.domain.message import Trust
from keepsaid.domain.receipt import JudgeMemory
from keepsaid.domain.redaction import counted_kinds
from keepsaid.errors import InputError
from keepsaid.memory.recall.recollection import narrowed
from keepsaid.ports.memory_store import Recall
from keepsaid.ports.runtime import Clock, Redactor, masked_texts
from keepsaid.ports.store import MemoryStore
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import digest, normalise
from keepsaid.values import frozen

_SAFE = "Nothing was changed."
_CHARS_MAX = 50_000


def note(text: str, kind: str, now_ms: int) -> NewMemory:
    """The owner's own memory: heard in the owner's direct chats. The same text twice is one memory.

    Raises InputError when the text is empty or too long, or the kind is none a person can add.
    """
    said = normalise(text).strip()
    if not said:
        raise InputError("a memory needs a text", hint='keepsaid memory add "TEXT"')
    if len(said) > _CHARS_MAX:
        raise InputError(
            f"a memory may have {_CHARS_MAX:,} characters; this has {len(said):,}", hint="keepsaid memory add --help"
        )
    allowed = [str(one) for one in IMPORTANCE]
    if kind not in allowed:
        raise InputError(f"there is no kind {kind!r}; one of: {', '.join(allowed)}", hint="keepsaid memory add --help")
    key = f"note:{digest(kind, said).hex()}"
    return NewMemory(
        key,
        Kind(kind),
        said,
        person_scope(OWNER),
        Trust.OWNER,
        speaker=OWNER,
        said_at=now_ms,
        importance=IMPORTANCE[Kind(kind)],
        sources=(Source("note", key),),
        speaker_id=OWNER,
        asked=True,
    )


@frozen
class AddedMemory:
    """A memory that was added: its id, 0 when it was forgotten before; secrets left out, by kind.

    `lifted` says that it had been forgotten and may be remembered again.
    """

    id: int
    redacted: Mapping[str, int]
    lifted: bool


class MemoryService:
    """Changes memories; no stored text is lost by it."""

    def __init__(self, memories: MemoryStore, operations: Operations, clock: Clock, redactor: Redactor) -> None:
        self._memories = memories
        self._operations = operations
        self._clock = clock
        self._redactor = redactor

    async def add(self, text: str, kind: str) -> AddedMemory:
        """Remember what the owner says, without the secrets in it. Raises InputError and StoreError."""
        memory = note(text, kind, self._clock.now_ms())
        [plain] = await masked_texts(self._redactor, [memory.text])
        lifted = await self._memories.echoes.in_memory(memory)
        [number] = await self._memories.keep([memory], memory.said_at)
        return AddedMemory(number, counted_kinds(plain.marks), lifted)

    async def edit(self, memory_id: int, text: str, value: str) -> LearnResult:
        """Put a memory right, as its owner; what it said before is kept as past.

        `value` is what its slot is from now on, where it has one; without, the text is. Raises InputError when it
        cannot be done.
        """
        said, now = normalise(text).strip(), self._clock.now_ms()
        if not said or len(said.encode()) > BYTES_MAX:
            raise InputError(f"a memory needs a text of at most {BYTES_MAX:,} bytes", safe="Nothing was changed.")
        key = f"edit:{digest(str(memory_id), said, value, str(now)).hex()}"
        word = NewMemory(
            key,
            Kind.FACT,
            said,
            person_scope(OWNER),
            Trust.OWNER,
            speaker=OWNER,
            speaker_id=OWNER,
            said_at=now,
            value=normalise(value).strip(),
            sources=(Source("person", key),),
            asked=True,
        )
        done = await self._memories.revisions.correct(memory_id, word, now)
        if done.how is LearnOutcome.REFUSED:
            raise InputError(
                f"{show('memory', memory_id)}: {done.why}", safe="Nothing was changed.", hint="keepsaid memory ls"
            )
        if done.how is LearnOutcome.FORGOTTEN:
            raise InputError(
                "this was forgotten, and what was forgotten is not learned again", safe="Nothing was changed."
            )
        return done

    async def pin(self, memory_id: int, *, pinned: bool) -> None:
        """Pin a memory or take the pin out; raises InputError when there is none."""
        if not await self._memories.revisions.pin(memory_id, pinned=pinned):
            name = show("memory", memory_id)
            raise InputError(f"there is no memory {name}", safe="Nothing was changed.", hint="keepsaid memory ls")

    async def merge(self, into: int, others: Sequence[int]) -> None:
        """Have one memory stand for others; raises InputError when they cannot be merged."""
        if not await self._memories.revisions.merge(into, others, self._clock.now_ms()):
            raise InputError(
                "these memories cannot be merged: each must be there, be no episode or summary, be heard by the same "
                "people and say something of the same slot, with nothing else that held between them",
                safe="Nothing was changed.",
                hint=f"keepsaid memory history {show('memory', into)}",
            )

    async def archive(self, named: Sequence[int], *, back: bool = False) -> tuple[int, ...]:
        """Archive memories, or bring them `back`; raises InputError when none of them is there to be."""
        done = await self._memories.revisions.archive(named, self._clock.now_ms(), back=back)
        if not done:
            what = "archived" if back else "active, of a kind that is learned"
            hint = "keepsaid memory search --archived" if back else "keepsaid memory ls"
            raise InputError(f"none of these memories is {what}", safe="Nothing was changed.", hint=hint)
        return done

    async def record_feedback(self, memory_id: int, turn_id: int, *, undo: bool = False) -> bool:
        """Mark a memory as wrong for a turn that was shown it, or withdraw that; False if it was not shown."""
        word = JudgeMemory(turn_id, memory_id, OWNER, "withdraw" if undo else "mark")
        return await self._operations.apply(RecordFeedback(word, self._clock.now_ms()))


FOUND_MAX = 10_000
"""So many memories one search or list gives at most."""

OWNER_HEARS = Listener(None, everything=True, cross=True)


@frozen
class SearchRequest:
    """What is looked for, how many are wanted, what the search keeps to, and whether what was `archived` is meant."""

    query: str
    limit: int = 10
    narrowing: Narrowing = Narrowing()
    archived: bool = False

    def check(self) -> None:
        """Raise InputError for filters that contradict each other."""
        since, until = self.narrowing.since, self.narrowing.until
        if since is not None and until is not None and since > until:
            raise InputError("since must not be later than until", safe=_SAFE)
        if self.archived and replace(self.narrowing, as_of=None) != Narrowing():
            raise InputError("what was archived is searched by its words and by as_of alone", safe=_SAFE)


def filters_of(given: Mapping[str, str]) -> Narrowing:
    """The filters `kind`, `person`, `since`, `until` and `as_of` as people write them; a day as `until` or `as_of` is
    meant to its end. An empty text is no filter. Raises InputError that names the filter.
    """
    kind = given.get("kind", "")
    if kind and kind not in list(Kind):
        raise InputError(f"kind: {kind!r} is none of: {', '.join(Kind)}", safe=_SAFE)
    times: dict[str, int | None] = {}
    for name in ("since", "until", "as_of"):
        text = given.get(name, "")
        try:
            times[name] = moment(text, ends=name != "since") if text else None
        except ValueError as error:
            raise InputError(f"{name}: {text!r} is not {error}", safe=_SAFE) from None
    return Narrowing(Kind(kind) if kind else None, normalise(given.get("person", "")), **times)


class SearchService:
    """Reads memories as its owner hears them, or as the listener that is named; changes nothing."""

    def __init__(self, memories: MemoryStore, recall: Recall, archive: Recall) -> None:
        self._memories = memories
        self._recall = recall
        self._archive = archive

    async def search(self, asked: SearchRequest, listener: Listener = OWNER_HEARS) -> Recalled:
        """The best memories, best first, with the legs that could not answer named.

        Raises InputError for filters that contradict each other.
        """
        asked.check()
        keeps, limit = asked.narrowing, max(0, min(asked.limit, FOUND_MAX))
        if not asked.archived:
            return await narrowed(self._recall, self._memories.library, listener, (asked.query, limit), keeps)
        return await self._archive.recall(listener, asked.query, limit, keeps.as_of)

    async def newest(self, kinds: Sequence[Kind] = (), limit: int = 20) -> Sequence[Memory]:
        """Memories, newest first; of all kinds when none is named."""
        return await self._memories.find(OWNER_HEARS, kinds, max(0, min(limit, FOUND_MAX)))

    async def get(self, name: str) -> Memory:
        """One memory by its id as people see it; raises InputError when there is none."""
        number = read("memory", name)
        found = None if number is None else await self._memories.get(OWNER_HEARS, number)
        if found is None:
            raise InputError(f"there is no memory {name}", safe=_SAFE, hint="keepsaid memory ls")
        return found

    async def history(self, name: str) -> Sequence[Memory]:
        """What was known when of the same, in the order in which it began to hold. Raises InputError."""
        return await self._memories.revisions.history(OWNER_HEARS, (await self.get(name)).id)
