"""Forgetting in memory: hides and deletes memories, keeps tombstones, and keeps undo images for a while."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from keepsaid.adapters.sql.memory.rows import MemoryAccess, MemoryParts, hexadecimal, joined_with, own_terms, storable
from keepsaid.adapters.sql.query import (
    MemorySession,
    Row,
    as_json,
    chunks,
    column,
    every,
    load,
    one,
    only,
    post_each,
    reads,
    run,
    writes,
)
from keepsaid.adapters.sql.search.tokens import any_of, stems_of
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import commits, message, states
from keepsaid.domain import forgetting as domain
from keepsaid.domain.bulletin import edition_in
from keepsaid.domain.memory import OWNER, Kind, NewMemory, person_scope
from keepsaid.ports.memory_maintenance import Echoes
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

SQL = load("memory_forget")
TABLES: tuple[str, ...] = ("memory", "memory_source", "memory_statement", "association", "entity", "mention")
TABLES += ("memory_widened", "identity")
GRAVES = ("memory_tombstone", "memory_echo")


@frozen
class PutBackMemories(commits.Commit[bool]):
    """Put back what a forgetting kept aside; whether anything was."""

    number: int


@frozen
class DropMemoryUndo(commits.Commit[bool]):
    """Delete the undo image of a forgetting; the result is whether there was one."""

    number: int


class SqlUndoLog(MemoryAccess):
    """The undo log of memory."""

    put_back = writes(PutBackMemories)
    drop = writes(DropMemoryUndo)


def put_back_memories(db: MemorySession, commit: PutBackMemories) -> bool:
    found = db.put_back(commit.number, SQL["aside"])
    db.reindex()
    db.post(SQL["drop_aside"], (commit.number,))
    return bool(found)


def drop_memory_undo(db: MemorySession, commit: DropMemoryUndo) -> bool:
    """Delete the undo image of a forgetting, and names of audiences that have no memories left."""
    dropped = bool(run(db, SQL["drop_aside"], (commit.number,)))
    db.post(SQL["unname_audiences"])
    return dropped


REMADE = frozenset({Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE, Kind.BULLETIN})
"""Kinds that are made again under their name, from what stays."""


def any_echoes(db: MemorySession) -> bool:
    """Whether any sentence was forgotten in this home."""
    return bool(every(db, SQL["any_echoes"]))


def digests_of(memory: NewMemory) -> Sequence[bytes]:
    """The digests of the sentences that a memory may repeat; none of one that is made again."""
    if memory.kind in REMADE or memory.asked:
        return ()
    return domain.echo_digests(memory.speaker_id or domain.AGENT, normalise(memory.text))


def repeats(db: MemorySession, memory: NewMemory) -> bool:
    """Whether a memory repeats a sentence that its speaker, or for the agent anybody, had forgotten."""
    return any_echoes(db) and bool(every(db, SQL["echoed"], (hexadecimal(db.tombstones(digests_of(memory))),)))


def lift(db: MemorySession, memory: NewMemory) -> None:
    """Let the sentences of a memory that a person asked for be remembered again."""
    if any_echoes(db):
        speakers = (memory.speaker_id, domain.AGENT)
        digests = [digest for speaker in speakers for digest in domain.echo_digests(speaker, memory.text)]
        db.post(SQL["lift"], (hexadecimal(db.tombstones(digests)),))


@frozen
class HideMemories(commits.Commit[domain.Counts]):
    """Hide memories and add tombstones, kept for an undo of forgetting `aside`; returns what was deleted."""

    ids: tuple[int, ...]
    hashes: tuple[bytes, ...]
    at: int
    aside: int = 0
    echoes: tuple[bytes, ...] = ()


@frozen
class EraseMemories(commits.Commit[domain.Counts]):
    """Delete memories with sources, terms, and things that nobody mentions any more; returns what went.

    Identities of `people` go, too. Names of audiences that no memory is left of go unless it is kept aside.
    """

    ids: tuple[int, ...]
    aside: int = 0
    people: tuple[str, ...] = ()


def _joined(db: MemorySession, person: str) -> tuple[str, ...]:
    return tuple(column(db, SQL["of_person"], (storable(person),))) or joined_with(db, person)


def _named(db: MemorySession, wish: domain.ForgetSelector) -> tuple[int, ...]:
    found = dict.fromkeys(column(db, SQL["known"], (db.numbers((0, *wish.memories)),)))
    if wish.conversation:
        found |= dict.fromkeys(column(db, SQL["of_conversation"], (wish.conversation,)))
    if wish.person or wish.text:
        text = wish.text.casefold()
        for row in every(db, SQL["everything"]):
            said = text and (text in row[1].casefold() or text in row[2].casefold())
            if said or any(_of_person(row, person) for person in wish.persons):
                found[row[0]] = None
    return tuple(found)


def _of_person(row: Sequence[object], person: str) -> bool:
    """Whether a person said it, it is about that person, or nobody else may read it."""
    _, _, _, scope, subject, speaker, trust, derived, kind = row
    if person in (subject, speaker) or scope == person_scope(person):
        return True
    return person == OWNER and trust == message.Trust.OWNER and not derived and kind == Kind.EPISODE


def _lineage(db: MemorySession, ids: Sequence[int], refs: Sequence[str]) -> Sequence[domain.Traced]:
    found = dict.fromkeys(ids)
    for ref in refs:
        kind, _, name = ref.partition(":")
        found |= dict.fromkeys(column(db, SQL["by_key"], (ref,)))
        found |= dict.fromkeys(column(db, SQL["by_source"], (kind, name)))
    for memory_id in ids:
        found |= dict.fromkeys(column(db, SQL["alike"], (memory_id,)))
    for memory_id in tuple(found):
        found |= dict.fromkeys(column(db, SQL["merged_into"], (memory_id,)))
    return [_traced(row) for memory_id in found for row in every(db, SQL["traced"], (memory_id,))]


def _said_elsewhere(db: MemorySession, words: frozenset[str], ids: Sequence[int]) -> frozenset[str]:
    before = only(db, SQL["earliest"], (db.numbers((0, *sorted(set(ids)))),))[0]
    return frozenset(word for word in words if not _by_word(db, "said", word, before=before).issubset(ids))


def _count(db: MemorySession, targets: domain.ForgetTargets) -> domain.Counts:
    people = as_json(map(storable, targets.people))
    totals = only(db, SQL["totals"], (db.numbers((0, *targets.memories)), people))
    return domain.summed(tuple(zip(("memories", "sources", "entities", "identities"), totals, strict=True)))


def _holding(db: MemorySession, words: frozenset[str], ids: Sequence[int]) -> tuple[int, ...]:
    found = {number for word in words for number in _by_word(db, "made", word)}
    # no search finds a bulletin: it has no pieces
    for number, text, metadata in every(db, SQL["bulletins"]):
        edition = edition_in(metadata)
        told = () if edition is None else edition.memories
        if not words.isdisjoint(domain.words_in(text)) or not set(told).isdisjoint(ids):
            found.add(number)
    return tuple(sorted(found))


def _tombstones(db: MemorySession) -> tuple[bytes, ...]:
    return tuple(column(db, SQL["tombstones"]))


class SqlKeptTombstones(MemoryAccess):
    """The tombstones in the file beside the key."""

    async def read(self) -> frozenset[bytes]:
        return await self._readers.run(lambda _: self._keyring.kept.read())

    async def remove(self, hashes: Sequence[bytes]) -> None:
        await self._readers.run(lambda _: self._keyring.kept.remove(hashes))


class SqlForgetful(MemoryAccess):
    """Memory as forgetting needs it."""

    def __init__(self, parts: MemoryParts, echoes: Echoes) -> None:
        super().__init__(parts)
        self.echoes, self.kept = echoes, SqlKeptTombstones(parts)

    joined = reads(_joined)
    named = reads(_named)
    lineage = reads(_lineage)
    count = reads(_count)
    said_elsewhere = reads(_said_elsewhere)
    holding = reads(_holding)
    tombstones = reads(_tombstones)
    empty_log = writes(domain.EmptyLog)

    async def hide(self, ids: Sequence[int], digests: Sequence[bytes], at: int, aside: int = 0) -> domain.Counts:
        hashes = self._keyring.make_tombstones(digests)
        await self._writer.apply(HideMemories((), tuple(hashes), at, aside))
        gone = [await self._writer.apply(HideMemories(tuple(part), (), at, aside)) for part in chunks(ids)]
        await self._keep(hashes)
        return domain.summed(*gone)

    async def erase(self, ids: Sequence[int], aside: int = 0, people: Sequence[str] = ()) -> domain.Counts:
        gone = [await self._writer.apply(EraseMemories(tuple(part), aside)) for part in chunks(ids)]
        gone.append(await self._writer.apply(EraseMemories((), aside, tuple(people))))
        return domain.summed(*gone)

    async def add_tombstones(self, hashes: Sequence[bytes], at: int) -> int:
        known = set(await self.tombstones())
        new = tuple(hash_ for hash_ in hashes if hash_ not in known)
        await self._writer.apply(HideMemories((), new, at))
        await self._keep(hashes)
        return len(new)

    async def _keep(self, hashes: Sequence[bytes]) -> None:
        """Add tombstones to the file once the store has them: a store that lacks one of the file was replaced."""
        if hashes:
            await self._readers.run(lambda _: self._keyring.kept.add(hashes))

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        return await self._readers.run(_revived, frozenset(hashes), self._keyring)


def hide(db: MemorySession, commit: HideMemories) -> domain.Counts:
    terms: set[str] = set()
    with db.record_undo(commit.aside or None, (*TABLES, *GRAVES), SQL["keep_aside"]):
        counts = _hide(db, commit, terms)
    return _reindexed(db, counts, terms)


def _reindexed(db: MemorySession, counts: Counter[str], terms: set[str]) -> domain.Counts:
    """Reindex what changed, then count again the words that may no longer occur in a memory."""
    db.reindex()
    post_each(db, SQL["forget_term"], [(term,) for term in terms])
    return tuple(counts.items())


def _hide(db: MemorySession, commit: HideMemories, terms: set[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    post_each(db, SQL["bury"], [(hash_, commit.at) for hash_ in commit.hashes])
    post_each(db, SQL["bury_echo"], [(hash_, commit.at) for hash_ in commit.echoes])
    for memory_id in commit.ids:
        if (row := one(db, SQL["state"], (memory_id,))) is None or row[0] == "forgotten":
            continue
        mentioned = every(db, SQL["mentioned"], (memory_id,))
        # the last merged come first: a trigger that deletes them with this one would leave their own mentions
        for merged_id, text, speaker in reversed(every(db, SQL["merged_texts"], (memory_id,))):
            terms.update(own_terms(text), stems_of(speaker))
            mentioned += every(db, SQL["mentioned"], (merged_id,))
            counts.update(memories=1, sources=run(db, SQL["forget_sources"], (merged_id,)))
            db.post(SQL["forget_widened"], (merged_id,))
            db.post(SQL["forget_memory"], (merged_id,))
        db.post(SQL["hide"], (memory_id, states.move("memory", row[0], "forget")))
        gone = sum(run(db, SQL["forget_entity"], entity) for entity in mentioned)
        counts.update(memories=1, entities=gone)
    return counts


def erase(db: MemorySession, commit: EraseMemories) -> domain.Counts:
    """Neighbours of deleted memories are indexed again, without their words."""
    terms: set[str] = set()
    with db.record_undo(commit.aside or None, TABLES, SQL["keep_aside"]):
        counts = _erase(db, commit, terms)
    if not commit.aside:
        db.post(SQL["unname_audiences"])
    return _reindexed(db, counts, terms)


def _erase(db: MemorySession, commit: EraseMemories, terms: set[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for memory_id in commit.ids:
        if (row := one(db, SQL["state"], (memory_id,))) is None:
            continue
        terms.update(own_terms(row[1]), stems_of(row[2]))
        counts["sources"] += run(db, SQL["forget_sources"], (memory_id,))
        db.post(SQL["forget_widened"], (memory_id,))
        db.post(SQL["unlink"], (memory_id,))
        mentioned = every(db, SQL["mentioned"], (memory_id,))
        db.post(SQL["forget_memory"], (memory_id,))
        counts["entities"] += sum(run(db, SQL["forget_entity"], entity) for entity in mentioned)
    for person in commit.people:
        counts["identities"] += run(db, SQL["forget_identity"], (storable(person),))
    return counts


def _traced(row: Row) -> domain.Traced:
    number, key, kind, derived, text, said, *slot, person, into, refs = row
    same = () if key.startswith("reply:") else (said,)
    sources, digests = tuple(json.loads(refs)), _digests(key, kind, said, slot)
    return domain.Traced(number, key, kind, bool(derived), text, sources, digests, same, person, into)


def _digests(key: str, kind: str, said: bytes, slot: Sequence[str]) -> tuple[bytes, ...]:
    """What is buried with a memory: what it says, its name unless that is used again, and the value of its slot."""
    if key.startswith("reply:"):
        return (domain.name_digest(key),)  # others may be answered in the same words
    subject, attribute, value = slot
    named = () if kind in REMADE else (domain.name_digest(key),)
    return (said, *named, *((domain.slot_digest(subject, attribute, value),) if attribute and value else ()))


def _by_word(db: MemorySession, statement: str, word: str, **bound: int | None) -> set[int]:
    """The memories that hold a word as it is, found by its stem."""
    found = every(db, SQL[statement], {**any_of([word], "body"), **bound})
    return {number for number, text in found if word in domain.words_in(text)}


def _revived(db: MemorySession, hashes: frozenset[bytes], keyring: TombstoneKeyring) -> tuple[int, ...]:
    return tuple(number for number, _, is_asked in _with_tombstones(db, keyring, hashes) if not is_asked)


def lifted_tombstones(db: MemorySession, keyring: TombstoneKeyring) -> frozenset[bytes]:
    """The tombstones of memories that were asked for again after they had been forgotten."""
    found = _with_tombstones(db, keyring, None)
    return frozenset(hash_ for _, hashes, is_asked in found if is_asked for hash_ in hashes)


def _with_tombstones(
    db: MemorySession, keyring: TombstoneKeyring, among: frozenset[bytes] | None
) -> Iterator[tuple[int, Sequence[bytes], bool]]:
    """The memories that have tombstones, with these; one that was recorded after them was asked for."""
    buried_at = {hash_: at for hash_, at in every(db, SQL["buried_at"]) if among is None or hash_ in among}
    for number, key, kind, said, *slot, recorded_at in every(db, SQL["all_named"]) if buried_at else ():
        tombstones = keyring.compute_tombstones(_digests(key, kind, said, slot))
        if hashes := [hash_ for hash_ in tombstones if hash_ in buried_at]:
            yield number, hashes, recorded_at > max(buried_at[hash_] for hash_ in hashes)
