from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.domain.memory import VectorSpace
from keepsaid.memory.indexing import BATCH, Embedding
from keepsaid.ports.memory_store import Embedder
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT, keys, sample

TOLD = BATCH + 40


class Asked(Hashed):
    """Counts the queries it is asked for."""

    queries = 0

    async def query(self, text: str) -> bytes:
        self.queries += 1
        return await super().query(text)

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        return [await super(Asked, self).query(text) for text in texts]


async def filled(folder: Path, embedder: Embedder) -> SqliteMemories:
    store = await open_memories(folder / "memory.db", CountingIds())
    await store.keep([sample(f"{n}", f"word{n}") for n in range(TOLD)], 1)
    await Embedding(embedder, store, VirtualClock()).finish()
    return store


async def first(store: SqliteMemories, embedding: Embedding, query: str) -> list[str]:
    found = await embedding.search(AUDIT, query, 1)
    return keys(await store.fetch(AUDIT, [one.memory_id for one in found]))


async def test_the_former_space_is_searched_until_the_new_one_came_as_far(tmp_path: Path) -> None:
    old, new = Asked("1"), Asked("2")
    store = await filled(tmp_path, old)
    spaces = {await old.space(): old}
    embedding = Embedding(new, store, VirtualClock(), spaces.get)
    last = f"{TOLD - 1}"
    assert await first(store, embedding, f"word{last}") == [last]
    assert (old.queries, new.queries) == (1, 0)
    assert await embedding.embed() == BATCH
    assert await first(store, embedding, f"word{last}") == [last], "the new space does not have it yet"
    assert (old.queries, new.queries) == (2, 0)
    await embedding.finish()
    assert await first(store, embedding, f"word{last}") == [last]
    assert (old.queries, new.queries) == (2, 1)
    # and back: the first space is still there, and is searched at once
    back = Embedding(old, store, VirtualClock(), {await new.space(): new}.get)
    assert await first(store, back, f"word{last}") == [last]
    assert (old.queries, new.queries) == (3, 1)
    await store.close()


async def test_without_the_former_embedder_the_new_space_is_searched_from_the_start(tmp_path: Path) -> None:
    new = Asked("2")
    store = await filled(tmp_path, Hashed("1"))
    embedding = Embedding(new, store, VirtualClock())
    assert await first(store, embedding, "word3") == []
    await embedding.embed()
    assert await first(store, embedding, "word3") == ["3"]
    assert new.queries == 2
    await store.close()


async def test_a_space_comes_to_its_end_although_the_last_of_the_former_is_gone(tmp_path: Path) -> None:
    old, new = Asked("1"), Asked("2")
    store = await filled(tmp_path, old)
    [reached] = await store.spaces()
    spaces: dict[VectorSpace, Embedder] = {await old.space(): old}
    embedding = Embedding(new, store, VirtualClock(), spaces.get)
    await store.keep([sample(f"{TOLD - 1}", "another word", version=1)], 2)
    while len(await store.unembedded(await new.space(), 0, 999)) > 1:
        due = (await store.unembedded(await new.space(), 0, 999))[:-1]
        assert len(due) < TOLD
        await embedding.embed()
    await embedding.finish()
    assert {one.piece_id for one in await store.spaces() if one.space != reached.space} == {reached.piece_id + 1}
    assert await first(store, embedding, "word3") == ["3"]
    assert (old.queries, new.queries) == (0, 1)
    await store.close()
