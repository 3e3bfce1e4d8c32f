"""The sentences that were forgotten, as whoever reads or forgets needs them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from keepsaid.adapters.sql.memory.commits import content_hash, key_hash, slot_hash
from keepsaid.adapters.sql.memory.forgetting import SQL, HideMemories, any_echoes
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.forgetting import echo_digests
from keepsaid.domain.memory import NewMemory
from keepsaid.ports.store_views import Operations


class SqlEchoes:
    """Recognises sentences that were forgotten; `writer` must know how they are written."""

    def __init__(self, writer: Operations, readers: SqlReaders, tombs: TombstoneKeyring) -> None:
        self._writer = writer
        self._readers = readers
        self._tombs = tombs

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        """Remember no text from now on that repeats one of these sentences, by their digests."""
        await self._writer.apply(HideMemories((), (), at, aside, tuple(self._tombs.make_tombstones(sentences))))

    async def repeated(self, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
        """Those of the sentences, as folded words, that a person says in a memory that is not among these."""
        return await self._readers.run(_repeated, tuple(sentences), frozenset(ids))

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        """Whether each text, with the person who said it, repeats a sentence that was forgotten."""
        return await self._readers.run(_in_texts, tuple(said), self._tombs)

    async def in_memory(self, memory: NewMemory) -> bool:
        """Whether a memory was forgotten before, or repeats a sentence that was."""
        return await self._readers.run(_in_memory, memory, self._tombs)


def _repeated(db: SqlSession, sentences: tuple[str, ...], ids: frozenset[int]) -> frozenset[str]:
    def stays(sentence: str) -> bool:
        rows = db.execute(SQL["said"], (f'body : "{sentence}"', None))
        return any(row[0] not in ids for row in rows)

    return frozenset(one for one in sentences if stays(one))


def _in_texts(db: SqlSession, said: Sequence[tuple[str, str]], tombs: TombstoneKeyring) -> list[bool]:
    if not any_echoes(db):
        return [False] * len(said)
    named = [[one.hex() for one in tombs.compute_tombstones(echo_digests(person, text))] for person, text in said]
    return [bool(db.execute(SQL["silenced"], (json.dumps(one),)).fetchall()) for one in named]


def _in_memory(db: SqlSession, memory: NewMemory, tombs: TombstoneKeyring) -> bool:
    stones = [
        one.hex() for one in tombs.compute_tombstones((key_hash(memory.key), content_hash(memory), slot_hash(memory)))
    ]
    if db.execute(SQL["has_tombstone"], (json.dumps(stones),)).fetchall():
        return True
    return _in_texts(db, [(memory.speaker_id, memory.text)], tombs)[0]
