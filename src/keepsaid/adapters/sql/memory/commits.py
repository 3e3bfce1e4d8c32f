"""Keeps memories under their keys, their vectors and how often turns used them; refuses echoes of forgotten ones."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from keepsaid.adapters.sql.memory import forgetting
from keepsaid.adapters.sql.memory.forgetting import HideMemories, any_echoes
from keepsaid.adapters.sql.memory.rows import audience, hexadecimal, lane_columns, rows, storable
from keepsaid.adapters.sql.query import SqlReaders, SqlSession, SqlView, every, load, reads
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.attributes import slot_of
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import echo_digests, name_digest, slot_digest
from keepsaid.domain.memory import NewMemory, NewVector, Used, VectorSpace
from keepsaid.ports.store_views import Operations
from keepsaid.text.normal import digest, normalise
from keepsaid.values import frozen

USES = load("memory_uses")
_REMEMBERED_MS = 30 * 86_400_000
"""How long a counted turn is known; a turn is reported again within seconds of a crash, or never."""


def count(db: SqlSession, uses: Sequence[Used]) -> None:
    """Count what turns used, each turn once; forget turns that were counted long ago."""
    by_turn = {
        use.turn_id: {"turn": use.turn_id, "at": use.at, "memories": list(dict.fromkeys(use.memories))} for use in uses
    }
    if not by_turn:
        return
    new = [by_turn[row[0]] for row in every(db, USES["count_turns"], {"uses": json.dumps(list(by_turn.values()))})]
    if new:
        db.execute(USES["count_uses"], {"uses": json.dumps(new)})
        db.execute(USES["forget_turns"], {"before": max(use.at for use in uses) - _REMEMBERED_MS})


@frozen
class KeepMemories(Commit[tuple[int, ...]]):
    """Write memories under their keys, with sources, full text and change log; returns their ids, in order.

    `ids` are for new ones. A memory whose key is known keeps its id and is changed only by a higher version. One that
    was forgotten, by key or by content, is not written and has id 0. `at` is milliseconds UTC. What turns `used` is
    counted in the same commit.
    """

    ids: tuple[int, ...]
    memories: tuple[NewMemory, ...]
    at: int
    used: tuple[Used, ...] = ()


@frozen
class KeepVectors(Commit[int]):
    """Write vectors of pieces into a space, which is opened with its first; returns how many were written.

    A piece that is gone by then, or has a vector in the space, gets none. `reached` says that no piece up to this
    one is left without a vector.
    """

    space: VectorSpace
    vectors: Sequence[NewVector]
    at: int
    reached: int = 0


def key_hash(key: str) -> bytes:
    """The tombstone of one memory by its name."""
    return name_digest(storable(key))


def content_hash(memory: NewMemory) -> bytes:
    """The tombstone of what was said, by whom and for whom, under whatever name and at whatever time."""
    return digest(
        memory.kind,
        storable(memory.scope),
        normalise(memory.speaker),
        normalise(memory.subject),
        normalise(memory.text),
    )


def slot_hash(memory: NewMemory) -> bytes:
    """The tombstone of the value of a slot; of a memory without one it is never put up."""
    return slot_digest(*map(normalise, (memory.subject, memory.attribute, memory.value)))


def keep(db: SqlSession, commits: Sequence[KeepMemories]) -> list[tuple[int, ...]]:
    """Apply a run of commits, whatever their number, in four statements and those that index what is new."""
    echoes = forgetting.any_echoes(db)
    drafts = [
        draft(memory, memory_id, commit.at) | ({"echoes": forgetting.digests_of(memory)} if echoes else {})
        for commit in commits
        for memory_id, memory in zip(commit.ids, commit.memories, strict=True)
    ]
    for memory in [memory for commit in commits for memory in commit.memories if memory.asked]:
        forgetting.lift(db, memory)
    bound = {"drafts": json.dumps(drafts, ensure_ascii=False)}
    for statement in ("keep_audiences", "keep", "keep_sources"):
        rows(db, statement, bound)
    db.reindex()
    count(db, [use for commit in commits for use in commit.used])
    kept = iter(rows(db, "kept", bound))
    return [tuple(int(next(kept)[0]) for _ in commit.ids) for commit in commits]


def draft(memory: NewMemory, memory_id: int, at: int) -> dict[str, Any]:
    """A memory as the statements that write it take it."""
    slot = slot_of(memory.subject_id or memory.subject, memory.attribute, memory.value)
    return {
        "id": memory_id,
        "key": storable(memory.key),
        "audience": audience(memory),
        "kind": memory.kind,
        "scope": storable(memory.scope),
        "trust": memory.trust,
        **lane_columns(memory.lane),
        "said_at": memory.said_at,
        "at": at,
        "importance": float(memory.importance),
        "key_hash": key_hash(memory.key).hex(),
        "content_hash": content_hash(memory).hex(),
        "slot_hash": slot_hash(memory).hex(),
        "subject": normalise(memory.subject),
        "speaker": normalise(memory.speaker),
        "derived": memory.derived,
        "asked": memory.asked,
        "speaker_id": storable(memory.speaker_id),
        "subject_id": storable(memory.subject_id),
        "chat_of": storable(memory.chat_of),
        "version": memory.version,
        "metadata": memory.metadata,
        "attribute": normalise(memory.attribute),
        "slot": None if slot is None else slot.hex(),
        "value": normalise(memory.value),
        "valid_from": memory.valid_from,
        "stated_to": memory.valid_to,
        "confidence": float(memory.confidence),
        "corrects": memory.corrects,
        "text": normalise(memory.text),
        "sources": [[storable(source.kind), storable(source.ref)] for source in memory.sources],
    }


def _repeated(db: SqlSession, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
    known = frozenset(ids)

    def stays(sentence: str) -> bool:
        return any(row[0] not in known for row in db.execute(forgetting.SQL["said"], (f'body : "{sentence}"', None)))

    return frozenset(filter(stays, sentences))


def _in_texts(db: SqlSession, texts: Sequence[tuple[str, str]], keyring: TombstoneKeyring) -> list[bool]:
    if not any_echoes(db):
        return [False] * len(texts)
    tombstones = (keyring.compute_tombstones(echo_digests(person, text)) for person, text in texts)
    return [bool(db.execute(forgetting.SQL["silenced"], (hexadecimal(hashes),)).fetchall()) for hashes in tombstones]


def _in_memory(db: SqlSession, memory: NewMemory, keyring: TombstoneKeyring) -> bool:
    tombstones = keyring.compute_tombstones((key_hash(memory.key), content_hash(memory), slot_hash(memory)))
    if db.execute(forgetting.SQL["has_tombstone"], (hexadecimal(tombstones),)).fetchall():
        return True
    return _in_texts(db, [(memory.speaker_id, memory.text)], keyring)[0]


class SqlEchoes(SqlView):
    """Recognises sentences that were forgotten."""

    def __init__(self, writer: Operations, readers: SqlReaders, keyring: TombstoneKeyring) -> None:
        super().__init__(readers)
        self._writer = writer
        self._keyring = keyring

    repeated = reads(_repeated)

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        await self._writer.apply(HideMemories((), (), at, aside, tuple(self._keyring.make_tombstones(sentences))))

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        return await self._readers.run(_in_texts, said, self._keyring)

    async def in_memory(self, memory: NewMemory) -> bool:
        return await self._readers.run(_in_memory, memory, self._keyring)
