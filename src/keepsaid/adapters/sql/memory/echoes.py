"""The sentences that were forgotten, as whoever reads or forgets needs them."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.memory.commits import content_hash, key_hash, slot_hash
from keepsaid.adapters.sql.memory.forgetting import SQL, HideMemories, any_echoes
from keepsaid.adapters.sql.memory.rows import hexadecimal
from keepsaid.adapters.sql.query import SqlView, reads
from keepsaid.adapters.sql.session import SqlReaders, SqlSession
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain.forgetting import echo_digests
from keepsaid.domain.memory import NewMemory
from keepsaid.ports.store_views import Operations


def _repeated(db: SqlSession, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
    known = frozenset(ids)

    def stays(sentence: str) -> bool:
        return any(row[0] not in known for row in db.execute(SQL["said"], (f'body : "{sentence}"', None)))

    return frozenset(filter(stays, sentences))


def _in_texts(db: SqlSession, texts: Sequence[tuple[str, str]], keyring: TombstoneKeyring) -> list[bool]:
    if not any_echoes(db):
        return [False] * len(texts)
    tombstones = (keyring.compute_tombstones(echo_digests(person, text)) for person, text in texts)
    return [bool(db.execute(SQL["silenced"], (hexadecimal(hashes),)).fetchall()) for hashes in tombstones]


def _in_memory(db: SqlSession, memory: NewMemory, keyring: TombstoneKeyring) -> bool:
    tombstones = keyring.compute_tombstones((key_hash(memory.key), content_hash(memory), slot_hash(memory)))
    if db.execute(SQL["has_tombstone"], (hexadecimal(tombstones),)).fetchall():
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
