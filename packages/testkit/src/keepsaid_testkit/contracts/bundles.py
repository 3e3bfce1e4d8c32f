"""What every store whose memory leaves a home and enters another must do.

Subclass `BundleContract` in a test module and give two fixtures, `factory` and `another`: each opens a store of its
own, the same at every call. The methods are coroutines, so pytest-asyncio must run in auto mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.bundle import BundleEntry, BundleLink, Edge, ImportOutcome, ImportVerdict, Record, Tombstone
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.memory import OWNER, Kind, Listener, NewMemory, Used, conversation_scope, person_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.visibility import Person, ShareMemory, ShareReach
from keepsaid.ports.memory_maintenance import ForgetfulMemory
from keepsaid.ports.memory_store import BundleContents, Bundles, Graph
from keepsaid_testkit.contracts.learning import LearningStore, lives, said
from keepsaid_testkit.contracts.memories import AUDIT, HERE, THERE, episode
from keepsaid_testkit.contracts.people import ANN, ANNS, BEN, CAT, PeopleStore


class BundleStore(LearningStore, PeopleStore, Protocol):
    """A store of memories with all that hangs on them, told and taken over."""

    @property
    def graph(self) -> Graph:
        """What they have to do with one another."""
        ...

    @property
    def forgetful(self) -> ForgetfulMemory:
        """How they are forgotten."""
        ...

    @property
    def bundles(self) -> Bundles:
        """How they leave and enter."""
        ...


BundleFactory = Callable[[], AbstractAsyncContextManager[BundleStore]]


async def export_records(store: BundleStore, *listeners: Listener) -> list[Record]:
    """Export all records that the listeners may read; the owner's if no listener is given."""

    def write(all_of_it: BundleContents) -> list[Record]:
        records = list(all_of_it.records)
        assert sum(all_of_it.counts.values()) == len(records)
        return records

    return await store.bundles.export(listeners or (AUDIT,), write)


def entries(records: Sequence[Record]) -> list[BundleEntry]:
    """The memories among some records."""
    return [one for one in records if isinstance(one, BundleEntry)]


def links(records: Sequence[Record]) -> list[BundleLink]:
    """What took the place of what."""
    return [
        BundleLink(one.memory.new.key, one.replaced_by, one.memory.state, one.memory.valid_to)
        for one in entries(records)
        if one.replaced_by
    ]


async def taken(store: BundleStore, records: Sequence[Record], contested: Sequence[bytes] = ()) -> list[ImportOutcome]:
    """Import all of it, memories first; the outcome of each record."""
    rest = [one for one in records if not isinstance(one, BundleEntry)]
    whole = [*entries(records), *([] if contested else links(records)), *rest]
    looked = await store.bundles.look([*entries(records), *rest])
    verdicts = await store.bundles.take(whole, contested, 900)
    assert len(looked) == len(records)
    return [one.outcome for one in verdicts]


async def one_of(store: BundleStore, record: Record, contested: Sequence[bytes] = ()) -> ImportVerdict:
    """The outcome of one imported record, which equals the preview."""
    [before] = await store.bundles.look([record])
    [verdict] = await store.bundles.take([record], contested, 900)
    assert verdict == before
    return verdict


async def rich(store: BundleStore) -> None:
    """A memory of everything: slots with a past, evidence, a correction, what was merged, said, used and mentioned."""
    learned = await store.learn([lives("m1", "Porto", 100), lives("m2", "Lisbon", 200), lives("m3", "Porto", 300)], 400)
    await store.learn([lives("m4", "Porto", 350)], 410)
    await store.revisions.correct(learned[2].memory_id, lives("w1", "Rome", 500), 510)
    notes = await store.learn(
        [said("n1", "the bridge was painted red"), said("n2", "quite another sort of words")], 420
    )
    await store.revisions.merge(notes[0].memory_id, [notes[1].memory_id], 430)
    await store.revisions.pin(notes[0].memory_id, 430, pinned=True)
    await store.revisions.confirm(learned[0].memory_id, 440)
    talk = episode("message:1", "the cat sleeps", HERE, Trust.OWNER, speaker="Me", speaker_id=OWNER, said_at=50)
    ids = await store.keep([talk, episode("message:2", "it does", HERE, Trust.KNOWN, said_at=60)], 70)
    await store.keep([], 80, [Used(7, (ids[0],), 80)])
    edge = Association(notes[0].memory_id, ids[0], Relation.RELATED_TO, 0.875)
    await store.graph.relate([edge], [Mention(ids[0], "animal:cat", "cat", 0.5)], 90)
    await store.people.join((ANN, BEN), OWNER, 95)
    await store.sharing.share(ShareMemory(ids[0], ShareReach.GLOBAL, OWNER, "everybody likes cats", 99))


class BundleContract:
    """What leaves a home enters another as it was, once, and only what may."""

    async def test_what_is_taken_over_is_as_it_was(self, factory: BundleFactory, another: BundleFactory) -> None:
        """With ids, times, evidence, uses, sources, mentions, associations and people."""
        async with factory() as store, another() as other:
            await rich(store)
            before = await export_records(store)
            assert {type(one) for one in before} == {BundleEntry, Edge, Person}
            assert {one.memory.state for one in entries(before)} == {"active", "superseded", "merged"}
            assert set(await taken(other, before)) == {ImportOutcome.NEW}
            assert await export_records(other) == before
            for key in ("m1", "w1"):
                [id_] = [one.memory.id for one in entries(before) if one.memory.new.key == key]
                assert await other.revisions.history(AUDIT, id_) == await store.revisions.history(AUDIT, id_)
            assert await other.text(AUDIT, "the cat sleeps in Porto", 9) == await store.text(
                AUDIT, "the cat sleeps in Porto", 9
            )

    async def test_taking_it_over_again_changes_nothing(self, factory: BundleFactory, another: BundleFactory) -> None:
        """Nor does taking over a part of it first."""
        async with factory() as store, another() as other:
            await rich(store)
            before = await export_records(store)
            await taken(other, entries(before)[:3])
            await taken(other, before)
            assert set(await taken(other, before)) == {ImportOutcome.SAME}
            assert await export_records(other) == before
            assert set(await taken(store, before)) == {ImportOutcome.SAME}

    async def test_what_is_there_stays(self, factory: BundleFactory) -> None:
        """What says otherwise under its name is a conflict; who else has its id keeps that."""
        async with factory() as store:
            [id_] = await store.keep([said("a", "the sea is calm")], 5)
            [entry] = entries(await export_records(store))
            other = replace(entry.memory.new, text="the sea is rough")
            verdict = await one_of(store, replace(entry, memory=replace(entry.memory, new=other)))
            assert (verdict.outcome, verdict.why) == (ImportOutcome.CONFLICT, "it is here with another text")
            namesake = replace(entry, memory=replace(entry.memory, new=replace(other, key="b")), statements=())
            assert (await one_of(store, namesake)).outcome is ImportOutcome.NEW
            found = {one.new.key: (one.id, one.text) for one in await store.find(AUDIT, (), 9)}
            assert found["a"] == (id_, "the sea is calm")
            assert found["b"][0] != id_

    async def test_what_says_the_same_here_is_named(self, factory: BundleFactory, another: BundleFactory) -> None:
        """By key: in the same words, as evidence, or of the same slot."""
        async with factory() as store, another() as other:
            await store.learn([said("a", "the sea is calm"), lives("l", "Porto", 100)], 5)
            words, slot = entries(await export_records(store))
            renamed = [_renamed(words, "b"), _renamed(slot, "m")]
            await other.learn([said("c", "the sea is calm"), said("b", "the sea is calm")], 5)
            await other.learn([lives("n", "Rome", 50)], 6)
            assert [one.like for one in await other.bundles.look([words, *renamed])] == [("c",), ("c",), ()]
            assert [one.beside for one in await other.bundles.look(renamed)] == [(), ("n",)]

    async def test_a_contested_slot_is_decided_by_all_that_was_said(
        self, factory: BundleFactory, another: BundleFactory
    ) -> None:
        """As if all of it had been learned here."""
        async with factory() as store, another() as other:
            await store.learn([lives("m1", "Porto", 100), lives("m2", "Rome", 300)], 400)
            await other.learn([lives("o1", "Lisbon", 200), lives("o2", "Faro", 400)], 500)
            before = await export_records(store)
            slot = entries(before)[0].slot
            assert slot is not None
            await taken(other, before, [slot])
            found = {one.memory.new.value: one for one in entries(await export_records(other))}
            spans = {value: (one.memory.valid_to, one.replaced_by) for value, one in found.items()}
            assert spans == {"Porto": (200, "o1"), "Lisbon": (300, "m2"), "Rome": (400, "o2"), "Faro": (None, "")}
            assert [value for value, one in found.items() if one.memory.state == "active"] == ["Faro"]

    async def test_what_was_forgotten_does_not_come_back(self, factory: BundleFactory, another: BundleFactory) -> None:
        """By its name, by its words, and by tombstones of another home whose key is taken over first."""
        async with factory() as store, another() as other:
            await store.learn([said("a", "the sea is calm")], 5)
            [entry] = entries(await export_records(store))
            [traced] = await store.forgetful.lineage([entry.memory.id], [])
            await store.forgetful.hide([entry.memory.id], traced.digests, 9)
            await store.forgetful.erase([entry.memory.id])
            for again in (entry, _renamed(entry, "b")):
                verdict = await one_of(store, again)
                assert (verdict.outcome, verdict.why) == (ImportOutcome.REJECTED, "it was forgotten here")
            stones = await export_records(store)
            assert {type(one) for one in stones} == {Tombstone}
            assert await other.bundles.key_print() == ""
            assert await store.bundles.key_print() != ""
            assert set(await taken(other, stones)) == {ImportOutcome.NEW}
            assert await export_records(other) == stones
            assert set(await taken(other, stones)) == {ImportOutcome.SAME}

    async def test_a_key_is_taken_over_where_there_is_none(
        self, factory: BundleFactory, another: BundleFactory
    ) -> None:
        """So that the tombstones of one home hold in another; never in place of one that is there."""
        key = bytes(range(32))
        async with factory() as store, another() as other:
            for one in (store, other):
                assert await one.bundles.adopt_key(key)
                assert await one.bundles.adopt_key(key)
                assert not await one.bundles.adopt_key(key[::-1])
            assert await store.bundles.key_print() == await other.bundles.key_print()
            ids = await store.keep([said("a", "the sea is calm")], 5)
            [entry] = entries(await export_records(store))
            [traced] = await store.forgetful.lineage(ids, [])
            await store.forgetful.hide(ids, traced.digests, 9)
            await taken(other, await export_records(store))
            assert (await one_of(other, entry)).why == "it was forgotten here"

    async def test_an_association_needs_both_ends(self, factory: BundleFactory, another: BundleFactory) -> None:
        """And what took the place of another has to be there, and nothing else in its stead."""
        async with factory() as store, another() as other:
            await store.learn([lives("m1", "Porto", 100), lives("m2", "Rome", 300)], 400)
            before = await export_records(store)
            [edge] = [one for one in before if isinstance(one, Edge)]
            [link] = links(before)
            assert (await one_of(other, edge)).beside == ("m2", "m1")
            await taken(other, entries(before)[:1])
            for record in (edge, link):
                verdict = await one_of(other, record)
                assert (verdict.outcome, verdict.beside) == (ImportOutcome.REJECTED, ("m2",))
            await other.bundles.take(entries(before), (), 900)
            assert (await one_of(other, replace(link, valid_to=299))).outcome is ImportOutcome.CONFLICT
            assert (await one_of(other, replace(link, key="m2", replaced_by="m1"))).outcome is ImportOutcome.CONFLICT
            assert (await one_of(other, link)).outcome is ImportOutcome.NEW
            round_about = replace(link, key="m2", replaced_by="m1", state="active", valid_to=None)
            assert (await one_of(other, round_about)).outcome is ImportOutcome.CONFLICT
            assert (await one_of(other, replace(edge, source="m1"))).outcome is ImportOutcome.REJECTED

    async def test_who_is_who_here_stays(self, factory: BundleFactory, another: BundleFactory) -> None:
        """Persons who are joined with others here are a conflict."""
        async with factory() as store, another() as other:
            await store.people.join((ANN, BEN), OWNER, 5)
            [person] = await export_records(store)
            await other.people.join((BEN, CAT), OWNER, 6)
            assert (await one_of(other, person)).outcome is ImportOutcome.CONFLICT
            await other.people.split(BEN)
            assert (await one_of(other, person)).outcome is ImportOutcome.NEW
            assert await export_records(other) == [person]
            await other.people.join((ANN, CAT), OWNER, 7)
            assert (await one_of(other, person)).outcome is ImportOutcome.CONFLICT

    async def test_a_person_is_told_what_that_person_may_hear(self, factory: BundleFactory) -> None:
        """What is for all, for the person and whom it is joined with, and what was said with it in direct chats."""
        async with factory() as store:
            await store.keep(_scoped_memories(), 5)
            await store.people.join((ANN, CAT), OWNER, 6)
            ids = {one.memory.new.key: one.memory.id for one in entries(await export_records(store))}
            edges = [Association(ids["ann"], ids[name], Relation.RELATED_TO) for name in ("cat", "ben")]
            await store.graph.relate(edges, [], 7)
            await store.forgetful.hide([], [b"digest"], 8)
            ann = await export_records(store, _direct(ANN))
            assert {one.memory.new.key for one in entries(ann)} == {"all", "ann", "cat", "chat", "lane"}
            assert [(one.source, one.target) for one in ann if isinstance(one, Edge)] == [("ann", "cat")]
            assert [len(one.identities) for one in ann if isinstance(one, Person)] == [2]
            assert not any(isinstance(one, Tombstone) for one in ann)
            ben = await export_records(store, _direct(BEN))
            assert {one.memory.new.key for one in entries(ben)} == {"all", "ben"}
            assert not any(isinstance(one, Person) for one in ben)
            both = await export_records(store, _direct(BEN), _direct(CAT))
            assert {one.memory.new.key for one in entries(both)} == {"all", "ann", "ben", "cat", "chat", "lane"}

    async def test_tombstones_are_kept_outside_the_store_until_removed(self, factory: BundleFactory) -> None:
        """Those of a forgetting and those that are added; adding one twice changes nothing."""
        async with factory() as store:
            assert await store.forgetful.kept.read() == frozenset()
            await store.forgetful.hide([], [b"one", b"two"], 8)
            kept = await store.forgetful.kept.read()
            assert kept == frozenset(await store.forgetful.tombstones())
            assert len(kept) == 2
            gone = min(kept)
            await store.forgetful.kept.remove([gone])
            assert await store.forgetful.kept.read() == kept - {gone}
            await store.forgetful.add_tombstones(sorted(kept), 9)
            assert await store.forgetful.kept.read() == kept

    async def test_what_took_its_place_is_told_where_it_is_heard(self, factory: BundleFactory) -> None:
        """Else it is only said until when it held."""
        async with factory() as store:
            await store.learn([lives("m1", "Porto", 100, scope=person_scope(ANN))], 400)
            [old] = entries(await export_records(store))
            await store.keep([said("m2", "secret", scope=person_scope(BEN))], 400)
            successor = next(one for one in entries(await export_records(store)) if one.memory.new.key == "m2")
            link = BundleLink("m1", "m2", old.memory.state, old.memory.valid_to)
            assert (await one_of(store, link)).outcome is ImportOutcome.NEW
            assert successor.memory.new.text == "secret"
            [heard] = entries(await export_records(store, _direct(ANN)))
            assert (heard.memory.new.key, heard.replaced_by) == ("m1", "")


def _direct(person: str) -> Listener:
    return Listener(None, person=person, direct=True, cross=True)


def _renamed(entry: BundleEntry, key: str) -> BundleEntry:
    return replace(entry, memory=replace(entry.memory, new=replace(entry.memory.new, key=key)), statements=())


def _scoped_memories() -> list[NewMemory]:
    """Memories for everybody, for each of three people, of a direct chat and of other rooms."""
    chat = {"speaker_id": ANN, "chat_of": ANN}
    return [
        said("all", "for all of them"),
        *(said(name, f"for {name}", scope=person_scope(who)) for name, who in (("ann", ANN), ("ben", BEN))),
        said("cat", "for cat", scope=person_scope(CAT)),
        episode("chat", "said between us", ANNS, Trust.KNOWN, **chat),
        said("lane", "learned between us", scope=conversation_scope(ANNS), chat_of=ANN),
        episode("hook", "from outside", ANNS, Trust.EXTERNAL, chat_of=ANN),
        episode("room", "said before others", THERE, Trust.KNOWN, speaker_id=ANN),
        said("owner", "for the owner", scope=person_scope(OWNER), kind=Kind.GOAL),
    ]


class LiftedTombstoneContract:
    """What was forgotten, and then asked for again."""

    async def test_what_was_asked_for_again_is_taken_along(
        self, factory: BundleFactory, another: BundleFactory
    ) -> None:
        """It was forgotten before; the tombstones that it has are not."""
        key = bytes(range(32))
        async with factory() as store, another() as other:
            for one in (store, other):
                assert await one.bundles.adopt_key(key)
            ids = await store.keep([said("a", "the sea is calm"), said("b", "the sky is grey")], 5)
            traced = await store.forgetful.lineage(ids, [])
            await store.forgetful.hide(ids, [digest for one in traced for digest in one.digests], 9)
            await store.forgetful.erase(ids)
            await store.keep([replace(said("c", "the sea is calm"), asked=True)], 10)
            exported = await export_records(store)
            assert set(await taken(other, exported)) == {ImportOutcome.NEW}
            assert [one.memory.text for one in entries(await export_records(other))] == ["the sea is calm"]
            assert (await other.keep([said("d", "the sky is grey")], 11)) == (0,)
