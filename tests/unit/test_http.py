"""Messages over HTTP: acknowledged once they are on disk, told about until they are settled, refused with a reason."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site
from tests.waits import HANG_S

from keepsaid.domain.ids import read, show
from keepsaid.ports import runtime
from keepsaid.testing.model_script import Hang, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.reply_receiver import ReplyReceiver

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO = {"text": "hello", "sender": "ann", "conversation": "room"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """One server for all tests that leave it as it is; each talks in conversations of its own."""
    channels = {"http": {"reply_hosts": ["example.com", "127.0.0.1:80"]}}
    async with site(tmp_path_factory.mktemp("home"), channels=channels) as running:
        yield running


class Held:
    """A commit that is held back just before it is made."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop = asyncio.get_running_loop()
        self.reached = asyncio.Event()
        self.released = threading.Event()

    def __call__(self, name: str) -> None:
        if name == self._name:
            self._loop.call_soon_threadsafe(self.reached.set)
            assert self.released.wait(HANG_S), "nobody let the commit go on"


@pytest.fixture
def disarmed() -> Iterator[None]:
    """Leave no point armed."""
    yield
    runtime.arm(None)


# Acknowledged


@pytest.mark.usefixtures("disarmed")
async def test_a_message_is_acknowledged_only_when_it_is_on_disk(one: Site) -> None:
    count = "SELECT count(*) FROM message WHERE external_id = 'held'"
    held = Held("commit.Receive.before")
    runtime.arm(held)
    posting = asyncio.create_task(one.say("hello", "held", key="held"))
    async with asyncio.timeout(HANG_S):
        await held.reached.wait()
    assert one.rows(count) == [(0,)]
    assert not posting.done()
    runtime.arm(None)
    held.released.set()
    response = await posting
    assert (response.status_code, one.rows(count)) == (201, [(1,)])


async def test_the_answer_names_the_message_and_where_it_is(one: Site) -> None:
    first, second = await one.say("one", "named"), await one.say("two", "named")
    told = second.json()
    number = read("message", told["id"])
    assert (first.status_code, second.status_code) == (201, 201)
    assert told == {
        "id": show("message", number or 0),
        "intake": "stored",
        "number": 2,
        "conversation": "named",
        "lane": "root:named",
    }
    assert second.headers["location"] == f"/v1/messages/{told['id']}"
    assert one.rows("SELECT text, number FROM message WHERE id = ?", number) == [("two", 2)]


async def test_the_same_key_and_content_is_the_same_message(one: Site) -> None:
    first, again = await one.say("hello", "again", key="again"), await one.say("hello", "again", key="again")
    assert (first.status_code, again.status_code) == (201, 200)
    assert again.json() == {**first.json(), "intake": "duplicate"}
    assert again.headers["location"] == first.headers["location"]
    assert one.rows("SELECT count(*) FROM message WHERE external_id = 'again'") == [(1,)]


async def test_the_same_key_with_other_content_is_a_conflict(one: Site) -> None:
    await one.say("hello", "conflict", key="conflict")
    told = refused(await one.say("goodbye", "conflict", key="conflict"), 409)
    assert told["code"] == "KS-INP-CONFLICT"
    assert "'conflict'" in told["title"]
    assert one.rows("SELECT text FROM message WHERE external_id = 'conflict'") == [("hello",)]


async def test_a_message_is_shown_with_all_that_became_of_it(one: Site) -> None:
    put = (await one.say("where is the lantern?", "stages", key="stages")).json()
    await one.settled(put["id"])
    response = await one.client.get(f"/v1/messages/{put['id']}")
    story = response.json()
    assert (response.status_code, story["state"], story["number"]) == (200, "done", 1)
    assert (story["text"], story["sender"], story["external_id"]) == ("where is the lantern?", "ann", "stages")
    assert (story["channel"], story["trust"], story["priority"]) == ("http", "known", 10)
    assert (story["batch"]["state"], story["batch"]["verdict"], story["batch"]["attempts"]) == ("done", "forward", 0)
    assert story["turn"].startswith("trn_")
    (reply,) = story["replies"]
    assert reply["text"].startswith("No model is set")


async def test_a_reply_that_was_shown_counts_as_pulled(one: Site) -> None:
    put = (await one.say("hello", "pulled")).json()
    path = f"/v1/messages/{put['id']}"
    async with asyncio.timeout(HANG_S):
        while one.rows("SELECT state FROM reply WHERE conversation = 'pulled'") != [("pending",)]:
            assert (await one.client.head(path)).status_code == 200
    states = [(await one.client.get(path)).json()["replies"][0]["state"] for _ in range(2)]
    assert states == ["pending", "sent"]


async def test_a_reply_that_was_streamed_counts_as_pulled(one: Site) -> None:
    put = (await one.say("hello", "streamed")).json()
    (reply,) = (await one.settled(put["id"]))["replies"]
    assert reply["state"] == "pending"
    assert one.rows("SELECT state, detail FROM reply WHERE conversation = 'streamed'") == [("sent", "pulled")]


async def test_a_dead_reply_is_sent_again_or_accepted(one: Site) -> None:
    told = []
    for conversation, body in (("again", {}), ("accepted", {"accept": True})):
        story = await one.settled((await one.say("hello", f"dead {conversation}")).json()["id"])
        reply_id = story["replies"][0]["id"]
        with one.database(writing=True) as db:
            db.execute(
                "UPDATE reply SET state = 'dead', detail = 'HTTP 410', row_seal = NULL WHERE id = ?",
                (read("reply", reply_id),),
            )
        path = f"/v1/replies/{reply_id}/resend"
        answers = [(await one.client.post(path, json=body, headers=one.owner)).json() for _ in range(2)]
        assert answers == [{"done": True}, {"done": False}]
        (row,) = one.rows("SELECT state, detail, attempts FROM reply WHERE id = ?", read("reply", reply_id))
        told.append(row)
    assert told == [("pending", "", 0), ("not_deliverable", "HTTP 410; accepted by a person", 0)]


async def test_what_another_channel_took_in_is_shown_to_its_owner_alone(one: Site) -> None:
    put = await one.put({**HELLO, "channel": "terminal"}, one.owner)
    path = f"/v1/messages/{put.json()['id']}"
    await one.settled(put.json()["id"])
    refused(await one.client.get(path), 404)
    refused(await one.client.get(f"{path}/events"), 404)
    for _ in range(2):
        (reply,) = (await one.client.get(path, headers=one.owner)).json()["replies"]
        assert reply["state"] == "pending"
    listed = await one.client.get("/v1/replies?channel=terminal&conversation=room", headers=one.owner)
    assert [reply["id"] for reply in listed.json()["replies"]] == [reply["id"]]
    seen = await one.client.post(f"/v1/replies/{reply['id']}/seen", headers=one.owner)
    assert seen.json() == {"seen": True}
    assert (await one.client.get(path, headers=one.owner)).json()["replies"][0]["state"] == "sent"


@pytest.mark.parametrize("name", ["msg_zzz", "msg_0000000000000", "rep_0000000000001", "%00%ff", "msg_" + "z" * 13])
async def test_an_unknown_message_is_told(one: Site, name: str) -> None:
    refused(await one.client.get(f"/v1/messages/{name}"), 404)
    refused(await one.client.get(f"/v1/messages/{name}/events"), 404)


# Told about while it is written


async def test_the_answer_is_told_as_it_is_written_and_then_as_it_is_kept(tmp_path: Path) -> None:
    text = "In the boathouse, behind the oars."
    async with ModelServer(Script(Say(text, chunk=5))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as running:
            put = (await running.say("where is the lantern?")).json()
            events = await running.events(put["id"])
            again = await running.events(put["id"])
    assert [name for name, _ in events[:2]] == ["received", "batched"]
    *deltas, (last, story) = events[2:]
    assert {name for name, _ in deltas} == {"delta"}
    assert "".join(data["text"] for _, data in deltas) == text
    assert len(deltas) > 1
    assert (last, story["state"], story["replies"][0]["text"]) == ("settled", "done", text)
    assert [name for name, _ in again] == ["received", "batched", "settled"]
    assert again[-1][1]["replies"][0]["text"] == text


async def test_a_dropped_message_is_told_as_settled_too(tmp_path: Path) -> None:
    async with site(tmp_path, routes={"default": "drop"}) as running:
        story = await running.settled((await running.say("hello")).json()["id"])
    assert (story["state"], story["replies"], story["turn"]) == ("dropped", [], None)
    assert story["batch"]["reason"] == "no rule matched; routes.default is drop"


async def test_a_reader_who_leaves_early_disturbs_nobody(tmp_path: Path) -> None:
    async with ModelServer(Script(Say("one two three", delay_s=0.1))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as running:
            put = (await running.say("hello")).json()
            async with running.client.stream("GET", f"/v1/messages/{put['id']}/events") as response:
                assert response.status_code == 200
            assert (await running.settled(put["id"]))["state"] == "done"


async def test_a_stop_ends_those_who_wait_for_an_answer(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with ModelServer(Script(Hang())) as server, httpx2.AsyncClient(trust_env=False) as waiting:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with AsyncExitStack() as stopping:
            running = await stopping.enter_async_context(site(tmp_path, models=models, turns={"shutdown_timeout_s": 0}))
            put = (await running.say("hello")).json()
            await server.wait_for(1)
            url = f"{running.address.url}/v1/messages/{put['id']}/events"
            async with waiting.stream("GET", url) as response:
                await stopping.aclose()
                told = "".join([text async for text in response.aiter_text()])
    assert "event: settled" not in told
    assert [record for record in caplog.records if record.levelname in ("WARNING", "ERROR", "CRITICAL")] == []
    async with site(tmp_path) as again:
        assert (await again.settled(put["id"]))["replies"][0]["text"].startswith("No model is set")


# Pushed


async def test_a_reply_is_pushed_where_its_message_asked_for_it(tmp_path: Path) -> None:
    async with ReplyReceiver() as receiver:
        channels = {"http": {"reply_hosts": [receiver.host]}}
        async with site(tmp_path, channels=channels) as running:
            put = (await running.put({**HELLO, "reply_url": receiver.url, "provider_id": "m-1"})).json()
            (posted,) = await receiver.wait_for(1)
            story = await _until_sent(running, put["id"])
            pulled = (await running.say("hello", "elsewhere")).json()
            streamed = (await running.settled(pulled["id"]))["replies"][0]["state"]
            states = [streamed, await _state_of_reply(running, pulled["id"])]
    (reply,) = story["replies"]
    assert posted.key
    assert (posted.json["id"], posted.json["text"]) == (reply["id"], reply["text"])
    assert (posted.json["conversation"], posted.json["reply_to"]) == ("room", "m-1")
    assert (reply["attempts"], reply["possible_duplicate"]) == (1, False)
    assert states == ["pending", "sent"]


async def _until_sent(running: Site, message_id: str) -> dict[str, Any]:
    """Its story once the reply has left; a look does not count as pulled, because the reply has a URL."""
    async with asyncio.timeout(HANG_S):
        while True:
            story: dict[str, Any] = (await running.client.get(f"/v1/messages/{message_id}")).json()
            if story["replies"] and story["replies"][0]["state"] == "sent":
                return story


async def _state_of_reply(running: Site, message_id: str) -> object:
    return (await running.client.get(f"/v1/messages/{message_id}")).json()["replies"][0]["state"]


@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:9/replies",
        "http://localhost:80/",
        "https://example.com.evil.invalid/",
        "ftp://example.com/",
        "http://user:pass@example.com/",
        "http:///replies",
        "http://example.com:0/",
        "http://example.com:99999/",
        "javascript:alert(1)",
        "http://exa\ud800mple.com/",
        "",
    ],
)
async def test_a_reply_url_that_is_not_allowed_is_refused(one: Site, url: str) -> None:
    told = refused(await one.put({**HELLO, "conversation": "url", "reply_url": url}), 422)
    assert "reply_url" in told["title"]
    assert "channels.http.reply_hosts" in told["hint"]
    assert one.rows("SELECT count(*) FROM lane WHERE conversation = 'url'") == [(0,)]


# The store refuses


async def test_a_locked_database_is_told_and_intake_resumes_by_itself(one: Site) -> None:
    with one.database(writing=True) as db:
        db.execute("BEGIN IMMEDIATE")
        response = await one.say("hello", "busy", key="busy")
        assert refused(response, 503)["code"] == "KS-DB-LOCKED"
        assert response.headers["retry-after"] == "5"
        db.execute("ROLLBACK")
    assert (await one.say("hello", "busy", key="busy")).status_code == 201
