"""Words of a memory that was merged into another leave the counts of terms when that one is forgotten."""

from __future__ import annotations

from keepsaid.adapters.sql.query import every
from keepsaid.adapters.sql.search.piece_index import count_terms
from keepsaid.adapters.sqlite.inline import InlineReaders, memory_inline
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.contracts.memories import sample


async def test_words_of_a_merged_memory_are_counted_no_longer() -> None:
    writer, readers = memory_inline()
    memories = SqliteMemories(writer, readers, CountingIds())
    kept, merged, last = await memories.keep(
        [
            sample("note:1", "the code is known"),
            sample("note:2", "zebraquoex opens it"),
            sample("note:3", "quaxily too"),
        ],
        1,
    )
    await readers.run(count_terms)
    assert await memories.revisions.merge(merged, [last], 2) is None
    assert await memories.revisions.merge(kept, [merged], 3) is None
    assert await counted(readers) == ["quaxili", "zebraquoex"]
    await memories.forgetful.hide([kept], [], 4)
    assert await counted(readers) == []


async def counted(readers: InlineReaders) -> list[str]:
    """The rare words of the test that have a count."""
    sql = "SELECT term FROM term_df WHERE term IN ('zebraquoex', 'quaxili') ORDER BY term"
    return [str(term) for (term,) in await readers.run(every, sql, ())]
