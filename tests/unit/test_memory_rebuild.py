"""What is derived from the rows of memory can be lost and made anew; the same is found then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import product
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.deep import look_deep
from keepsaid.adapters.sqlite.memory_store import SqliteMemories, open_memories
from keepsaid.domain.memory import Found
from keepsaid.domain.message import Trust
from keepsaid.memory.embed import Embedding
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid.testing.contracts.memories import AUDIT, HERE, OWNER_HERE, THERE, episode, sample

WORDS = ("lantern", "harbour", "quetzal", "heron", "tide", "candle")
Answers = list[tuple[Found, ...]]


async def told(folder: Path) -> SqliteMemories:
    store = await open_memories(folder / "memory.db", CountingIds())
    said = [
        episode(f"{n}", f"the {WORDS[n % 6]} and the {WORDS[n * 5 % 6]}, {n}", lane, Trust.OWNER, said_at=n)
        for n in range(80)
        for lane in (HERE if n % 3 else THERE,)
    ]
    await store.keep([*said, sample("long", "a heron by the tide. " * 120)], 1)
    await Embedding(Hashed(), store, VirtualClock()).finish()
    return store


async def answers(store: SqliteMemories) -> Answers:
    embedding = Embedding(Hashed(), store, VirtualClock())
    found: Answers = []
    await embedding.finish()
    for listener, word in product((AUDIT, OWNER_HERE), WORDS):
        found += [await store.text(listener, word, 99), await embedding.search(listener, word, 99)]
    return found


def lose_pieces(db: apsw.Connection) -> None:
    """With them their full text and vectors."""
    db.execute("DELETE FROM memory_piece")


def lose_vectors(db: apsw.Connection) -> None:
    db.execute("DELETE FROM vector WHERE id % 3 = 0")


def lose_spaces(db: apsw.Connection) -> None:
    db.execute("DELETE FROM vector")
    db.execute("DELETE FROM space")


def false_blocks(db: apsw.Connection) -> None:
    db.execute("INSERT INTO vector_block VALUES (1, 0, 0, x'', x'', x'', x'')")


@pytest.mark.parametrize("lose", [lose_pieces, lose_vectors, lose_spaces, false_blocks])
async def test_what_is_derived_is_made_anew_and_the_same_is_found(
    tmp_path: Path, lose: Callable[[apsw.Connection], None]
) -> None:
    store = await told(tmp_path)
    before = await answers(store)
    assert sum(map(bool, before)) > 15
    await store.close()
    with closing(open_writer(tmp_path / "memory.db")) as db, db:
        lose(db)
    look_deep(tmp_path / "memory.db", ("memory",), mend=True)
    assert look_deep(tmp_path / "memory.db", ("memory",), mend=False).astray == ()
    store = await open_memories(tmp_path / "memory.db", CountingIds())
    assert await answers(store) == before
    await store.close()
