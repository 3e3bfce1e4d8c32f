"""What those are promised who work for an instance, whichever face they come by: the inbox, the owner's things."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio
from tests.contract.agent_faces import FACES, Face
from tests.waits import HANG_S

from keepsaid import InputError, KeepsaidError, KeyConflict
from keepsaid.errors import LeaseLost, NotAllowed

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module", params=FACES)
async def face(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Face]:
    async with FACES[request.param](tmp_path_factory.mktemp("home")) as memory_of:
        yield memory_of


async def pulled(face: Face, **terms: int) -> dict[str, Any]:
    """The batch that a worker leases once there is one."""
    async with asyncio.timeout(HANG_S):
        while not (found := (await face("worker").inbox.pull(wait_s=10, **terms))["batches"]):
            pass
    [batch] = found
    return dict(batch)


async def test_a_message_is_put_leased_held_and_answered_once(face: Face) -> None:
    put = await face("ann").inbox.put("hall", "Is the kettle on?", name="Ann")
    assert put["intake"] == "stored"
    batch = await pulled(face, lease_s=60)
    [message] = batch["messages"]
    assert (message["id"], message["text"], message["sender"]) == (put["id"], "Is the kettle on?", "ann")
    assert (batch["conversation"], batch["account"], batch["lease_s"]) == ("hall", "ann", 60)
    worker = face("worker").inbox
    assert await worker.renew(batch["lease"], 120) == {"lease_s": 120}
    told = await worker.done(batch["lease"], "It is.")
    assert (told["state"], told["duplicate"]) == ("done", False)
    assert (await worker.done(batch["lease"], "It is not."))["duplicate"]
    assert await worker.fail(batch["lease"], "too late") == {"state": "done"}
    said = [one["text"] for one in (await face("ann").transcript("hall"))["messages"]]
    assert said[-1] == "It is."


async def test_what_fails_comes_again_under_another_lease_and_the_former_is_refused(face: Face) -> None:
    await face("ann").inbox.put("attic", "Where is the trunk?")
    first, worker = await pulled(face), face("worker").inbox
    assert await worker.fail(first["lease"], "the model is away") == {"state": "queued"}
    for call in (worker.renew(first["lease"]), worker.done(first["lease"], "late"), worker.fail(first["lease"], "x")):
        with pytest.raises(LeaseLost):
            await call
    again = await pulled(face)
    assert (again["id"], again["attempts"]) == (first["id"], 1)
    assert again["fence"] > first["fence"]
    assert (await worker.done(again["lease"], "Under the eaves."))["state"] == "done"


async def test_a_batch_that_is_released_comes_again_uncharged_and_the_former_lease_is_refused(face: Face) -> None:
    await face("ann").inbox.put("cellar", "Where is the jam?")
    first, worker = await pulled(face), face("worker").inbox
    assert await worker.release(first["lease"]) == {"state": "queued"}
    with pytest.raises(LeaseLost):
        await worker.release(first["lease"])
    again = await pulled(face)
    assert (again["id"], again["turn"], again["attempts"]) == (first["id"], first["turn"], 0)
    await worker.done(again["lease"], "On the shelf.")
    assert await worker.release(again["lease"]) == {"state": "done"}


async def test_the_same_message_is_kept_once_under_its_key(face: Face) -> None:
    inbox = face("bob").inbox
    first = await inbox.put("shed", "The saw is blunt.", key="7")
    again = await inbox.put("shed", "The saw is blunt.", key="7")
    assert (again["intake"], again["id"]) == ("duplicate", first["id"])
    with pytest.raises(KeyConflict):
        await inbox.put("shed", "The saw is sharp.", key="7")
    await face("worker").inbox.done((await pulled(face))["lease"])


async def test_a_key_does_at_the_inbox_what_its_scopes_say(face: Face) -> None:
    ann, guest = face("ann").inbox, face("guest").inbox
    calls = [guest.put("hall", "hello"), ann.pull(), ann.renew("bat_0000000000001/1"), ann.done("bat_0000000000001/1")]
    for call in (*calls, ann.fail("bat_0000000000001/1", "no"), ann.release("bat_0000000000001/1")):
        with pytest.raises(NotAllowed, match="scope"):
            await call


@pytest.mark.parametrize("name", ["tasks", "run_task", "approve_task", "schedules", "add_schedule", "status"])
@pytest.mark.parametrize("key", ["boss", "worker"])
async def test_what_is_the_operators_no_key_opens(face: Face, name: str, key: str) -> None:
    """Not even that of a sender who is the owner."""
    fields = {"id": "tsk_0000000000001"} if name.endswith("_task") else {}
    with pytest.raises(NotAllowed, match="operator"):
        await face(key).ask(name, {"every_s": 60, "say": "x"} if name == "add_schedule" else fields)


WRONG: dict[str, Callable[[Face], Any]] = {
    "no text": lambda face: face("ann").inbox.put("hall", " "),
    "no conversation": lambda face: face("ann").inbox.put(" ", "hello"),
    "too long a key": lambda face: face("ann").inbox.put("hall", "hello", key="k" * 513),
    "a sender": lambda face: face("ann").inbox.put("hall", "hello", sender="boss"),
    "no batches": lambda face: face("worker").inbox.pull(0),
    "too long a lease": lambda face: face("worker").inbox.pull(lease_s=3_601),
    "too long a wait": lambda face: face("worker").inbox.pull(wait_s=61),
    "a lease that is none": lambda face: face("worker").inbox.renew("bat_0000000000001"),
    "a fence that is none": lambda face: face("worker").inbox.done("bat_0000000000001/x"),
}


@pytest.mark.parametrize("name", WRONG)
async def test_bad_input_gets_a_clear_error(face: Face, name: str) -> None:
    with pytest.raises(InputError) as refused:
        await WRONG[name](face)
    assert refused.value.what


async def test_a_lease_that_never_was_is_lost(face: Face) -> None:
    with pytest.raises(KeepsaidError):
        await face("worker").inbox.done("bat_0000000000001/1", "hello")
