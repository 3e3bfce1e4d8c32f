"""The contract of people and hearing: who is one person, and who lets more hear a memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keepsaid.domain.memory import GLOBAL, OWNER, Kind, Listener, conversation_scope, lane_scope, person_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.visibility import (
    Identity,
    Joined,
    MemoryShared,
    Person,
    SeenIdentity,
    ShareMemory,
    ShareReach,
    ShareRefusal,
)
from keepsaid.ports.memory_store import MemorySharing, People
from keepsaid_testkit.contracts.memories import AUDIT, SearchableStore, by_words, episode, keys, sample

ANN, BEN, CAT = (
    Identity("chat", "bot", "ann").person,
    Identity("post", "bot:1", "7").person,
    Identity("chat", "bot", "cat").person,
)
ROOM, ANNS, BENS = (
    Lane("chat", "bot", "room", "root"),
    Lane("chat", "bot", "dm-ann", "root"),
    Lane("post", "bot:1", "dm-ben", "root"),
)
HERE_ANN, HERE_BEN = Listener(ANNS, ANN, direct=True), Listener(BENS, BEN, direct=True)


class PeopleStore(SearchableStore, Protocol):
    """A memory store that knows people, and whose memories can be widened."""

    @property
    def people(self) -> People:
        """Who is who."""
        ...

    @property
    def sharing(self) -> MemorySharing:
        """Which listeners may read a memory."""
        ...


PeopleFactory = Callable[[], AbstractAsyncContextManager[PeopleStore]]


async def visible_keys(store: PeopleStore, listener: Listener) -> list[str]:
    """The sorted keys of the memories that a listener may read; asserts that find and text search agree."""
    listed = sorted(keys(await store.find(listener, (), 99)))
    assert sorted(keys(await by_words(store, listener, "cat", 99))) == listed
    return listed


async def kept(store: PeopleStore) -> None:
    """A fact for each person, and one for the room."""
    people = (("ann", ANN), ("ben", BEN), ("cat", CAT), ("owner", OWNER))
    facts = [sample(key, scope=person_scope(person)) for key, person in people]
    await store.keep([*facts, sample("room", scope=conversation_scope(ROOM))], 1)


def names(person: Person | None) -> list[str]:
    """Whom a person consists of."""
    assert person is not None
    return [one.name for one in person.identities]


class PeopleContract:
    """Identities are joined and split; what was stored stays as it is, and its readers change at once."""

    async def test_joined_people_hear_what_is_for_each_of_them(self, factory: PeopleFactory) -> None:
        """In direct chats, and until they are split."""
        async with factory() as store:
            await kept(store)
            assert await visible_keys(store, HERE_ANN) == ["ann"]
            person = await store.people.join((ANN, BEN), OWNER, 5)
            assert person is not None
            assert person.identities == (Joined(ANN, 5, OWNER), Joined(BEN, 5, OWNER))
            assert await visible_keys(store, HERE_ANN) == await visible_keys(store, HERE_BEN) == ["ann", "ben"]
            assert await visible_keys(store, Listener(ROOM, ANN)) == ["room"]
            assert await visible_keys(store, Listener(None, CAT, direct=True)) == ["cat"]
            assert await store.people.split(ANN)
            assert await visible_keys(store, HERE_ANN) == ["ann"]
            assert await visible_keys(store, HERE_BEN) == ["ben"]
            assert await store.people.everybody() == ()

    async def test_who_joins_brings_all_whom_they_are_joined_with(self, factory: PeopleFactory) -> None:
        """Under the id of the person that was there first; splitting one leaves the others joined."""
        async with factory() as store:
            first = await store.people.join((ANN, BEN), ANN, 5)
            more = await store.people.join((CAT, BEN), CAT, 6)
            assert first is not None
            assert more == Person(first.id, (Joined(ANN, 5, ANN), Joined(CAT, 6, CAT), Joined(BEN, 5, ANN)))
            assert await store.people.everybody() == (more,)
            for one in (ANN, BEN, CAT):
                assert await store.people.joined_with(one) == (ANN, CAT, BEN)
            assert await store.people.split(BEN)
            assert not await store.people.split(BEN)
            assert await store.people.joined_with(ANN) == (ANN, CAT)
            assert await store.people.joined_with(BEN) == (BEN,)

    async def test_two_persons_become_one(self, factory: PeopleFactory) -> None:
        """And joining those who are one already changes nothing."""
        async with factory() as store:
            other = Identity("mail", "x", "dan").person
            await store.people.join((ANN, BEN), OWNER, 5)
            await store.people.join((CAT, other), OWNER, 6)
            whole = await store.people.join((other, ANN), OWNER, 7)
            assert sorted(names(whole)) == sorted([ANN, BEN, CAT, other])
            assert await store.people.join((BEN, CAT), OWNER, 8) == whole
            assert await store.people.everybody() == (whole,)

    async def test_only_the_owner_joins_anybody_with_the_owner(self, factory: PeopleFactory) -> None:
        """Directly or by way of another; what was refused changed nothing."""
        async with factory() as store:
            await kept(store)
            assert await store.people.join((ANN, OWNER), ANN, 5) is None
            assert await store.people.joined_with(ANN) == (ANN,)
            mine = await store.people.join((ANN, OWNER), OWNER, 6)
            assert names(mine) == [ANN, OWNER]
            assert await store.people.join((BEN, ANN), BEN, 7) is None
            assert await visible_keys(store, HERE_BEN) == ["ben"]
            assert await visible_keys(store, HERE_ANN) == ["ann", "owner"]
            assert await visible_keys(store, Listener(None, OWNER, direct=True)) == ["ann", "owner"]
            await store.people.join((CAT, OWNER), OWNER, 8)
            await store.people.split(OWNER)
            assert await visible_keys(store, Listener(None, OWNER, direct=True)) == ["owner"]
            assert await visible_keys(store, HERE_ANN) == ["ann", "cat"]
            assert names(await store.people.join((BEN, ANN), BEN, 9)) == [ANN, CAT, BEN]

    async def test_a_person_is_made_of_two_or_more(self, factory: PeopleFactory) -> None:
        """Each named once."""
        async with factory() as store:
            for none in ((), (ANN,), (ANN, ANN)):
                try:
                    await store.people.join(none, OWNER, 5)
                except ValueError:
                    continue
                raise AssertionError(f"{none} was joined")
            assert await store.people.everybody() == ()

    async def test_who_was_heard_is_seen_by_id_and_never_by_name(self, factory: PeopleFactory) -> None:
        """Two who are called the same are two; the last name counts; replies are nobody's."""
        async with factory() as store:
            said = [
                episode("1", "cat", ANNS, Trust.KNOWN, speaker="Ann", speaker_id=ANN, said_at=1),
                episode("2", "cat", ANNS, Trust.KNOWN, speaker="Annie", speaker_id=ANN, said_at=3),
                episode("3", "cat", BENS, Trust.KNOWN, speaker="Annie", speaker_id=BEN, said_at=2),
                episode("4", "cat", BENS, Trust.KNOWN, speaker="assistant", said_at=4),
            ]
            await store.keep(said, 5)
            assert await store.people.seen(9) == (SeenIdentity(ANN, "Annie", 2, 3), SeenIdentity(BEN, "Annie", 1, 2))
            assert await store.people.seen(1) == (SeenIdentity(ANN, "Annie", 2, 3),)
            assert await store.people.seen(0) == ()
            assert await visible_keys(store, HERE_ANN) == ["1", "2"]


class SharingContract:
    """The speaker or the owner may share a memory with more listeners; no listener loses access."""

    async def test_the_owner_widens_what_was_said(self, factory: PeopleFactory) -> None:
        """Step by step, with the reason on record; what is so already is not noted again."""
        async with factory() as store:
            fact = sample("f", scope=lane_scope(ANNS), lane=ANNS, speaker_id=ANN, chat_of=ANN)
            [id_] = await store.keep([fact], 1)
            beside = Lane(*ANNS[:3], "topic")
            steps = ((ShareReach.CONVERSATION, conversation_scope(ANNS)), (ShareReach.PERSON, person_scope(ANN)))
            scopes, told = lane_scope(ANNS), list[MemoryShared]()
            for listener, (to, scope) in zip((Listener(beside), Listener(ROOM, ANN, direct=True)), steps, strict=True):
                assert await visible_keys(store, listener) == []
                told.append(MemoryShared(scopes, scope, OWNER, "it helps", 7))
                for _ in range(2):
                    done = await store.sharing.share(ShareMemory(id_, to, OWNER, "it helps", 7))
                    assert done in (told[-1], MemoryShared(scope, scope, OWNER, "it helps", 7))
                assert await visible_keys(store, listener) == ["f"]
                scopes = scope
            found = await store.get(AUDIT, id_)
            assert found is not None
            assert found.new.scope == person_scope(ANN)
            assert await store.sharing.list_shares(AUDIT, id_) == tuple(told)
            assert await store.sharing.list_shares(Listener(ROOM), id_) == ()
            assert await visible_keys(store, Listener(ROOM)) == []
            await store.sharing.share(ShareMemory(id_, ShareReach.GLOBAL, OWNER, "", 8))
            assert await visible_keys(store, Listener(ROOM)) == ["f"]

    async def test_who_said_it_widens_it_and_nobody_else(self, factory: PeopleFactory) -> None:
        """But whom the speaker is joined with is the speaker too."""
        async with factory() as store:
            said = sample("f", scope=conversation_scope(ANNS), lane=ANNS, speaker_id=ANN, subject_id=BEN, chat_of=ANN)
            [id_] = await store.keep([said], 1)
            by_ben = ShareMemory(id_, ShareReach.GLOBAL, BEN, "about me", 7)
            assert await store.sharing.share(by_ben) is ShareRefusal.NOT_THEIRS
            assert await visible_keys(store, Listener(ROOM)) == []
            await store.people.join((ANN, BEN), OWNER, 5)
            assert isinstance(await store.sharing.share(by_ben), MemoryShared)
            assert await visible_keys(store, Listener(ROOM)) == ["f"]
            nobodys = (await store.keep([sample("g", scope=lane_scope(ROOM), lane=ROOM)], 1))[0]
            assert (
                await store.sharing.share(ShareMemory(nobodys, ShareReach.GLOBAL, "", "", 7)) is ShareRefusal.NOT_THEIRS
            )

    async def test_nothing_is_widened_to_where_some_hear_it_no_more(self, factory: PeopleFactory) -> None:
        """A room is nobody's own, what came from outside stays in its lane, and what is wide stays wide."""
        async with factory() as store:
            room, owner = conversation_scope(ROOM), person_scope(OWNER)
            refused = (
                (sample("room", scope=room, lane=ROOM, speaker_id=ANN), ShareReach.PERSON, ShareRefusal.BEFORE_OTHERS),
                (sample("wide", scope=GLOBAL, lane=ANNS, chat_of=ANN), ShareReach.PERSON, ShareRefusal.NOT_WIDER),
                (
                    sample("mine", scope=owner, lane=ANNS, chat_of=OWNER),
                    ShareReach.CONVERSATION,
                    ShareRefusal.NOT_WIDER,
                ),
                (sample("note", scope=owner), ShareReach.CONVERSATION, ShareRefusal.NOWHERE),
                (sample("out", scope=room, lane=ROOM, trust=Trust.EXTERNAL), ShareReach.GLOBAL, ShareRefusal.OUTSIDE),
            )
            ids = await store.keep([new for new, _, _ in refused], 1)
            for id_, (new, to, why) in zip(ids, refused, strict=True):
                assert await store.sharing.share(ShareMemory(id_, to, OWNER, "", 7)) is why
                there = await store.get(AUDIT, id_)
                assert there is not None
                assert there.new == new
                assert await store.sharing.list_shares(AUDIT, id_) == ()
            assert (
                await store.sharing.share(ShareMemory(max(ids) + 1, ShareReach.GLOBAL, OWNER, "", 7))
                is ShareRefusal.GONE
            )

    async def test_a_newer_version_is_heard_as_narrowly_as_it_says(self, factory: PeopleFactory) -> None:
        """What was widened was the text that stood there then."""
        async with factory() as store:
            first = sample("s", "the cat sleeps", scope=conversation_scope(ROOM), lane=ROOM, version=1)
            [id_] = await store.keep([first], 1)
            await store.sharing.share(ShareMemory(id_, ShareReach.GLOBAL, OWNER, "", 7))
            assert await visible_keys(store, HERE_ANN) == ["s"]
            newer = sample("s", "the cat has a secret", scope=conversation_scope(ROOM), lane=ROOM, version=2)
            await store.keep([newer], 8)
            assert await visible_keys(store, HERE_ANN) == []
            assert await visible_keys(store, Listener(ROOM)) == ["s"]
            [there] = await store.find(Listener(ROOM), (), 9)
            assert there.new == newer

    async def test_what_is_widened_lends_its_words_to_nobody_it_left(self, factory: PeopleFactory) -> None:
        """Neighbours are found by words of the pieces next to them, if the same people can read them."""
        async with factory() as store:
            lines: Sequence[tuple[str, str]] = (("a", "the cat sleeps"), ("b", "zanzibar it is"), ("c", "fine then"))
            said = [
                episode(key, text, ANNS, Trust.KNOWN, speaker_id=ANN, chat_of=ANN, said_at=n, kind=Kind.EPISODE)
                for n, (key, text) in enumerate(lines, start=1)
            ]
            ids = await store.keep(said, 1)
            assert keys(await by_words(store, HERE_ANN, "zanzibar", 9)) == ["b", "c", "a"]
            await store.sharing.share(ShareMemory(ids[1], ShareReach.PERSON, ANN, "", 7))
            assert keys(await by_words(store, HERE_ANN, "zanzibar", 9)) == ["b"]
            crossing = Listener(ROOM, ANN, direct=True, cross=True)
            assert keys(await by_words(store, crossing, "zanzibar", 9)) == ["b"]
