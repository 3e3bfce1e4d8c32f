"""The forgetter: what a wish reaches, what stays, and what an older copy of a store brings back."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import apsw
import pytest

from keepsaid.adapters.sqlite.stores import SqliteOperations
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.opening import opened
from keepsaid.app.stores import accept_stores
from keepsaid.config import Config, Home
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import MemoryAction, StageMemory
from keepsaid.domain.forgetting import DropUndo, ForgetSelector, Forgetting
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.maintenance import DAY_MS, LOOSE, Curve
from keepsaid.domain.memory import Kind, Listener, NewMemory, Source, person_scope
from keepsaid.domain.message import Content, Inbound, Lane, Origin, ProviderMarks, Trust
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.task import Task, TaskWork
from keepsaid.domain.timing import Once
from keepsaid.memory.injection import Briefings
from keepsaid.memory.recording import episode_of
from keepsaid.testing.builders import outcome
from keepsaid.testing.clock import VirtualClock
from keepsaid_testkit.contracts.store_driver import StoreDriver

_EVERYTHING = Listener(None, everything=True)
_LOOK_MS = 20.0
_WITHIN_S = 240.0


@asynccontextmanager
async def running(folder: Path, *, briefed: bool = True) -> AsyncIterator[Instance]:
    """A runtime without a model; not `briefed` it makes no bulletins, whose moment no test knows."""
    async with opened(Home.at(folder), Config.model_validate({"bulletin": {"enabled": briefed}})) as instance:
        await instance.start()
        yield instance


@pytest.fixture
async def instance(tmp_path: Path) -> AsyncIterator[Instance]:
    """A runtime without a model, on a new home."""
    async with running(tmp_path / "home") as opened_home:
        yield opened_home


@pytest.fixture
async def unbriefed(tmp_path: Path) -> AsyncIterator[Instance]:
    """The same, without bulletins."""
    async with running(tmp_path / "home", briefed=False) as opened_home:
        yield opened_home


async def say(instance: Instance, text: str, room: str = "desk", name: str | None = None) -> int:
    """Say something, and wait until it is remembered."""
    origin = Origin("terminal", "me", room, "ann", "Ann", direct=True, trust=Trust.OWNER)
    received = await instance.receive(Inbound(origin, Content(text.encode(), text), ProviderMarks(external_id=name)))
    async with asyncio.timeout(_WITHIN_S):
        while f"message:{received.id}" not in await keys(instance):
            await instance.clock.wait(asyncio.Event(), _LOOK_MS)
    return received.id


async def keys(instance: Instance) -> set[str]:
    """The names of what is remembered."""
    return {one.new.key for one in await instance.memories.find(_EVERYTHING, (), 100)}


async def texts(instance: Instance) -> set[str]:
    """What is remembered."""
    return {one.text for one in await instance.memories.find(_EVERYTHING, (), 100)}


def fact_of(text: str, *messages: int, key: str = "fact") -> NewMemory:
    """A fact that was made of messages."""
    sources = tuple(Source("message", str(one)) for one in messages)
    return NewMemory(key, Kind.FACT, text, person_scope("owner"), Trust.OWNER, sources=sources, derived=True)


async def learnt(instance: Instance, text: str, *messages: int, key: str = "fact") -> int:
    """Keep a fact that was made of messages; its number."""
    return (await instance.memories.keep([fact_of(text, *messages, key=key)], 5))[0]


async def forgotten(instance: Instance, wish: ForgetSelector) -> Forgetting:
    """Forget, and wait until it is done."""
    begun = await instance.services.forgetting.forget_selected(wish, "owner")
    assert begun is not None
    assert await instance.forgetter.settled(_WITHIN_S * 1_000)
    found = await instance.operations.forgettings.one(begun.id)
    assert found is not None
    assert found.state == "done"
    return found


async def test_what_was_learnt_from_it_goes_and_what_stands_by_itself_stays(instance: Instance) -> None:
    lisbon, again = await say(instance, "I live in Lisbon now"), await say(instance, "as I said, I live in Lisbon")
    await say(instance, "the dentist is in Braga")
    await learnt(instance, "Ann lives in Lisbon", lisbon, again)
    await learnt(instance, "Ann moved lately", lisbon, key="moved")
    await forgotten(instance, ForgetSelector(messages=(lisbon,)))
    stays = await instance.memories.find(_EVERYTHING, tuple(set(Kind) - {Kind.BULLETIN}), 100)
    assert {one.text for one in stays} == {
        *("as I said, I live in Lisbon", "the dentist is in Braga", "Ann lives in Lisbon")
    }
    # a turn may have had a bulletin made meanwhile: of what stays alone
    assert not any("moved" in text for text in await texts(instance))


async def test_a_bulletin_goes_with_a_fact_whose_words_stay(instance: Instance) -> None:
    first, _ = await say(instance, "my code is 7741"), await say(instance, "what is 7741 good for, Ann's code?")
    fact = await learnt(instance, "Ann's code is 7741", first)
    assert instance.briefings is not None
    await instance.briefings.refresh(person_scope("owner"))
    await forgotten(instance, ForgetSelector(memories=(fact,)))
    assert not any("Ann's code is 7741" in text for text in await texts(instance))


async def test_a_fact_goes_with_what_was_said_where_it_comes_from(unbriefed: Instance) -> None:
    instance = unbriefed
    first = await say(instance, "my code is 7741")
    await say(instance, "the dentist is in Braga")
    fact = await learnt(instance, "Ann's code is 7741", first)
    done = await forgotten(instance, ForgetSelector(memories=(fact,)))
    assert await texts(instance) == {"the dentist is in Braga"}
    story = await instance.operations.story(first)
    assert story is not None
    assert story.message.text == ""
    assert (dict(done.counts)["memories"], dict(done.counts)["messages"]) == (3, 1)
    assert await learnt(instance, "Ann's code is 7741", first, key="other") == 0, "it is not learned again"


async def test_what_its_turn_had_done_goes_with_it_and_what_another_had_done_stays(instance: Instance) -> None:
    works = []
    for number, text in enumerate(("what was my code", "rain in Braga, will there be any"), 70):
        story = await instance.operations.story(await say(instance, text))
        assert story is not None
        assert story.turn_id is not None
        asked = Task(number, "", "completed", "look it up", turn_id=story.turn_id, lane=story.message.lane, result="42")
        works.append(episode_of(TaskWork(asked)))
    await instance.memories.keep(works, 5)
    assert {"task:70", "task:71"} <= await keys(instance)
    await forgotten(instance, ForgetSelector(text="code"))
    assert {"task:70", "task:71"} & await keys(instance) == {"task:71"}


async def test_a_bulletin_that_tells_it_goes_and_is_made_anew_without(unbriefed: Instance) -> None:
    instance = unbriefed
    briefings = Briefings(instance.memories.bulletins, instance.clock)
    first = await say(instance, "my code is 7741")
    facts = fact_of("Ann's code is 7741", first), fact_of("the dentist is in Braga", key="dentist")
    fact, _ = await instance.memories.keep(facts, 5)
    await briefings.refresh(person_scope("owner"))
    assert any("7741" in text and "Braga" in text for text in await texts(instance))
    await forgotten(instance, ForgetSelector(memories=(fact,)))
    assert not any("7741" in text for text in await texts(instance))
    await briefings.refresh(person_scope("owner"))
    [told] = await instance.memories.find(_EVERYTHING, (Kind.BULLETIN,), 9)
    assert told.text.startswith("Important:\n- the dentist is in Braga")


async def test_the_same_value_is_not_learned_in_other_words(instance: Instance) -> None:
    fact = NewMemory("a", Kind.FACT, "Ann's code is 7741", "global", Trust.OWNER, subject="ann", attribute="code")
    [number] = await instance.memories.keep([replace(fact, value="7741")], 5)
    await forgotten(instance, ForgetSelector(memories=(number,)))
    again = [replace(fact, key="b", text="7741 opens her door", value="7741"), replace(fact, key="c")]
    assert await instance.memories.keep(again, 6) == (0, 0)
    other = replace(fact, key="d", text="Ann's code is 1234", value="1234")
    assert (await instance.memories.keep([other], 6))[0] > 0


async def test_a_person_a_conversation_and_a_text_are_forgotten_whole(instance: Instance) -> None:
    await say(instance, "about whales", "sea")
    await say(instance, "about Sharks", "sea")
    await say(instance, "about ants", "land")
    await forgotten(instance, ForgetSelector(text="sharks"))
    assert await texts(instance) == {"about whales", "about ants"}
    await forgotten(instance, ForgetSelector(conversation="sea"))
    assert await texts(instance) == {"about ants"}
    await forgotten(instance, ForgetSelector(person="owner"))
    assert await texts(instance) == set()
    assert await instance.services.forgetting.forget_selected(ForgetSelector(person="owner"), "owner") is None


async def test_a_person_goes_with_all_identities_that_are_joined(instance: Instance) -> None:
    for channel, sender, text in (("telegram", "7", "whales"), ("http", "me", "ants"), ("http", "x", "bees")):
        memory = NewMemory(f"m{sender}", Kind.FACT, text, "global", Trust.KNOWN, speaker_id=f"{channel}:a:{sender}")
        await instance.memories.keep([memory], 5)
    joined = await instance.memories.people.join(["telegram:a:7", "http:a:me"], "owner", 6)
    assert joined is not None
    for person in ("http:a:me", "telegram:a:7", joined.id):
        assert len((await instance.forgetter.find_targets(ForgetSelector(person=person))).memories) == 2
    await forgotten(instance, ForgetSelector(person="http:a:me"))
    assert await texts(instance) == {"bees"}


async def test_a_staged_memory_leaves_no_byte(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with opened(Home.at(home), Config()) as instance:
        origin = Origin("terminal", "me", "desk", "ann", "Ann", direct=True, trust=Trust.OWNER)
        store = instance.operations
        assert isinstance(store, SqliteOperations)
        road = StoreDriver(store)
        await road.queue(Inbound(origin, Content(b"keep it", "keep it")))
        claimed = await road.claim_one()
        deed = StageMemory(0, MemoryAction.SAVE, text="the code is zebraquix7741")
        end = replace(outcome(), effects=(deed,))
        await store.apply(TurnCommit(claimed.turn_id, claimed.batch.id, claimed.batch.fence, end, None, 7))
        assert residue(home, b"zebraquix7741")
        done = await instance.services.forgetting.forget_selected(
            ForgetSelector(messages=(claimed.messages[0].id,)), "owner"
        )
        assert done is not None
        assert (done.state, dict(done.counts)["staged"]) == ("done", 1)
        assert not residue(home, b"zebraquix7741")


async def test_an_older_copy_of_memory_forgets_again_at_the_start(tmp_path: Path) -> None:
    home = tmp_path / "home"
    async with running(home) as instance:
        kept = await say(instance, "the dentist is in Braga")
        gone = await say(instance, "my code is zebraquix")
        assert kept
        target = Target(Lane("terminal", "me", "desk", "root:terminal"))
        said = NewSchedule(0, "command", "", Once(2**42), What.SAY, "zebraquix opens the door", target)
        scheduled = await instance.services.schedules.add(said)
    shutil.copytree(home / "data", tmp_path / "old")
    async with running(home) as instance:
        await forgotten(instance, ForgetSelector(messages=(gone,), text="zebraquix"))
    for name in ("memory.db", "buffer.db"):
        shutil.copy(tmp_path / "old" / name, home / "data" / name)
        accept_stores(Home.at(home), Config())
        async with running(home) as instance:
            async with asyncio.timeout(_WITHIN_S):
                while await instance.operations.forgettings.unfinished():
                    await instance.clock.wait(asyncio.Event(), _LOOK_MS)
            assert await texts(instance) == {"the dentist is in Braga"}
            assert (await instance.operations.forgettings.newest(1))[0].how == "restored"
            again = await instance.operations.schedules.schedule(scheduled.id)
            assert again is not None
            assert (again.new.text, again.state) == ("", "cancelled")
        assert all(b"zebraquix" not in file.read_bytes() for file in (home / "data").iterdir())


async def test_what_is_undone_is_remembered_as_it_was(instance: Instance) -> None:
    first = await say(instance, "my code is 7741")
    facts = [
        NewMemory(
            "a", Kind.FACT, "Ann's code is 7741", "global", Trust.OWNER, subject="ann", attribute="code", value="7741"
        ),
        NewMemory("b", Kind.FACT, "the code of Ann is seven", "global", Trust.OWNER, sources=(Source("message", "1"),)),
    ]
    ids = await instance.memories.keep(facts, 5)
    await instance.memories.graph.relate(
        [Association(ids[0], ids[1], Relation.RELATED_TO)], [Mention(ids[0], "ann", "Ann")], 6
    )
    before = await instance.memories.find(_EVERYTHING, (), 100)
    begun = await instance.services.forgetting.forget_selected(
        ForgetSelector(memories=ids, messages=(first,)), "owner", DAY_MS
    )
    assert begun is not None
    assert await texts(instance) == set()
    assert await instance.forgetter.settled(_WITHIN_S * 1_000)
    assert await instance.memories.keep(facts, 7) == (0, 0), "until then it is not learned again"
    undone = await instance.forgetter.undo(begun.id)
    assert undone is not None
    assert (undone.state, undone.undo_until) == ("undone", None)
    assert await instance.memories.find(_EVERYTHING, (), 100) == before
    hits = (await instance.recall.recall(_EVERYTHING, "code 7741", 9)).hits
    assert {hit.memory.id for hit in hits} >= {ids[0]}
    audit = await instance.memories.upkeep.outstanding(instance.clock.now_ms(), Curve(), None)
    assert {task: audit.found[task] for task in LOOSE} == dict.fromkeys(LOOSE, 0)
    assert (await instance.memories.upkeep.holdings()).counts["associations"] == 1
    story = await instance.operations.story(first)
    assert story is not None
    assert story.message.text == "my code is 7741"
    assert await instance.forgetter.undo(begun.id) is None, "once"
    await forgotten(instance, ForgetSelector(memories=ids, messages=(first,)))
    assert await texts(instance) == set()


async def test_what_was_not_undone_in_time_is_gone_for_good(tmp_path: Path) -> None:
    home = tmp_path / "home"
    clock = VirtualClock(1_795_132_800_000)
    async with opened(Home.at(home), Config(), outside=Outside(clock=clock)) as instance:
        [kept] = await instance.memories.keep([NewMemory("a", Kind.FACT, "zebraquix7741", "global", Trust.OWNER)], 5)
        begun = await instance.services.forgetting.forget_selected(
            ForgetSelector(memories=(kept,)), "owner", 30 * DAY_MS
        )
        assert begun is not None
        assert (begun.state, begun.undo_until) == ("done", clock.now_ms() + 30 * DAY_MS)
        with closing(apsw.Connection(str(home / "data" / "memory.db"))) as db:
            images = [bytes(row[0])[-24:] for row in db.execute("SELECT images FROM memory_aside")]
        assert images
        assert all(residue(home, one) for one in images)
        assert not residue(home, b"zebraquix7741")
        due = await instance.forgetter.work()
        assert due == begun.undo_until
        await clock.advance(30 * DAY_MS)
        assert await instance.forgetter.undo(begun.id) is None
        assert await instance.forgetter.work() is None
        assert not any(residue(home, one) for one in images)
        after = await instance.operations.forgettings.one(begun.id)
        assert after is not None
        assert (after.state, after.undo_until) == ("done", None)


async def test_what_a_crash_left_in_the_log_goes_at_the_next_start(tmp_path: Path) -> None:
    home, clock, begun = tmp_path / "home", VirtualClock(1_795_132_800_000), 0
    async with opened(Home.at(home), Config(), outside=Outside(clock=clock)) as instance:
        [kept] = await instance.memories.keep([NewMemory("a", Kind.FACT, "zebraquix7741", "global", Trust.OWNER)], 5)
        asked = await instance.services.forgetting.forget_selected(ForgetSelector(memories=(kept,)), "owner", DAY_MS)
        assert asked is not None
        begun = asked.id
        with closing(apsw.Connection(str(home / "data" / "memory.db"))) as db:
            images = [bytes(row[0])[-24:] for row in db.execute("SELECT images FROM memory_aside")]
        await clock.advance(DAY_MS)
        await instance.memories.undo_log.drop(begun)
        await instance.operations.apply(DropUndo(begun))  # here the process dies
        assert any(residue(home, one) for one in images)
        assert await instance.forgetter.work() is None
        assert not any(residue(home, one) for one in images)
        after = await instance.operations.forgettings.one(begun)
        assert after is not None
        assert after.undo_until is None


def residue(home: Path, word: bytes) -> list[str]:
    """The files of the stores that hold this."""
    return [file.name for file in home.rglob("*.db*") if word in file.read_bytes()]
