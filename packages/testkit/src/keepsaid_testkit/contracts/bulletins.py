"""What every store of bulletins must do: they are read by scope, and made of what is known in exactly that one.

Subclass the class in a test module and give the fixture `factory` of `contracts.memories`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keepsaid.domain.bulletin import Edition, bulletin_key
from keepsaid.domain.memory import (
    GLOBAL,
    OWNER,
    Kind,
    Listener,
    NewMemory,
    Source,
    conversation_scope,
    lane_scope,
    person_scope,
)
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_store import BulletinStore
from keepsaid_testkit.contracts.memories import AUDIT, HERE, OWNER_HERE, THERE, SearchableStore, episode, sample

NOW = 1_795_000_000_000
MINE = person_scope(OWNER)
ROOM = conversation_scope(HERE)


class BriefingStore(SearchableStore, Protocol):
    """A store of memories and of bulletins made from them."""

    @property
    def bulletins(self) -> BulletinStore:
        """Its bulletins."""
        ...


Factory = Callable[[], AbstractAsyncContextManager[BriefingStore]]


def bulletin(scope: str, *memories: int, version: int = 1, text: str = "all is well here") -> NewMemory:
    """The bulletin of a scope, made from these memories."""
    edition = Edition(7, "material", memories, "test/model", 12)
    fields = {"version": version, "metadata": edition.as_json, "said_at": NOW, "derived": True}
    return sample(bulletin_key(scope), text, kind=Kind.BULLETIN, scope=scope, trust=Trust.KNOWN, **fields)


class BulletinContract:
    """Bulletins, and what they are made of."""

    async def test_bulletins_come_in_the_order_of_their_scopes(self, factory: Factory) -> None:
        """With all that is known of them; no other is returned."""
        async with factory() as store:
            [fact] = await store.keep([sample("a")], 5)
            await store.keep([bulletin(MINE, text="mine"), bulletin(GLOBAL, fact), bulletin(ROOM, text="room")], 6)
            found = await store.bulletins.standing(OWNER_HERE, NOW)
            told = [(one.scope, one.text) for one in found if one.version]
            assert told == [(GLOBAL, "all is well here"), (ROOM, "room"), (MINE, "mine")]
            assert [one.scope for one in found] == [GLOBAL, ROOM, lane_scope(HERE), MINE]
            elsewhere = await store.bulletins.standing(Listener(THERE), NOW)
            assert elsewhere[0].text == "all is well here"
            assert sum(one.version for one in elsewhere) == 1
            assert (found[0].version, found[0].made_at, found[0].whole) == (1, NOW, True)
            assert found[0].edition == Edition(7, "material", (fact,), "test/model", 12)

    async def test_a_newer_bulletin_takes_the_place_of_the_old_one(self, factory: Factory) -> None:
        """There is one for each scope."""
        async with factory() as store:
            await store.keep([bulletin(GLOBAL)], 5)
            await store.keep([bulletin(GLOBAL, version=2, text="the news")], 6)
            found = await store.bulletins.of(GLOBAL, NOW)
            assert (found.text, found.version) == ("the news", 2)

    async def test_a_bulletin_of_what_is_gone_is_not_whole(self, factory: Factory) -> None:
        """As is one of what belongs to another scope, or came from outside."""
        async with factory() as store:
            ids = await store.keep([sample("a"), sample("b", scope=ROOM), sample("c", trust=Trust.EXTERNAL)], 5)
            for version, source in enumerate((ids[0], 404, *ids[1:]), 1):
                await store.keep([bulletin(GLOBAL, source, version=version)], 6)
                found = await store.bulletins.of(GLOBAL, NOW)
                assert found.whole is (source == ids[0])

    async def test_a_bulletin_is_kept_only_while_all_that_it_tells_stands(self, factory: Factory) -> None:
        """What was withdrawn while it was written is in none; of a replaced one the version decides."""
        async with factory() as store:
            a, b, theirs = await store.keep([sample("a"), sample("b", valid_to=NOW), sample("c", scope=ROOM)], 5)
            assert not await store.bulletins.keep(bulletin(GLOBAL, a, b, text="of what ended"), NOW)
            assert not await store.bulletins.keep(bulletin(GLOBAL, a, 404, text="of what is not there"), NOW)
            assert not await store.bulletins.keep(bulletin(GLOBAL, a, theirs, text="of what is not for all"), NOW)
            assert (await store.bulletins.of(GLOBAL, NOW)).version == 0
            assert await store.bulletins.keep(bulletin(GLOBAL, a, b, text="the first"), NOW - 1)
            assert await store.bulletins.keep(bulletin(GLOBAL, a, text="the next", version=2), NOW)
            assert (await store.bulletins.of(GLOBAL, NOW)).text == "the next"

    async def test_material_is_what_is_known_in_exactly_one_scope(self, factory: Factory) -> None:
        """Nothing of a wider or a narrower scope, no episodes and summaries, nothing external, no results of tasks."""
        async with factory() as store:
            given = [
                sample("mine", kind=Kind.PREFERENCE, scope=MINE),
                sample("everybody's"),
                sample("the room's", scope=ROOM),
                sample("from outside", scope=MINE, trust=Trust.EXTERNAL),
                sample("a result", scope=MINE, sources=(Source("message", "3"), Source("task", "9"))),
                sample("a summary", kind=Kind.SESSION_SUMMARY, scope=MINE),
                episode("message:1", "the cat sleeps", HERE, Trust.OWNER, scope=MINE),
                bulletin(MINE),
            ]
            await store.keep(given, 5)
            for scope, wanted in ((MINE, ["mine"]), (GLOBAL, ["everybody's"]), (ROOM, ["the room's"]), ("lane:x", [])):
                material = await store.bulletins.material(scope, NOW)
                assert [memory.new.key for memory in material.memories] == wanted

    async def test_material_holds_the_newest_and_the_most_important_of_a_kind(self, factory: Factory) -> None:
        """However many there are."""
        async with factory() as store:
            facts = [sample(f"f{n}", f"fact {n}", said_at=NOW + n, importance=n == 3) for n in range(50)]
            await store.keep(facts, 5)
            keys = {memory.new.key for memory in (await store.bulletins.material(GLOBAL, NOW)).memories}
            assert {"f3", "f49", "f40"} <= keys

    async def test_the_revision_moves_with_memory_and_not_with_bulletins(self, factory: Factory) -> None:
        """A bulletin does not count as a change for itself."""
        async with factory() as store:
            await store.keep([sample("a")], 5)
            first = await store.bulletins.material(GLOBAL, NOW)
            await store.keep([bulletin(GLOBAL)], 6)
            await store.keep([bulletin(GLOBAL, version=2)], 7)
            second = await store.bulletins.material(GLOBAL, NOW)
            await store.keep([sample("b", "the dog barks")], 7)
            third = await store.bulletins.material(GLOBAL, NOW)
            assert first.revision == second.revision < third.revision
            assert first.digest == second.digest != third.digest

    async def test_no_search_finds_a_bulletin(self, factory: Factory) -> None:
        """What it tells is found where it came from."""
        async with factory() as store:
            await store.keep([bulletin(GLOBAL, text="zebras graze")], 5)
            assert await store.text(AUDIT, "zebras", 9) == ()
