"""What every store must do that memories are recalled from: words beside, long texts, other scripts, vectors.

Subclass the classes in a test module and give the fixture `factory` of `contracts.memories`.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keepsaid.domain.memory import OWNER, Found, Listener, NewVector, Reached, VectorSpace, person_scope
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_store import Vectors
from keepsaid_testkit.contracts.memories import (
    AUDIT,
    HERE,
    OWNER_HERE,
    STRAND,
    THERE,
    SearchableStore,
    by_words,
    episode,
    keys,
    sample,
)


class RecallStore(SearchableStore, Vectors, Protocol):
    """A store of memories that can be searched by words and by meaning."""


Factory = Callable[[], AbstractAsyncContextManager[RecallStore]]

SPACE = VectorSpace("angles", "1", 2, b"first")
OTHER = VectorSpace("angles", "2", 2, b"second")


def at(degrees: float) -> bytes:
    """The vector of length 1 in a direction."""
    return array("f", [math.cos(math.radians(degrees)), math.sin(math.radians(degrees))]).tobytes()


async def embed(store: RecallStore, angles: dict[str, float], space: VectorSpace = SPACE) -> int:
    """Give the pieces that have none yet the vector of the angle named like their text."""
    due = await store.unembedded(space, 0, 1_000)
    return await store.keep_vectors(space, [NewVector(one.piece_id, at(angles[one.text])) for one in due], 9)


async def nearest(store: RecallStore, listener: Listener, degrees: float, limit: int = 9) -> list[str]:
    """The names of the memories nearest to a direction."""
    found: tuple[Found, ...] = await store.nearest(listener, SPACE, at(degrees), limit)
    return keys(await store.fetch(listener, [one.memory_id for one in found]))


class PieceContract:
    """What is found is a piece of a memory with what was said around it."""

    async def test_what_was_said_beside_lends_its_words(self, factory: Factory) -> None:
        """An answer is found by the words of its question, behind the question itself; also when that came later."""
        async with factory() as store:
            for lane, word, backwards in ((HERE, "quetzal", False), (STRAND, "heron", True)):
                told = [
                    episode(f"{word} q", f"which {word}?", lane, Trust.OWNER, said_at=1),
                    episode(f"{word} a", "the green one", lane, Trust.OWNER, said_at=2),
                ]
                for one in reversed(told) if backwards else told:
                    await store.keep([one], 5)
                assert keys(await by_words(store, AUDIT, word, 9)) == [f"{word} q", f"{word} a"]

    async def test_only_what_the_same_listeners_hear_lends_words(self, factory: Factory) -> None:
        """Another lane, another scope or an external neighbour lends nothing; nor does a fact."""
        async with factory() as store:
            await store.keep(
                [
                    episode("q", "which quetzal?", HERE, Trust.OWNER, said_at=1),
                    episode("strand", "the green one", STRAND, Trust.OWNER, said_at=2),
                    episode("scope", "the blue one", HERE, Trust.OWNER, said_at=2, scope=person_scope(OWNER)),
                    episode("external", "the red one", HERE, Trust.EXTERNAL, said_at=2),
                    sample("fact", "a cat", said_at=2),
                ],
                5,
            )
            assert keys(await by_words(store, AUDIT, "quetzal", 9)) == ["q"]

    async def test_two_before_and_one_after_lend_words_cut_short(self, factory: Factory) -> None:
        """No further away, and no more than their first 200 characters."""
        texts = ["ant", "bee", "crow", "deer", "eel", "fox", "long " * 40 + "goat", "hare"]
        async with factory() as store:
            await store.keep(
                [episode(f"e{n}", text, HERE, Trust.OWNER, said_at=n) for n, text in enumerate(texts, start=1)], 5
            )
            lent = {word: sorted(keys(await by_words(store, AUDIT, word, 9))) for word in ("ant", "deer", "goat")}
            assert lent["ant"] == ["e1", "e2", "e3"]
            assert lent["deer"] == ["e3", "e4", "e5", "e6"]
            assert lent["goat"] == ["e7"]

    async def test_the_day_and_the_speaker_are_words(self, factory: Factory) -> None:
        """Months, years and days of the week find what was said then."""
        async with factory() as store:
            await store.keep(
                [sample("a", "rain", said_at=1_683_550_800_000, speaker="Caroline"), sample("b", "sun")], 5
            )
            for query in ("May", "2023", "monday", "caroline", "8 May 2023"):
                assert keys(await by_words(store, AUDIT, query, 9)) == ["a"], query

    async def test_the_best_part_of_a_long_text_counts(self, factory: Factory) -> None:
        """A long text is found by any part, once, and no worse than a short one with as many of the words."""
        filler = "Nothing of note was said for quite some time after that. " * 60
        async with factory() as store:
            await store.keep(
                [
                    sample("long", f"{filler} The quetzal nested in the old oak. {filler}"),
                    sample("short", "A quetzal was seen."),
                ],
                5,
            )
            assert keys(await by_words(store, AUDIT, "quetzal nested oak", 9)) == ["long", "short"]

    async def test_scripts_without_spaces_are_found_by_any_part(self, factory: Factory) -> None:
        """Chinese, Japanese, Korean and Thai are searched by neighbouring letters, and by one letter alone."""
        texts = {
            "zh": "我的猫叫什么名字",
            "ja": "東京タワーに行きました",
            "ko": "고양이가 잠을 잔다",
            "th": "แมวของฉันชื่ออะไร",
        }
        asked = {"zh": ("名字", "猫"), "ja": ("タワー", "東京"), "ko": ("고양이",), "th": ("ของฉัน",)}
        async with factory() as store:
            await store.keep([sample(key, text) for key, text in texts.items()], 5)
            for key, queries in asked.items():
                for query in queries:
                    assert keys(await by_words(store, AUDIT, query, 9)) == [key], query


class VectorContract:
    """Vectors are compared within their space, for who listens, as soon as they are written."""

    async def test_the_nearest_come_first(self, factory: Factory) -> None:
        """By the angle to the query; the score is how much nearer than the rest, and what is not is not found."""
        angles = {"north": 90.0, "north-east": 45.0, "east": 0.0, "south": -90.0}
        async with factory() as store:
            await store.keep([sample(text, text) for text in angles], 5)
            assert await store.nearest(AUDIT, SPACE, at(80), 9) == ()
            assert await embed(store, angles) == 4
            assert await nearest(store, AUDIT, 80) == ["north", "north-east"]
            found = await store.nearest(AUDIT, SPACE, at(80), 9)
            mean = sum(math.cos(math.radians(80 - angle)) for angle in angles.values()) / 4
            assert abs(found[0].score - (math.cos(math.radians(10)) - mean)) < 2e-3
            assert await nearest(store, AUDIT, 80, limit=1) == ["north"]
            assert await store.nearest(AUDIT, SPACE, at(80), 0) == ()

    async def test_vectors_follow_what_is_kept_and_are_written_once(self, factory: Factory) -> None:
        """What came after a search is found by the next; a piece that has a vector, or is gone, gets none."""
        angles = {"north": 90.0, "south": -90.0, "west": 180.0}
        async with factory() as store:
            await store.keep([sample("south", "south")], 5)
            assert await embed(store, angles) == 1
            assert await nearest(store, AUDIT, 90) == []
            await store.keep([sample("north", "north"), sample("west", "west")], 6)
            [piece, other] = await store.unembedded(SPACE, 0, 9)
            assert list(await store.unembedded(SPACE, piece.piece_id, 9)) == [other]
            assert await embed(store, angles) == 2
            assert await nearest(store, AUDIT, 90) == ["north"]
            assert await store.keep_vectors(SPACE, [NewVector(piece.piece_id, at(0)), NewVector(999, at(0))], 9) == 0
            assert await store.unembedded(SPACE, 0, 9) == ()

    async def test_a_new_space_fills_while_the_old_one_serves(self, factory: Factory) -> None:
        """Each space has its own vectors of the same pieces."""
        async with factory() as store:
            await store.keep([sample("north", "north"), sample("south", "south")], 5)
            await embed(store, {"north": 90.0, "south": -90.0})
            assert len(await store.unembedded(OTHER, 0, 9)) == 2
            await embed(store, {"north": -90.0, "south": 90.0}, OTHER)
            assert await nearest(store, AUDIT, 90) == ["north"]
            [other] = await store.nearest(AUDIT, OTHER, at(90), 9)
            assert keys(await store.fetch(AUDIT, [other.memory_id])) == ["south"]

    async def test_a_space_says_how_far_it_is_filled(self, factory: Factory) -> None:
        """The one that came furthest first; to the end, once nothing is behind what it reached."""
        async with factory() as store:
            assert await store.spaces() == ()
            await store.keep([sample("north", "north"), sample("south", "south")], 5)
            first, second = await store.unembedded(SPACE, 0, 9)
            await store.keep_vectors(SPACE, [NewVector(first.piece_id, at(9))], 9, first.piece_id)
            await store.keep_vectors(OTHER, [NewVector(first.piece_id, at(9))], 9)
            assert await store.spaces() == (Reached(SPACE, first.piece_id), Reached(OTHER, 0))
            await store.keep_vectors(OTHER, (), 9, second.piece_id + 40)
            assert await store.spaces() == (Reached(OTHER, second.piece_id), Reached(SPACE, first.piece_id))
            await store.keep_vectors(SPACE, [NewVector(second.piece_id, at(9))], 9, second.piece_id)
            await store.keep_vectors(SPACE, (), 9, first.piece_id)
            assert {one.piece_id for one in await store.spaces()} == {second.piece_id}

    async def test_vectors_are_found_again_after_reopening(self, factory: Factory) -> None:
        """They are in the store."""
        async with factory() as store:
            await store.keep([sample("north", "north"), sample("south", "south")], 5)
            await embed(store, {"north": 90.0, "south": -90.0})
        async with factory() as store:
            assert await nearest(store, AUDIT, 90) == ["north"]

    async def test_nobody_finds_what_he_may_not_hear(self, factory: Factory) -> None:
        """The same rule as for words; what is not readable counts for nothing, not even in the mean."""
        async with factory() as store:
            await store.keep(
                [
                    episode("here", "here", HERE, Trust.OWNER),
                    episode("there", "there", THERE, Trust.KNOWN),
                    episode("strange", "strange", THERE, Trust.EXTERNAL),
                    sample("owner", "owner", scope=person_scope(OWNER)),
                    sample("all", "all"),
                    sample("base", "base"),
                ],
                5,
            )
            angles = {"here": 80.0, "there": 85.0, "strange": 88.0, "owner": 90.0, "all": 70.0, "base": -90.0}
            await embed(store, angles)
            assert await nearest(store, AUDIT, 90) == ["owner", "strange", "there", "here", "all"]
            assert await nearest(store, OWNER_HERE, 90) == ["owner", "here", "all"]
            assert await nearest(store, Listener(HERE), 90) == ["here", "all"]
            assert await nearest(store, Listener(HERE, cross=True), 90) == ["here", "all"]
            assert await nearest(store, Listener(THERE), 90) == ["strange", "there", "all"]
            assert await nearest(store, Listener(None), 90) == ["all"]
