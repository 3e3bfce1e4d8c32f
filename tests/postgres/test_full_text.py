"""Full text finds the same on PostgreSQL as on SQLite, with the same scores: one corpus, kept in both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import psycopg
import pytest
from tests.postgres.server import cut_off, empty

from keepsaid.adapters.postgres import stores as postgres_stores
from keepsaid.adapters.postgres.connection import PostgresPlace
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sql.search.word_blocks import STRETCH
from keepsaid.adapters.sql.tombstones import open_keyring
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.domain.memory import NewMemory
from keepsaid.domain.message import Lane, Trust
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.contracts.memories import AUDIT, episode, sample

_VOCABULARY = """
harbour market garden violin rehearsal passport dentist invoice landlord bicycle recipe lasagne thunder marathon
Häuser Gärten Schlüssel Versicherung gatos perros canciones nación naciones élèves journaux 会議 明日 東京
駅前 회의 내일
running runs runner studies studying relational ponies caresses
"""
_WORDS = _VOCABULARY.split()
_GRAMMAR = "the of and to in a is was on for with der die das und ich la el los que le les de"

Both = tuple[SearchedMemories, SearchedMemories]


@pytest.fixture
async def both(place: PostgresPlace, tmp_path: Path) -> AsyncIterator[Both]:
    """An empty memory store in a file, and one in PostgreSQL."""
    empty(place)
    keyring = open_keyring(tmp_path / "memory.db")
    one = await open_memories(tmp_path / "memory.db", CountingIds())
    other = await postgres_stores.open_memories(place, CountingIds(), keyring)
    yield one, other
    await one.close()
    await other.close()


def sentence(random: Random) -> str:
    """Words of several languages, some far rarer than others."""
    rare = min(int(random.expovariate(0.12)), len(_WORDS) - 1)
    words = [_WORDS[rare], *random.choices(_WORDS, k=random.randint(0, 4)), *random.choices(_GRAMMAR.split(), k=4)]
    random.shuffle(words)
    return " ".join(words)


def corpus(random: Random, first: int, count: int) -> list[NewMemory]:
    """Episodes of two conversations, with facts among them; some are long, and some repeat one another."""
    made = []
    for n in range(first, first + count):
        lane = Lane("telegram", "main", random.choice(("12", "34")), "main")
        long = " ".join(sentence(random) for _ in range(60)) if random.random() < 0.02 else sentence(random)
        if random.random() < 0.2:
            made.append(sample(f"fact:{n}", long, said_at=n, subject="Ana"))
        else:
            speaker = random.choice(("Ana", "Ben", "운영자"))
            made.append(episode(f"message:{n}", long, lane, Trust.OWNER, said_at=n, speaker=speaker))
    return made


async def compare(both: Both, random: Random, queries: int) -> None:
    """Every query finds the same memories with the same scores, and every term is as frequent."""
    one, other = both
    found_any = 0
    for _ in range(queries):
        query = sentence(random)
        expected, found = [await store.text(AUDIT, query, 10) for store in both]
        assert [hit.memory_id for hit in found] == [hit.memory_id for hit in expected], query
        assert [hit.score for hit in found] == pytest.approx([hit.score for hit in expected], abs=1e-9)
        assert await other.read_document_frequencies(query) == await one.read_document_frequencies(query)
        found_any += bool(found)
    assert found_any > queries / 2


async def test_the_same_is_found_with_the_same_scores(both: Both, place: PostgresPlace) -> None:
    """Also after some of it was forgotten, and after something was said again in other words."""
    random = Random(7)
    said = corpus(random, 0, 240)
    for store in both:
        for at in range(0, len(said), 60):
            await store.keep(said[at : at + 60], 1)
    await compare(both, random, 25)
    changed = [replace(one, text=sentence(random), version=2) for one in said[::9]]
    more = corpus(random, 240, 40)
    for store in both:
        ids = await store.keep(said[:40:3], 2)
        await store.forgetful.hide(ids, (), 3)
        await store.forgetful.erase(ids)
        await store.keep([*changed, *more], 4)
    await compare(both, random, 25)
    assert_sizes(place)


def assert_sizes(place: PostgresPlace) -> None:
    """What is counted beside the postings is what they come to, and nothing is left to do."""
    with psycopg.connect(place.url) as db:
        db.execute(f"SET search_path TO {place.schema}")
        [(pieces, tokens)] = db.execute("SELECT pieces, tokens FROM memory_size")
        [(there,)] = db.execute("SELECT count(*) FROM memory_piece")
        [(posted,)] = db.execute(
            "SELECT sum(tokens) FROM (SELECT DISTINCT piece_id, tokens FROM memory_posting) AS one"
        )
        [(left,)] = db.execute("SELECT count(*) FROM memory_unposted")
        [(lost,)] = db.execute(
            "SELECT count(*) FROM memory_posting WHERE NOT EXISTS (SELECT 1 FROM memory_piece WHERE id = piece_id)"
        )
    assert (pieces, tokens, left, lost) == (there, posted, 0, 0)


async def test_a_word_without_end_is_kept_and_found(both: Both) -> None:
    """PostgreSQL holds no more than some 2,700 bytes in an entry of an index."""
    word = "".join(Random(1).choices([chr(n) for n in range(0x12000, 0x12368)], k=950))
    for store in both:
        await store.keep([sample("a", f"the token {word}"), sample("b", "the token of another")], 1)
        assert [hit.memory_id for hit in await store.text(AUDIT, word, 5)][:1] == [1]


def begin_a_stretch(place: PostgresPlace, file: Path) -> None:
    """As if many pieces had come and gone."""
    with psycopg.connect(place.url) as db:
        db.execute(f"SELECT setval('{place.schema}.memory_piece_id_seq', {STRETCH})")
    with closing(open_writer(file)) as db_file:
        db_file.execute("UPDATE sqlite_sequence SET seq = ? WHERE name = 'memory_piece'", (STRETCH,))


async def test_one_process_makes_the_blocks_and_all_read_them(both: Both, place: PostgresPlace, tmp_path: Path) -> None:
    """Another goes on when that one is gone, and what was found before is found from blocks, with the same scores."""
    random = Random(11)
    one, _ = both
    said = corpus(random, 0, 120)
    for store in both:
        await store.keep(said, 1)
    begin_a_stretch(place, tmp_path / "memory.db")
    more = corpus(random, 120, 60)
    for store in both:
        await store.keep(more, 2)
    second = await postgres_stores.open_memories(place, CountingIds(), open_keyring(tmp_path / "memory.db"))
    cut_off(place)
    count_again(place, tmp_path / "memory.db")
    async with asyncio.timeout(30):
        while blocks(place) != 1 or is_counting(place):
            await second.news.drop_news(0)
            await one.news.drop_news(0)
    await compare((one, second), random, 25)
    await compare(both, random, 25)
    await second.close()


def count_again(place: PostgresPlace, file: Path) -> None:
    """Let terms be counted from the start: what comes while they are counted is missing in their numbers."""
    with psycopg.connect(place.url) as db:
        db.execute(f"UPDATE {place.schema}.term_count SET pieces = 0, reached = ''")
    with closing(open_writer(file)) as db_file:
        db_file.execute("UPDATE term_count SET pieces = 0, reached = ''")


def is_counting(place: PostgresPlace) -> bool:
    """Whether some terms are still to be counted."""
    with psycopg.connect(place.url) as db:
        db.execute(f"SET search_path TO {place.schema}")
        [(pieces, reached)] = db.execute("SELECT pieces, reached FROM term_count")
        [(made,)] = db.execute("SELECT seq FROM sqlite_sequence WHERE name = 'memory_piece'")
    return bool(reached or pieces != made)


def blocks(place: PostgresPlace) -> int:
    """How many stretches have all their blocks."""
    with psycopg.connect(place.url) as db:
        [(count,)] = db.execute(f"SELECT count(*) FROM {place.schema}.word_stretch WHERE whole = 1")
    return int(count)
