"""The library beside a running instance: what it asks that instance for, and what it refuses by name."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.acceptance.program import Program
from tests.waits import HANG_S

from keepsaid import BlockingKeepsaid, Episode, HomeBusy, InputError, Keepsaid, KeyConflict, Message
from keepsaid.errors import HomeError, LeaseLost
from keepsaid.interfaces.sdk.memory import MemoryClient

SETTINGS = {"server": {"port": 0}, "buffer": {"window_ms": 0}}


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """A home without a model."""
    here = Program(tmp_path, {"KEEPSAID_MODELS__CHAT": "none"})
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.yaml").write_text(json.dumps(SETTINGS), "utf-8")
    return here


async def test_beside_a_running_instance_it_asks_that(program: Program) -> None:
    """Messages, answers, the status, turns and memory of agents; what was put before counts, and comes back after."""
    cat = Message("My cat is called Miso.", "ann", "kitchen", external_id="1", direct=True)
    async with Keepsaid.open(program.home) as ks:
        first = await ks.inbox.put(cat)
        await ks.agent("ann").save("The ladder stands behind the greenhouse")
    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            again = await ks.inbox.put(cat)
            assert (again.id, again.duplicate) == (first.id, True)
            with pytest.raises(KeyConflict):
                await ks.inbox.put(Message("My cat is called Tofu.", "ann", "kitchen", external_id="1", direct=True))
            reply = await ks.ask(Message("Where is the ladder?", "ann", "kitchen", direct=True))
            assert reply.state == "done"
            assert (await ks.why(reply.turn))["id"] == reply.turn
            assert (await ks.status())["messages"] >= 2
            found = await ks.agent("ann").recall("where is the ladder?")
            assert [hit["memory"]["text"] for hit in found["hits"]][:1] == ["The ladder stands behind the greenhouse"]
            assert (await ks.agent("bob").recall("where is the ladder?"))["hits"] == []


WORKERS = {**SETTINGS, "turns": {"answered_by": "workers"}, "memory": {"embedder": "none"}}


@pytest.fixture
def workers(program: Program) -> Program:
    """A home whose instance leaves batches to workers."""
    program.configure(json.dumps(WORKERS))
    return program


async def test_batches_are_leased_from_the_running_instance_and_answered_once(workers: Program) -> None:
    with workers.serving():
        async with Keepsaid.open(workers.home) as ks, asyncio.timeout(HANG_S):
            said = Message("Is the kettle on?", "ann", "kitchen", external_id="1", provider_id="p1", direct=True)
            asking = asyncio.create_task(ks.ask(said))
            async with aclosing(ks.inbox.batches("the test")) as batches:
                batch = await anext(batches)
                assert (batch.conversation, batch.messages) == ("kitchen", (said,))
                await batch.done("It is.")
                await batch.done("It is not.")
                with pytest.raises(StopAsyncIteration):
                    await anext(ks.inbox.batches("the test", idle_s=0.0))
            reply = await asking
            assert (reply.text, reply.turn) == ("It is.", batch.turn)
            found = await ks.agent("ann").inbox.pull()
            assert found == {"batches": []}


async def test_a_batch_that_is_left_goes_back_uncharged_and_one_that_fails_is_charged(workers: Program) -> None:
    with workers.serving():
        async with Keepsaid.open(workers.home) as ks, asyncio.timeout(HANG_S):
            await ks.inbox.put(Message("Is the kettle on?", "ann", "kitchen", direct=True))
            async with aclosing(ks.inbox.batches("one")) as batches:
                left = await anext(batches)
            async with aclosing(ks.inbox.batches("two")) as batches:
                batch = await anext(batches)
                assert batch.turn == left.turn
                assert await batch.fail("no kettle") == "queued"
                with pytest.raises(LeaseLost):
                    await batch.done("late")
                states = [await (await anext(batches)).fail("no kettle") for _ in range(2)]
            assert states == ["queued", "dead"], "the batch that was left was not charged: it failed three times"


async def test_one_who_is_cancelled_while_waiting_leaves_nothing_leased(workers: Program) -> None:
    with workers.serving():
        async with Keepsaid.open(workers.home) as ks, asyncio.timeout(HANG_S):
            waiting = asyncio.ensure_future(anext(ks.inbox.batches("one")))
            await ks.status()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await ks.inbox.put(Message("Is the kettle on?", "ann", "kitchen", direct=True))
            async for batch in ks.inbox.batches("two"):
                await batch.done("It is.")
                break


async def test_an_instance_that_answers_itself_leases_nothing(program: Program) -> None:
    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            with pytest.raises(InputError, match="answers batches itself"):
                await anext(ks.inbox.batches("worker"))


async def test_the_memory_of_a_home_in_this_process_passes_the_same(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings={"models": {"chat": "none"}, "memory": {"embedder": "none"}}) as ks:
        await every_method(ks.memory)


async def test_the_memory_of_the_running_instance_is_the_one_of_its_owner(workers: Program) -> None:
    """Every method returns the values that it returns where this process has the home open."""
    with workers.serving():
        async with Keepsaid.open(workers.home) as ks:
            await every_method(ks.memory)
        with BlockingKeepsaid(Keepsaid.open(workers.home)) as blocking:
            assert blocking.memory.search("porch")[0].text == "The porch is red"
    async with Keepsaid.open(workers.home) as ks:
        assert (await ks.memory.search("porch"))[0].text == "The porch is red"


async def every_method(memory: MemoryClient) -> None:
    """Use memory as a program does."""
    said_at = datetime(2026, 5, 4, 12, tzinfo=UTC)
    first = Episode("The ladder stands behind the greenhouse", "ann", "garden", said_at, external_id="1")
    [episode] = await memory.record([first])
    assert await memory.record([first]) == (episode,), "the same again is kept once"
    [hit] = await memory.recall("where is the ladder?", conversation="garden")
    assert (hit.id, hit.said, hit.external_id, hit.rank) == (episode, said_at, "1", 1)
    assert await memory.recall("where is the ladder?", as_of=datetime(2020, 1, 1, tzinfo=UTC)) == ()
    porch = await memory.add("The porch is green")
    changed = await memory.edit(porch, "The porch is red")
    await memory.pin(changed)
    assert [one.text for one in await memory.history(changed)] == ["The porch is green", "The porch is red"]
    assert (await memory.get(changed)).pinned
    assert [one.id for one in await memory.list("fact")] == [changed]
    assert (await memory.search("porch", kind="fact", since=said_at))[0].id == changed
    assert await memory.search("porch", until=said_at) == ()
    counted = await memory.forget(episode, dry_run=True)
    assert (counted.id, counted.state) == ("", "preview")
    gone = await memory.forget(episode, undo_for="1d")
    assert (gone.counts["memories"], counted.counts["memories"]) == (1, 1)
    with pytest.raises(InputError):
        await memory.get(episode)
    await memory.undo(gone.id)
    assert (await memory.get(episode)).text == first.text
    assert not await memory.embed(), "the home has no embedder"
    for wrong in (memory.get("mem_0000000000001"), memory.list("rumour"), memory.add("  "), memory.undo("x")):
        with pytest.raises(InputError):
            await wrong
    with pytest.raises(InputError, match="zone"):
        await memory.recall("ladder", as_of=datetime(2020, 1, 1))  # noqa: DTZ001 - a time without a zone is refused


async def test_events_are_published_to_and_awaited_from_the_running_instance(program: Program) -> None:
    with program.serving():
        async with Keepsaid.open(program.home) as ks, asyncio.timeout(HANG_S):
            waiting = asyncio.create_task(ks.events.wait_for("deploy.finished", "api", HANG_S))
            await ks.events.emit("deploy.finished", {"build": 7}, "api")
            found = await waiting
            assert found is not None
            assert (found["type"], found["data"]["build"]) == ("deploy.finished", 7)
            assert await ks.events.wait_for("deploy.finished", "api", 0.0, after=found["id"]) is None
            assert not await ks.events.unsubscribe("nobody")
            with pytest.raises(InputError):
                await ks.events.emit("turn.committed", {})


async def test_memory_is_exported_from_and_imported_into_the_running_instance(program: Program, tmp_path: Path) -> None:
    file, other = tmp_path / "all.jsonl", tmp_path / "mem0.json"
    other.write_text('[{"id": "a", "memory": "The oars are in the attic", "user_id": "ann"}]', "utf-8")
    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            await ks.memory.add("The lantern hangs in the shed")
            would = await ks.memory.import_from(other, "mem0", {"ann": "owner"}, trust="owner", dry_run=True)
            assert (would["dry_run"], would["counts"]["memories"]["new"]) == (True, 1)
            assert [one.text for one in await ks.memory.list()] == ["The lantern hangs in the shed"]
            done = await ks.memory.import_from(other, "mem0", {"ann": "owner"}, trust="owner")
            assert done["counts"]["memories"]["new"] == 1
            again = await ks.memory.import_from(other, "mem0", {"ann": "owner"}, trust="owner")
            assert again["counts"]["memories"]["same"] == 1
            [found] = await ks.memory.recall("Where are the oars?", 1)
            assert found.text == "The oars are in the attic"
            exported = await ks.memory.export(file)
            assert (exported["counts"]["memories"], exported["file"]) == (2, str(file))
            assert (await ks.memory.import_from(file))["counts"]["memories"]["same"] == 2
            with pytest.raises(HomeError, match="exists already"):
                await ks.memory.export(file)
            for wrong in ({"source": "notes"}, {"trust": "root"}, {"persons": {"ann": "bob"}}):
                with pytest.raises(InputError):
                    await ks.memory.import_from(other, **wrong)
            file.write_bytes(file.read_bytes()[:-40])
            with pytest.raises(InputError, match="breaks off"):
                await ks.memory.import_from(file)
            with pytest.raises(InputError):
                await ks.memory.import_from(tmp_path / "nothing.jsonl")


async def test_what_needs_the_instance_itself_is_refused_by_name(program: Program) -> None:
    async def handle(event: dict[str, Any]) -> None:
        raise AssertionError(event)

    with program.serving():
        async with Keepsaid.open(program.home) as ks:
            with pytest.raises(InputError, match="needs that process itself") as refusal:
                await ks.events.subscribe("me", "*.*", handle)
            assert refusal.value.hint
            with pytest.raises(InputError):
                await ks.why("trn_0000000000001")
        with pytest.raises(HomeBusy):
            await Keepsaid.open(program.home, answering=True).__aenter__()
        with pytest.raises(HomeBusy):
            await Keepsaid.open(program.home, settings={"models": {"chat": "none"}}).__aenter__()
    with pytest.raises(InputError, match="not open"):
        await ks.status()
