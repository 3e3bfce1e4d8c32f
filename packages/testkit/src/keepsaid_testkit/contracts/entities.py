"""The contract of entities: what memories mention by name is one entity, and what others mention is not visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import Protocol

from keepsaid.domain.forgetting import Counts
from keepsaid.domain.memory import OWNER, About, Kind, Listener, NewMemory, Source, person_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.ports.memory_maintenance import ForgetfulMemory
from keepsaid.ports.memory_store import Entities, Graph, Learning
from keepsaid_testkit.contracts.memories import AUDIT, SearchableStore, episode, sample

ANN, BEN = "chat:bot:ann", "chat:bot:ben"
ROOM, ANNS, BENS = (Lane("chat", "bot", name, f"root:{name}") for name in ("room", "dm-ann", "dm-ben"))
HERE_ANN, HERE_BEN = Listener(ANNS, ANN, direct=True), Listener(BENS, BEN, direct=True)


class EntityStore(SearchableStore, Learning, Protocol):
    """A memory store that knows whom and what its memories mention."""

    @property
    def entities(self) -> Entities:
        """Whom and what the memories mention."""
        ...

    @property
    def graph(self) -> Graph:
        """What memories have to do with one another."""
        ...

    @property
    def forgetful(self) -> ForgetfulMemory:
        """Forgetting."""
        ...


EntityFactory = Callable[[], AbstractAsyncContextManager[EntityStore]]


def said(key: str, text: str, person: str = ANN, lane: Lane = ANNS) -> NewMemory:
    """A message of a person in their direct chat, or in the room."""
    scope = {} if lane is ROOM else {"scope": person_scope(person)}
    name = person.rpartition(":")[2].capitalize()
    return episode(key, text, lane, Trust.KNOWN, speaker=name, speaker_id=person, **scope)


def fact(key: str, text: str, slot: tuple[str, str, str], person: str = ANN) -> NewMemory:
    """A fact that a person stated in their direct chat; it is about them if its subject has their name."""
    name = person.rpartition(":")[2].capitalize()
    subject, attribute, value = slot
    about = {
        "subject": subject,
        "subject_id": person if subject == name else "",
        "attribute": attribute,
        "value": value,
    }
    of = {"speaker": name, "speaker_id": person, "scope": person_scope(person), "sources": (Source("message", key),)}
    return sample(key, text, trust=Trust.KNOWN, **of, **about)


async def listed(store: EntityStore, listener: Listener = AUDIT, kind: str = "") -> dict[str, int]:
    """The keys of entities, each with the number of memories that mention it."""
    return {one.key: one.memories for one in await store.entities.listed(listener, kind, 99)}


async def mentioning(store: EntityStore, *entities: str, listener: Listener = AUDIT) -> Sequence[int]:
    """The messages that mention one of the entities, the newest first."""
    return await store.entities.mentioning(listener, entities, 9, said=True)


class EntityContract:
    """Names in texts and facts become mentions of entities, in the commit that writes the memory."""

    async def test_a_name_in_two_messages_is_one_entity(self, factory: EntityFactory) -> None:
        """However it is written; a word that a sentence begins with is none, until it is known as one."""
        async with factory() as store:
            first, _, third = await store.keep(
                [
                    said("1", "We met in Porto, and then went to see New York."),
                    said("2", "Yesterday was long. Boats are slow."),
                    said("3", "Porto’s harbour is old"),
                ],
                5,
            )
            assert await listed(store) == {"thing:porto": 2, "thing:new york": 1}
            assert sorted(await mentioning(store, "thing:porto")) == sorted([first, third])

    async def test_a_fact_says_what_an_entity_is(self, factory: EntityFactory) -> None:
        """The thing that a text mentions becomes the place that a fact names; the person is who stated it."""
        async with factory() as store:
            await store.keep([said("1", "The train to Porto is late")], 5)
            await store.learn([fact("2", "Ann: I live in Porto", ("Ann", "lives in", "Porto"))], 6)
            await store.learn([fact("3", "Ann: my wife is called Cleo", ("Ann", "wife", "Cleo"))], 7)
            await store.learn([fact("4", "Ann: I work at Acme", ("Ann", "works at", "Acme"))], 8)
            assert await listed(store) == {
                f"person:{ANN}": 3,
                "place:porto": 2,
                "person:cleo": 1,
                "organisation:acme": 1,
            }
            assert await listed(store, kind="place") == {"place:porto": 2}
            [found] = await store.entities.found(AUDIT, "Porto")
            assert (found.kind, found.names, found.identity) == ("place", ("Porto",), "")
            assert (await store.entities.found(AUDIT, f"person:{ANN}"))[0].identity == ANN
            together = await store.entities.together(AUDIT, ["place:porto"], 9)
            assert [one.entity for one in together] == [f"person:{ANN}"]

    async def test_a_thing_of_the_same_commit_becomes_what_a_fact_says(self, factory: EntityFactory) -> None:
        """In whichever scope it is mentioned."""
        async with factory() as store:
            messages = [said("1", "The train to Porto is late"), said("2", "I dream of Porto", BEN, BENS)]
            lives = fact("3", "Ann: I live in Porto", ("Ann", "lives in", "Porto"))
            await store.keep([*messages, lives, said("4", "Back in Porto", BEN, BENS)], 5)
            assert await listed(store) == {"place:porto": 4, f"person:{ANN}": 1}

    async def test_a_name_means_who_speaks_there(self, factory: EntityFactory) -> None:
        """And elsewhere another person of that name."""
        async with factory() as store:
            await store.keep([said("1", "hello all", ANN, ROOM), said("2", "I asked Ann about it", BEN, ROOM)], 5)
            await store.learn([fact("3", "Ben: my sister is called Ann", ("Ben", "sister name", "Ann"), BEN)], 6)
            assert await listed(store) == {f"person:{ANN}": 1, f"person:{BEN}": 1, "person:ann": 1}

    async def test_a_speaker_without_a_name_stops_nothing(self, factory: EntityFactory) -> None:
        """A display name may be a space."""
        async with factory() as store:
            nameless = replace(said("1", "We met in Porto", ANN, ROOM), speaker=" ")
            await store.keep([nameless, said("2", "Porto is old", BEN, ROOM)], 5)
            assert (await listed(store))["thing:porto"] == 2

    async def test_a_first_name_means_the_one_person_who_has_it(self, factory: EntityFactory) -> None:
        """Where two have it, it is a name of its own."""
        async with factory() as store:
            await store.learn([fact("1", "Ann: my wife is called Cleo Marsh", ("Ann", "wife", "Cleo Marsh"))], 5)
            await store.keep([said("2", "I saw Cleo today"), said("3", "I saw Cleo today", BEN, BENS)], 6)
            assert await listed(store, kind="person") == {"person:cleo marsh": 2, f"person:{ANN}": 1}
            await store.learn([fact("4", "Ann: my friend is called Cleo Abbot", ("Ann", "friend", "Cleo Abbot"))], 7)
            await store.keep([said("5", "Then Cleo laughed")], 8)
            assert (await listed(store))["person:cleo marsh"] == 2

    async def test_nobody_hears_of_what_others_mention(self, factory: EntityFactory) -> None:
        """Neither that it is there, nor its name."""
        async with factory() as store:
            await store.keep([said("1", "We met in Porto"), said("2", "We met in Faro", BEN, BENS)], 5)
            assert await listed(store, HERE_ANN) == {"thing:porto": 1}
            assert await listed(store, HERE_BEN) == {"thing:faro": 1}
            for name in ("Porto", "thing:porto"):
                assert await store.entities.found(HERE_BEN, name) == []
            assert await mentioning(store, "thing:porto", listener=HERE_BEN) == []
            assert await store.entities.together(HERE_BEN, ["thing:porto"], 9) == []

    async def test_what_the_model_named_counts_too(self, factory: EntityFactory) -> None:
        """Also in a text without capitals, and for what is learned again."""
        async with factory() as store:
            told = fact("1", "ann rents from the old mill", ("", "", ""))
            about = (About("organisation", "old mill"), About("person", "Ann"))
            told = replace(told, about=about)
            for _ in range(2):
                await store.learn([told], 5)
                assert await listed(store) == {"organisation:old mill": 1, "person:ann": 1}

    async def test_merged_entities_are_one(self, factory: EntityFactory) -> None:
        """Later mentions by the other name count for it; what is gone or the same is not merged."""
        async with factory() as store:
            await store.keep(
                [said("1", "We met in Porto"), said("2", "We say Oporto too"), said("3", "Is Porto also Oporto")], 5
            )
            assert await store.entities.merge("thing:porto", "thing:oporto") == 2
            assert await listed(store) == {"thing:porto": 3}
            assert await store.entities.merge("thing:porto", "thing:oporto") == 0
            assert await store.entities.merge("thing:porto", "thing:porto") == 0
            await store.keep([said("4", "Back to Oporto")], 6)
            [found] = await store.entities.found(AUDIT, "Oporto")
            assert (found.key, found.memories) == ("thing:porto", 4)

    async def test_what_is_forgotten_is_mentioned_no_more(self, factory: EntityFactory) -> None:
        """The entity goes with the last memory that mentions it."""
        async with factory() as store:
            ids = await store.keep([said("1", "We met in Porto"), said("2", "Porto again, and Faro")], 5)
            expected: Counts = (("memories", 1), ("sources", 0), ("entities", 1))
            done = dict(await store.forgetful.hide(ids[1:], [], 6))
            assert done.get("entities") == dict(expected)["entities"]
            assert await listed(store) == {"thing:porto": 1}
            await store.forgetful.hide(ids[:1], [], 7)
            assert await listed(store) == {}
            assert await store.entities.found(AUDIT, "Porto") == []

    async def test_a_question_that_names_an_entity_walks_to_its_facts(self, factory: EntityFactory) -> None:
        """The graph finds what is known of a person whom only the other name in the question tells."""
        async with factory() as store:
            [result] = await store.learn([fact("1", "Ann: my wife is called Cleo", ("Ann", "wife", "Cleo"))], 5)
            walked = await store.graph.walk(HERE_ANN, "what would Cleo like?", [], 9)
            assert [one.memory_id for one in walked] == [result.memory_id]
            assert await store.graph.walk(HERE_BEN, "what would Cleo like?", [], 9) == ()

    async def test_the_owner_is_a_person(self, factory: EntityFactory) -> None:
        """Under the name that the owner has in each memory."""
        async with factory() as store:
            slot = {"subject": "owner", "subject_id": OWNER, "attribute": "likes", "value": "tea"}
            await store.keep([sample("1", "owner: I like tea", kind=Kind.PREFERENCE, **slot)], 5)
            [found] = await store.entities.listed(AUDIT, "person", 9)
            assert (found.key, found.identity, found.names) == ("person:owner", OWNER, ("owner",))
