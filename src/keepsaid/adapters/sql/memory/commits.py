"""Keeps memories under their keys, their vectors and how often turns used them; refuses echoes of forgotten ones."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from keepsaid.adapters.sql.memory import forgetting, rows
from keepsaid.adapters.sql.query import MemorySession, as_json, column, every, load, reads
from keepsaid.adapters.sql.search.tokens import any_of, has_phrase
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.attributes import slot_of
from keepsaid.domain.commits import Commit
from keepsaid.domain.forgetting import echo_digests, name_digest, slot_digest
from keepsaid.domain.memory import NewMemory, NewVector, Used, VectorSpace
from keepsaid.text.normal import digest, normalise
from keepsaid.values import frozen

USES = load("memory_uses")
_REMEMBERED_MS = 30 * 86_400_000
"""How long a counted turn is known; a turn is reported again within seconds of a crash, or never."""


def count(db: MemorySession, uses: Sequence[Used]) -> None:
    """Count what turns used, each turn once; forget turns that were counted long ago."""
    turns = ({"turn": use.turn_id, "at": use.at, "memories": list(dict.fromkeys(use.memories))} for use in uses)
    by_turn = {turn["turn"]: turn for turn in turns}
    if by_turn and (new := column(db, USES["count_turns"], {"uses": as_json(by_turn.values())})):
        db.post(USES["count_uses"], {"uses": as_json(by_turn[turn_id] for turn_id in new)})
        db.post(USES["forget_turns"], {"before": max(use.at for use in uses) - _REMEMBERED_MS})


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
    return name_digest(rows.storable(key))


def content_hash(memory: NewMemory) -> bytes:
    """The tombstone of what was said, by whom and for whom, under whatever name and at whatever time."""
    said = map(normalise, (memory.speaker, memory.subject, memory.text))
    return digest(memory.kind, rows.storable(memory.scope), *said)


def slot_hash(memory: NewMemory) -> bytes:
    """The tombstone of the value of a slot; of a memory without one it is never put up."""
    return slot_digest(*map(normalise, (memory.subject, memory.attribute, memory.value)))


def keep(db: MemorySession, commits: Sequence[KeepMemories]) -> list[tuple[int, ...]]:
    """Apply a run of commits, whatever their number, in four statements and those that index what is new."""
    echoes = forgetting.any_echoes(db)
    new = [(*one, commit.at) for commit in commits for one in zip(commit.memories, commit.ids, strict=True)]
    drafts = [draft(*one) | _forgotten(db, one[0], echoes=echoes) for one in new]
    bound = {"drafts": as_json(drafts)}
    for memory, *_ in new:
        if memory.asked:
            forgetting.lift(db, memory)
    db.post(rows.SQL["keep_audiences"], bound)
    for part in _with_keys_once(drafts):
        db.post(rows.SQL["keep"], {"drafts": as_json(part)})
    db.post(rows.SQL["keep_sources"], bound)
    db.reindex()
    count(db, [use for commit in commits for use in commit.used])
    kept = iter(every(db, rows.SQL["kept"], bound))
    return [tuple(int(next(kept)[0]) for _ in commit.ids) for commit in commits]


def _with_keys_once(drafts: Sequence[dict[str, Any]]) -> Iterator[Sequence[dict[str, Any]]]:
    """Yield the drafts in parts, in each of which no key stands twice: no statement may write a row twice."""
    seen: dict[str, int] = {}
    parts: list[list[dict[str, Any]]] = []
    for one in drafts:
        seen[one["key"]] = place = seen.get(one["key"], -1) + 1
        if place == len(parts):
            parts.append([])
        parts[place].append(one)
    yield from parts


def _forgotten(db: MemorySession, memory: NewMemory, *, echoes: bool) -> dict[str, list[str]]:
    """What a memory must not be, in hexadecimal: the tombstones of its name and content, and of its sentences."""
    named = db.tombstones((key_hash(memory.key), content_hash(memory), slot_hash(memory)))
    said = db.tombstones(forgetting.digests_of(memory)) if echoes else []
    return {"tombstones": [one.hex() for one in named], "echoes": [one.hex() for one in said]}


_AS_THEY_ARE = ("kind", "trust", "said_at", "version", "metadata", "valid_from")
_FLAGS = ("derived", "asked", "corrects")


def draft(memory: NewMemory, memory_id: int, at: int) -> dict[str, Any]:
    """A memory as the statements that write it take it."""
    slot = slot_of(memory.subject_id or memory.subject, memory.attribute, memory.value)
    return {
        "id": memory_id,
        "at": at,
        "audience": rows.audience(memory),
        "slot": None if slot is None else slot.hex(),
        "stated_to": memory.valid_to,
        "importance": float(memory.importance),
        "confidence": float(memory.confidence),
        "sources": [[rows.storable(source.kind), rows.storable(source.ref)] for source in memory.sources],
        "content_hash": content_hash(memory).hex(),
        **{name: getattr(memory, name) for name in _AS_THEY_ARE},
        **{name: int(getattr(memory, name)) for name in _FLAGS},
        **rows.storable_texts(memory),
        **rows.lane_columns(memory.lane),
    }


def _repeated(db: MemorySession, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
    known = frozenset(ids)

    def stays(sentence: str) -> bool:
        bindings = {**any_of([sentence], "body"), "before": None}
        found = every(db, forgetting.SQL["said"], bindings)
        return any(id_ not in known and has_phrase(text, sentence) for id_, text in found)

    return frozenset(filter(stays, sentences))


def _in_texts(db: MemorySession, texts: Sequence[tuple[str, str]], keyring: TombstoneKeyring) -> list[bool]:
    if not forgetting.any_echoes(db):
        return [False] * len(texts)
    tombstones = (keyring.compute_tombstones(echo_digests(person, text)) for person, text in texts)
    return [bool(every(db, forgetting.SQL["silenced"], (rows.hexadecimal(hashes),))) for hashes in tombstones]


def _in_memory(db: MemorySession, memory: NewMemory, keyring: TombstoneKeyring) -> bool:
    tombstones = keyring.compute_tombstones((key_hash(memory.key), content_hash(memory), slot_hash(memory)))
    is_buried = bool(every(db, forgetting.SQL["has_tombstone"], (rows.hexadecimal(tombstones),)))
    return is_buried or _in_texts(db, [(memory.speaker_id, memory.text)], keyring)[0]


class SqlEchoes(rows.MemoryAccess):
    """Recognises sentences that were forgotten."""

    repeated = reads(_repeated)

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        await self._writer.apply(
            forgetting.HideMemories((), (), at, aside, tuple(self._keyring.make_tombstones(sentences)))
        )

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        return await self._readers.run(_in_texts, said, self._keyring)

    async def in_memory(self, memory: NewMemory) -> bool:
        return await self._readers.run(_in_memory, memory, self._keyring)
