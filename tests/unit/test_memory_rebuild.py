"""What is derived from the rows of memory can be lost and made anew; the same is found then."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import apsw
import pytest
from tests.unit.derived import (
    answers,
    differing,
    false_blocks,
    lose_everything,
    lose_pieces,
    lose_spaces,
    lose_text,
    lose_vectors,
    near_the_end_of_a_block,
    tell,
)

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import Kind
from keepsaid.memory.indexing import Embedding
from keepsaid.testing.clock import CountingIds, VirtualClock
from keepsaid_testkit.contracts.memories import sample


@pytest.mark.parametrize("lose", [lose_pieces, lose_text, lose_vectors, lose_spaces, false_blocks, lose_everything])
async def test_what_is_derived_is_made_anew_and_the_same_is_found(
    tmp_path: Path, lose: Callable[[apsw.Connection], None]
) -> None:
    path = tmp_path / "memory.db"
    store = await open_memories(path, CountingIds())
    for first in (0, 40):
        await tell(store, first, 40)
        await Embedding(Hashed(), store, VirtualClock()).finish()
        with closing(open_writer(path)) as db:
            near_the_end_of_a_block(db)
    before = await answers(store)
    assert {leg for (leg, _, _), found in before.items() if found} == {"text", "vector", "signs", "graph", "all"}
    await store.close()
    with closing(open_writer(path)) as db, db:
        assert db.execute("SELECT count(*) FROM vector_block WHERE vectors > 0").fetchall() == [(1,)]
        lose(db)
    assert check_integrity(path, ("memory",), mend=True).damage == ()
    store = await open_memories(path, CountingIds())
    assert differing(await answers(store), before) == []
    await store.close()
    assert check_integrity(path, ("memory",), mend=False).astray == ()


async def test_a_bulletin_which_is_not_searched_is_not_missed(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    store = await open_memories(path, CountingIds())
    await store.keep([sample("a", "My desk is blue"), sample("b", "Important: the desk", kind=Kind.BULLETIN)], 1)
    await store.close()
    assert check_integrity(path, ("memory",), mend=False).astray == ()
