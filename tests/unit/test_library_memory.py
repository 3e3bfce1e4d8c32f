"""Memory as a library: recorded once, recalled where it may be heard."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path

import apsw
import pytest
from tests.waits import HANG_S

from keepsaid import Episode, HomeError, InputError, Keepsaid, Message, StoreError

LANTERN = Episode("The brass lantern hangs in the boathouse.", "Ann", "harbour", 1_000)


@pytest.fixture
async def ks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Keepsaid]:
    for name in [name for name in os.environ if name.upper().startswith("KEEPSAID_")]:
        monkeypatch.delenv(name)
    async with Keepsaid.open(tmp_path, settings={"models": {"chat": "none"}, "buffer": {"window_ms": 0}}) as opened:
        yield opened


async def test_recording_again_changes_nothing(ks: Keepsaid) -> None:
    named = Episode("The ladder is in the mill.", "Ben", "harbour", 2_000, external_id="e-1")
    first = await ks.memory.record([LANTERN, named])
    assert await ks.memory.record([named, LANTERN]) == (first[1], first[0])
    changed = Episode("The ladder is nowhere.", "Ben", "harbour", 3_000, external_id="e-1")
    assert await ks.memory.record([changed]) == (first[1],)
    assert len(await ks.memory.recall("lantern ladder")) == 2


async def test_other_speakers_times_kinds_and_places_are_other_memories(ks: Keepsaid) -> None:
    text = LANTERN.text
    others = [
        Episode(text, "Ben", "harbour", 1_000),
        Episode(text, "Ann", "harbour", 1_001),
        Episode(text, "Ann", "attic", 1_000),
        Episode(text, "Ann", "harbour", 1_000, kind="fact"),
        Episode(text, "Ann", "harbour", 1_000, external_id="e-1"),
        Episode(text, "Ann", "attic", 1_000, external_id="e-1"),
    ]
    assert len(set(await ks.memory.record([LANTERN, *others]))) == 7


async def test_recall_gives_the_best_first_as_it_was_recorded(ks: Keepsaid) -> None:
    named = Episode("Lantern, lantern, lantern!", "Ben", "harbour", 2_000, kind="fact", external_id="e-1")
    ids = await ks.memory.record([named, LANTERN, Episode("The cat sleeps.", "Ann", "harbour", 3_000)])
    found = await ks.memory.recall("Where is the lantern?")
    assert [one.rank for one in found] == [1, 2, 3]
    assert [one.id for one in found] == list(ids), "what was said beside it comes last"
    best = found[0]
    assert (best.id, best.text, best.kind, best.speaker) == (ids[0], "Lantern, lantern, lantern!", "fact", "Ben")
    assert (best.said_at, best.conversation, best.external_id, best.rank) == (2_000, "harbour", "e-1", 1)
    assert (best.state, best.pinned, best.held_until, best.said.timestamp()) == ("active", False, None, 2.0)
    assert [one.rank for one in await ks.memory.recall("lantern", limit=1)] == [1]


async def test_recall_keeps_to_the_conversation_it_is_asked_for(ks: Keepsaid) -> None:
    await ks.memory.record([LANTERN, Episode("The lantern is in the attic.", "Ben", "attic", 2_000, lane="topic:1")])
    everywhere, harbour, nowhere = [
        [one.conversation for one in await ks.memory.recall("lantern", conversation=place)]
        for place in (None, "harbour", "cellar")
    ]
    assert (sorted(everywhere), harbour, nowhere) == (["attic", "harbour"], ["harbour"], [])


@pytest.mark.parametrize("query", ["", " ", "\0", "\ud800", '"', "AND OR NOT", "* ^ ( ) : -", "🕯️", "x" * 100_000])
async def test_any_query_is_answered(ks: Keepsaid, query: str) -> None:
    await ks.memory.record([LANTERN])
    assert await ks.memory.recall(query) == ()
    assert await ks.memory.recall("lantern", limit=0) == ()


@pytest.mark.parametrize(
    ("episode", "what"),
    [
        (Episode(" ", "Ann", "harbour", 1), "episode 1 needs a text"),
        (Episode("hello", "Ann", "", 1), "episode 1 needs a text and a conversation"),
        (Episode("hello", "Ann", "harbour", 1, kind="rumour"), "episode 1: there is no kind 'rumour'; one of: episode"),
        (Episode("hello", "Ann", "harbour", 1, kind="bulletin"), "episode 1: there is no kind 'bulletin'"),
        (Episode("hello", "Ann", "harbour", 10**15), "episode 1: said_at must be milliseconds UTC"),
        (Episode("hello", "Ann", "harbour", -(10**15)), "episode 1: said_at must be"),
        (Episode("hello", "Ann", "harbour", 10**30), "episode 1: said_at must be"),
        (Episode("hello", "Ann", "harbour", 1.5), "episode 1: said_at must be"),  # type: ignore[arg-type]
        (Episode("hello", "Ann", "harbour", True), "episode 1: said_at must be"),
    ],
)
async def test_an_episode_that_cannot_be_taken_is_named_and_none_is_kept(
    ks: Keepsaid, episode: Episode, what: str
) -> None:
    with pytest.raises(InputError, match=what):
        await ks.memory.record([LANTERN, episode])
    assert await ks.memory.recall("lantern") == ()


async def test_any_limit_is_answered(ks: Keepsaid) -> None:
    await ks.memory.record([LANTERN])
    found = [len(await ks.memory.recall("lantern", limit=limit)) for limit in (-(2**70), -1, 0, 1, 2**63, 2**70)]
    assert found == [0, 0, 0, 1, 1, 1]


async def test_a_memory_that_cannot_answer_is_no_empty_memory(ks: Keepsaid, tmp_path: Path) -> None:
    await ks.memory.record([LANTERN])
    db = apsw.Connection(str(tmp_path / "data" / "memory.db"))
    db.set_busy_timeout(10_000)  # what was just kept may be being embedded
    db.execute("ALTER TABLE memory_piece RENAME TO elsewhere")
    db.close()
    with pytest.raises(StoreError, match="memory could not answer: text: ") as caught:
        await ks.memory.recall("lantern")
    assert "no embedder" in caught.value.what
    assert caught.value.safe == "Nothing was changed."


async def test_nothing_to_record_is_nothing(ks: Keepsaid) -> None:
    assert await ks.memory.record([]) == ()


async def test_what_was_said_in_the_inbox_comes_to_mind(ks: Keepsaid) -> None:
    await ks.inbox.put(Message("The spyglass is in the tram depot.", "ann", "harbour"))
    async with asyncio.timeout(HANG_S), aclosing(ks.inbox.batches("test")) as batches:
        await (await anext(batches)).done("I will remember the spyglass.")
    async with asyncio.timeout(HANG_S):
        while len(found := await ks.memory.recall("spyglass", conversation="harbour")) < 2:
            pass
    assert {one.speaker for one in found} == {"ann", "assistant"}
    assert {one.conversation for one in found} == {"harbour"}


async def test_memory_leaves_one_home_and_enters_another(ks: Keepsaid, tmp_path: Path) -> None:
    await ks.memory.record([LANTERN])
    file = tmp_path / "all.jsonl"
    done = await ks.memory.export(file)
    assert (done["counts"]["memories"], done["file"]) == (1, str(file))
    again = await ks.memory.import_from(file, dry_run=True)
    assert (again["dry_run"], again["counts"]["memories"]["same"]) == (True, 1)
    assert (await ks.memory.import_from(file))["counts"]["memories"]["same"] == 1
    other = tmp_path / "mem0.json"
    other.write_text('[{"id": "a", "memory": "The oars are in the attic", "user_id": "ann"}]', "utf-8")
    told = await ks.memory.import_from(other, "mem0", {"ann": "owner"}, trust="owner")
    assert told["counts"]["memories"]["new"] == 1
    for wrong in ({"source": "notes"}, {"trust": "root"}, {"persons": {"ann": "bob"}}):
        with pytest.raises(InputError):
            await ks.memory.import_from(other, **wrong)
    with pytest.raises(HomeError, match="exists already"):
        await ks.memory.export(file, "markdown")
    await ks.memory.export(file, "markdown", force=True)
    assert "The oars are in the attic" in file.read_text("utf-8")
