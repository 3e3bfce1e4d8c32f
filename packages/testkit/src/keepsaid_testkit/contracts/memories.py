"""What every memory store must do: subclass the three classes in a test module and give a fixture `factory`.

`factory` is a `Factory`: every call opens the same store again. The methods are coroutines, so pytest-asyncio
must run in auto mode.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.memory import (
    GLOBAL,
    OWNER,
    Hit,
    Kind,
    Listener,
    Memory,
    NewMemory,
    Source,
    conversation_scope,
    lane_scope,
    person_scope,
)
from keepsaid.domain.message import Lane, Trust
from keepsaid.ports.memory_store import Memories, TextLeg


class SearchableStore(Memories, TextLeg, Protocol):
    """A store of memories that can be searched by words."""


Factory = Callable[[], AbstractAsyncContextManager[SearchableStore]]

HERE = Lane("terminal", "default", "terminal:me", "root:terminal:me")
THERE = Lane("github", "hooks", "github:acme/api#7", "root:github:acme/api#7")
STRAND = Lane("terminal", "default", "terminal:me", "topic:terminal:me:9")
OWNER_HERE = Listener(HERE, OWNER, direct=True)
AUDIT = Listener(None, everything=True)


def sample(key: str, text: str = "the cat sleeps", **fields: object) -> NewMemory:
    """A fact that everybody may read, unless `fields` say otherwise."""
    values: dict[str, object] = {"kind": Kind.FACT, "scope": GLOBAL, "trust": Trust.OWNER, **fields}
    return NewMemory(key=key, text=text, **values)  # type: ignore[arg-type]


def episode(key: str, text: str, lane: Lane, trust: Trust, **fields: object) -> NewMemory:
    """Something said in a lane and readable in its conversation, unless `fields` say otherwise."""
    values: dict[str, object] = {"kind": Kind.EPISODE, "scope": conversation_scope(lane), "lane": lane, **fields}
    return sample(key, text, trust=trust, **values)


def keys(found: Iterable[Memory | Hit]) -> list[str]:
    """The names of what was found, in order."""
    return [one.new.key if isinstance(one, Memory) else one.memory.new.key for one in found]


async def by_words(store: SearchableStore, listener: Listener, query: str, limit: int) -> tuple[Hit, ...]:
    """What the full-text leg finds, read."""
    found = await store.text(listener, query, limit)
    read = {memory.id: memory for memory in await store.fetch(listener, [one.memory_id for one in found])}
    return tuple(Hit(read[one.memory_id], "text", rank, one.score) for rank, one in enumerate(found, start=1))


class KeepingContract:
    """Memories are kept once, whole, and for good."""

    async def test_ids_come_in_order(self, factory: Factory) -> None:
        """Each memory gets its own id, at its place."""
        async with factory() as store:
            ids = await store.keep([sample("a"), sample("b")], 5)
            assert len(set(ids)) == 2
            for key, id_ in zip("ab", ids, strict=True):
                memory = await store.get(AUDIT, id_)
                assert memory is not None
                assert memory.new.key == key

    async def test_a_memory_comes_back_whole(self, factory: Factory) -> None:
        """All that was written is read again, sources in their order."""
        new = sample(
            "finding:3:1",
            "Zoë takes oat milk\nin her café",
            kind=Kind.PREFERENCE,
            scope=person_scope(OWNER),
            trust=Trust.KNOWN,
            lane=STRAND,
            speaker="Zoë",
            subject="zoë",
            said_at=1_795_000_000_123,
            importance=0.7,
            sources=(Source("message", "9"), Source("message", "10"), Source("finding", "3")),
            attribute="milk",
            value="oat milk",
            valid_from=1_794_000_000_000,
            valid_to=1_796_000_000_000,
            confidence=0.75,
            corrects=True,
            speaker_id="chat:default:7",
            subject_id="chat:default:8",
            chat_of="chat:default:9",
        )
        async with factory() as store:
            (id_,) = await store.keep([new], 1_795_000_000_999)
            whole = Memory(id_, new, "active", 1_795_000_000_999, valid_to=1_796_000_000_000)
            assert await store.get(AUDIT, id_) == whole

    async def test_a_higher_version_takes_the_place_of_what_is_there(self, factory: Factory) -> None:
        """Under the same id, found by its new words alone; the same or a lower version changes nothing."""
        async with factory() as store:
            first = sample("s", "the cat sleeps", version=2, derived=True, metadata='{"n": 2}')
            newer = replace(first, text="the dog barks", version=3, said_at=7, metadata='{"n": 3}')
            [kept] = await store.keep([first], 5)
            for given, at, there in ((newer, 6, newer), (first, 7, newer), (newer, 8, newer)):
                assert await store.keep([given], at) == (kept,)
                assert (await store.get(AUDIT, kept)) == Memory(kept, there, "active", 6)
            assert keys(await by_words(store, AUDIT, "dog", 9)) == ["s"]
            assert keys(await by_words(store, AUDIT, "cat", 9)) == []

    async def test_the_same_key_changes_nothing(self, factory: Factory) -> None:
        """Writing again returns the first id and leaves the first memory as it is."""
        async with factory() as store:
            first = await store.keep([sample("a", "one")], 5)
            again = await store.keep([sample("a", "two"), sample("b", "three"), sample("b", "four")], 6)
            assert again == (first[0], again[1], again[1])
            assert await store.counts() == {"fact": 2}
            memory = await store.get(AUDIT, first[0])
            assert memory is not None
            assert (memory.text, memory.recorded_at) == ("one", 5)
            assert keys(await by_words(store, AUDIT, "two four", 9)) == []

    async def test_nothing_kept_is_nothing(self, factory: Factory) -> None:
        """No memories, no ids."""
        async with factory() as store:
            assert await store.keep([], 5) == ()
            assert await store.counts() == {}

    async def test_what_was_kept_is_there_after_reopening(self, factory: Factory) -> None:
        """Closing loses nothing, and the key still decides."""
        async with factory() as store:
            ids = await store.keep([sample("a")], 5)
        async with factory() as store:
            assert await store.keep([sample("a")], 6) == ids
            assert keys(await by_words(store, AUDIT, "cats", 9)) == ["a"]

    async def test_unstorable_text_is_kept_readable(self, factory: Factory) -> None:
        """NUL and lone surrogates are replaced in text; in names two stay two."""
        odd = Lane("http", "default", "room\ud800", "root\0")
        async with factory() as store:
            await store.keep([episode("m\ud800", "a\0b c\ud800d", odd, Trust.KNOWN)], 5)
            (memory,) = await store.find(Listener(odd), (), 9)
            assert memory.text == "a\ufffdb c\ufffdd"
            even = Lane("http", "default", "room\ufffd", "root\ufffd")
            assert await store.find(Listener(even), (), 9) == ()

    async def test_find_lists_the_newest_first(self, factory: Factory) -> None:
        """By the time it was said, then by id; kinds and limit narrow it."""
        async with factory() as store:
            told = [("a", 10, Kind.FACT), ("b", 30, Kind.GOAL), ("c", 20, Kind.FACT), ("d", 20, Kind.TODO)]
            await store.keep([sample(key, said_at=at, kind=kind) for key, at, kind in told], 99)
            assert keys(await store.find(AUDIT, (), 9)) == ["b", "d", "c", "a"]
            assert keys(await store.find(AUDIT, (Kind.FACT, Kind.TODO), 2)) == ["d", "c"]
            assert await store.find(AUDIT, (), 0) == ()
            assert await store.counts() == {"fact": 2, "goal": 1, "todo": 1}


class VisibilityContract:
    """Which listener may read which memory, the same on every read path."""

    async def visible_keys(self, store: SearchableStore, listener: Listener) -> list[str]:
        """The keys of the memories that a listener may read; asserts that find, get and text search agree."""
        everything = await store.find(AUDIT, (), 99)
        found = sorted(keys(await store.find(listener, (), 99)))
        got = [memory.new.key for memory in everything if await store.get(listener, memory.id) is not None]
        assert sorted(got) == found
        assert sorted(keys(await by_words(store, listener, "cat", 99))) == found
        return found

    async def test_scopes(self, factory: Factory) -> None:
        """A fact is readable where its scope says, a person's only in direct chats."""
        scopes = {
            "global": GLOBAL,
            "owner": person_scope(OWNER),
            "here": conversation_scope(HERE),
            "strand": lane_scope(STRAND),
            "there": conversation_scope(THERE),
        }
        async with factory() as store:
            await store.keep([sample(key, scope=scope) for key, scope in scopes.items()], 5)
            assert await self.visible_keys(store, OWNER_HERE) == ["global", "here", "owner"]
            assert await self.visible_keys(store, Listener(HERE, OWNER)) == ["global", "here"]
            assert await self.visible_keys(store, Listener(STRAND)) == ["global", "here", "strand"]
            assert await self.visible_keys(store, Listener(THERE, cross=True)) == ["global", "there"]
            assert await self.visible_keys(store, Listener(None, OWNER, direct=True)) == ["global", "owner"]
            assert await self.visible_keys(store, AUDIT) == sorted(scopes)

    async def test_episodes_stay_in_their_lane(self, factory: Factory) -> None:
        """Those of another lane are readable on explicit reference only; facts are readable across lanes."""
        bound = (Kind.EPISODE, Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE)
        async with factory() as store:
            told = [episode(kind, "cat", STRAND, Trust.OWNER, kind=kind) for kind in (*bound, Kind.FACT, Kind.EVENT)]
            await store.keep(told, 5)
            assert await self.visible_keys(store, Listener(STRAND)) == sorted([*bound, "fact", "event"])
            assert await self.visible_keys(store, OWNER_HERE) == ["event", "fact"]
            crossing = Listener(HERE, OWNER, direct=True, cross=True)
            assert await self.visible_keys(store, crossing) == sorted([*bound, "fact", "event"])

    async def test_a_stranger_is_heard_in_his_lane_only(self, factory: Factory) -> None:
        """External text never leaves its lane, not even where scope and `cross` would let it."""
        async with factory() as store:
            await store.keep(
                [
                    episode("hook", "cat", THERE, Trust.EXTERNAL),
                    episode("wide", "cat", THERE, Trust.EXTERNAL, scope=GLOBAL),
                    episode("fact", "cat", THERE, Trust.EXTERNAL, scope=GLOBAL, kind=Kind.FACT),
                    episode("mine", "cat", HERE, Trust.OWNER, scope=person_scope(OWNER)),
                    sample("stray", "cat", trust=Trust.EXTERNAL),
                ],
                5,
            )
            assert await self.visible_keys(store, Listener(HERE, OWNER, direct=True, cross=True)) == ["mine"]
            assert await self.visible_keys(store, Listener(THERE)) == ["fact", "hook", "wide"]
            assert await self.visible_keys(store, Listener(None, cross=True)) == []
            assert await self.visible_keys(store, AUDIT) == ["fact", "hook", "mine", "stray", "wide"]

    async def test_a_lane_is_all_four_parts(self, factory: Factory) -> None:
        """The same key under another channel, account or conversation is another lane."""
        others = [
            Lane("http", HERE.account, HERE.conversation, HERE.key),
            Lane(HERE.channel, "other", HERE.conversation, HERE.key),
            Lane(HERE.channel, HERE.account, "terminal:you", HERE.key),
            STRAND,
        ]
        async with factory() as store:
            await store.keep([episode("mine", "cat", HERE, Trust.EXTERNAL, scope=GLOBAL)], 5)
            assert await self.visible_keys(store, Listener(HERE)) == ["mine"]
            for lane in others:
                assert await self.visible_keys(store, Listener(lane, OWNER, direct=True, cross=True)) == []


class TextContract:
    """Search by words: any query is legal, and the best comes first in one fixed order."""

    async def test_forms_of_a_word_agree(self, factory: Factory) -> None:
        """Case, accents and English endings do not matter; the speaker counts as text."""
        async with factory() as store:
            await store.keep([sample("a", "Running late for the CAFÉ", speaker="Caroline"), sample("b", "a dog")], 5)
            for query in ("run", "cafe", "CAFÉS", "caroline"):
                assert keys(await by_words(store, AUDIT, query, 9)) == ["a"], query

    async def test_any_word_will_do_and_rare_ones_count_more(self, factory: Factory) -> None:
        """Words are joined by or; hits carry leg, rank and a falling score."""
        async with factory() as store:
            told = [("a", "green tea"), ("b", "black tea and a zebra"), ("c", "white tea"), ("d", "coffee"), ("e", "x")]
            await store.keep([sample(key, text, said_at=at) for at, (key, text) in enumerate(told)], 5)
            hits = await by_words(store, AUDIT, "tea zebra", 2)
            assert keys(hits) == ["b", "c"]
            assert [(hit.leg, hit.rank) for hit in hits] == [("text", 1), ("text", 2)]
            assert hits[0].score > hits[1].score

    async def test_equals_come_newest_first(self, factory: Factory) -> None:
        """Of equal matches the newer is first, then the one with the larger id; the limit cuts after that."""
        async with factory() as store:
            await store.keep([sample(key, said_at=at) for key, at in (("a", 10), ("b", 30), ("c", 20), ("d", 20))], 5)
            await store.keep([sample(f"x{n}", "dog") for n in range(5)], 5)
            assert keys(await by_words(store, AUDIT, "cat", 9)) == ["b", "d", "c", "a"]
            assert keys(await by_words(store, AUDIT, "cat", 2)) == ["b", "d"]

    async def test_stopwords_are_dropped(self, factory: Factory) -> None:
        """A query of nothing but stopwords finds nothing."""
        async with factory() as store:
            await store.keep([sample("a", "what is it that you want"), sample("b", "a red door")], 5)
            assert await by_words(store, AUDIT, "what is the that", 9) == ()
            assert keys(await by_words(store, AUDIT, "what is the door?", 9)) == ["b"]

    async def test_nobody_can_write_syntax(self, factory: Factory) -> None:
        """What would be an operator or a column is a word or nothing; quotes and stars mean nothing."""
        async with factory() as store:
            await store.keep([sample("a", "cats near dogs"), sample("b", "speaker of the house")], 5)
            for query in ('"cat', "cat* AND", "-cat", "NOT cat", "(cat", "cat)", "^cat", "body:cat", 'NEAR("cat", 2'):
                assert keys(await by_words(store, AUDIT, query, 9))[:1] == ["a"], query
            assert keys(await by_words(store, AUDIT, "speaker : house", 9)) == ["b"]

    async def test_a_long_query_is_cut_to_its_rarest_words(self, factory: Factory) -> None:
        """Of many words the rare ones are looked for, wherever they stand."""
        common = " ".join(f"word{n}" for n in range(100))
        async with factory() as store:
            await store.keep([sample(f"c{n}", common) for n in range(30)], 5)
            await store.keep([sample("rare", "quetzal")], 5)
            assert keys(await by_words(store, AUDIT, f"{common} {common} quetzals", 1)) == ["rare"]

    async def test_an_empty_query_or_limit_finds_nothing(self, factory: Factory) -> None:
        """No words, no hits."""
        async with factory() as store:
            await store.keep([sample("a")], 5)
            assert await by_words(store, AUDIT, "", 9) == ()
            assert await by_words(store, AUDIT, "cat", 0) == ()
            assert await by_words(store, AUDIT, "cat", -1) == ()
