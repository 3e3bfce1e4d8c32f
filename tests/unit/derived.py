"""All that memory answers, and how to lose what is derived from its rows."""

from __future__ import annotations

from itertools import pairwise, product

import apsw

from keepsaid.adapters.embedders.hashed import Hashed
from keepsaid.adapters.sql.search.vector_index import VectorIndex
from keepsaid.adapters.sqlite.stores import SqliteMemories
from keepsaid.app.stores import PATIENT_MS, recollection
from keepsaid.domain.graph import Association, Mention, Relation, Seed
from keepsaid.domain.memory import Found, NewMemory, Recalled
from keepsaid.domain.message import Trust
from keepsaid.memory.indexing import Embedding
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, THERE, episode, sample

WORDS = ("lantern", "harbour", "quetzal", "heron", "tide", "candle")
_ROUNDED = 1e-5

Answers = dict[tuple[str, str, bool], tuple[Found, ...]]
"""By leg, by word, and by whether everything is heard."""


def said(first: int, count: int) -> list[NewMemory]:
    """So many things said in two lanes, from a number on, and something long."""
    made = [
        episode(f"{n}", f"the {WORDS[n % 6]} and the {WORDS[n * 5 % 6]}, {n}", lane, Trust.OWNER, said_at=n)
        for n in range(first, first + count)
        for lane in (HERE if n % 3 else THERE,)
    ]
    return [*made, sample(f"long {first}", f"a {WORDS[first % 5]} by the tide. " * 120)]


async def tell(store: SqliteMemories, first: int, count: int) -> None:
    """Keep what was said, and how it belongs together."""
    ids = await store.keep(said(first, count), 1)
    links = [Association(one, other, Relation.RELATED_TO, 0.9) for one, other in pairwise(ids)]
    named = [Mention(one, f"thing:{n % 6}", WORDS[n % 6]) for n, one in enumerate(ids)]
    await store.graph.relate(links, named, 1)


async def answers(store: SqliteMemories) -> Answers:
    """What every leg finds, by words, by meaning in full and by signs, and by the graph; and all legs together."""
    embedding, signs = Embedding(Hashed(), store, VirtualClock()), VectorIndex(exact_max=2)
    everything = recollection(store, VirtualClock(), PATIENT_MS, embedding)
    await embedding.finish()
    space = await Hashed().space()
    found: Answers = {}
    for listener, word in product((AUDIT, OWNER_HERE), WORDS):
        by_words = await store.text(listener, word, 99)
        query = await Hashed().query(word)
        legs = {
            "text": by_words,
            "vector": await embedding.search(listener, word, 99),
            "signs": await store._readers.run(signs.search, listener, space, query, 99),
            "graph": await store.graph.walk(listener, word, [Seed(one.memory_id, 1.0) for one in by_words[:3]], 99),
            "all": joined(await everything.recall(listener, word, 99)),
        }
        found |= {(leg, word, listener.everything): answer for leg, answer in legs.items()}
    return found


def differing(one: Answers, other: Answers) -> list[str]:
    """Where they do not find the same with the same scores, but for what rounding does to sums in another order."""
    told = []
    for asked in one.keys() | other.keys():
        mine, theirs = ({found.memory_id: found.score for found in answers[asked]} for answers in (one, other))
        apart = max((abs(mine.get(id_, 0.0) - theirs.get(id_, 0.0)) for id_ in mine | theirs), default=0.0)
        if apart > _ROUNDED:
            told.append(f"{asked}: a score is {apart} apart")
    return told


def joined(recalled: Recalled) -> tuple[Found, ...]:
    """What recall found, as one leg would tell it; nothing may be missing."""
    assert recalled.missing == ()
    return tuple(Found(hit.memory.id, hit.value) for hit in recalled.hits)


def lose_pieces(db: apsw.Connection) -> None:
    """With them their full text and vectors."""
    db.execute("DELETE FROM memory_piece")


def lose_text(db: apsw.Connection) -> None:
    db.execute("INSERT INTO memory_text (memory_text) VALUES ('delete-all')")


def lose_vectors(db: apsw.Connection) -> None:
    db.execute("DELETE FROM vector WHERE id % 3 = 0")


def lose_spaces(db: apsw.Connection) -> None:
    db.execute("DELETE FROM vector_block")
    db.execute("DELETE FROM vector")
    db.execute("DELETE FROM space")


def false_blocks(db: apsw.Connection) -> None:
    db.execute("INSERT INTO vector_block SELECT id, 9, 1, x'', x'', x'', x'', NULL FROM space")


def lose_everything(db: apsw.Connection) -> None:
    """All that is derived: only the rows of memories, sources, associations and mentions are left."""
    lose_pieces(db)
    lose_text(db)
    lose_spaces(db)
    db.execute("DELETE FROM term_df")
    db.execute("UPDATE term_count SET pieces = 0, reached = ''")


def near_the_end_of_a_block(db: apsw.Connection) -> None:
    """As if many vectors had come and gone: three more, and the next block is whole."""
    db.execute("UPDATE sqlite_sequence SET seq = ((seq + 4) / 1024 + 1) * 1024 - 4 WHERE name = 'vector'")
