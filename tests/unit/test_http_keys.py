"""Keys over HTTP: each opens what its scopes say, in the name of its sender, in conversations of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

from keepsaid.config import load
from keepsaid.errors import ConfigError

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOKENS = {"ann": "a" * 40, "bob": "b" * 40, "reader": "c" * 40, "worker": "d" * 40}
KEYS = {
    "ann": {"token": TOKENS["ann"], "sender": "ann@example"},
    "bob": {"token": TOKENS["bob"]},
    "reader": {"token": TOKENS["reader"], "scopes": ["read"]},
    "worker": {"token": TOKENS["worker"], "scopes": ["operate"]},
}
SECRET = "the client's"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    server, turns = {"port": 0, "token": SECRET}, {"answered_by": "workers"}
    async with site(tmp_path_factory.mktemp("home"), keys=KEYS, server=server, turns=turns) as running:
        yield running


def bearing(name: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {TOKENS.get(name, name)}"}


async def post(here: Site, name: str, path: str, **fields: Any) -> httpx2.Response:
    return await here.client.post(path, json=fields, headers=bearing(name))


async def test_a_key_talks_as_its_sender_and_reads_its_own_messages_alone(one: Site) -> None:
    told = await post(one, "ann", "/v1/messages", text="is the kettle on?", conversation="room", sender="ann@example")
    assert told.status_code == 201, told.text
    path = f"/v1/messages/{told.json()['id']}"
    found = one.rows(
        "SELECT channel, account, sender, trust, direct FROM message JOIN lane ON lane.id = lane_id WHERE text LIKE ?",
        "is the kettle%",
    )
    assert found == [("library", "ann", "ann@example", "known", 1)]
    assert (await one.client.get(path, headers=bearing("ann"))).status_code == 200
    for other in ("bob", SECRET):
        refused(await one.client.get(path, headers=bearing(other)), 404)
        refused(await one.client.get(f"{path}/events", headers=bearing(other)), 404)
    assert (await one.client.get(path, headers=one.owner)).status_code == 200


@pytest.mark.parametrize("field", [{"sender": "boss"}, {"account": "bob"}, {"channel": "terminal"}, {"direct": False}])
async def test_a_key_speaks_for_nobody_else(one: Site, field: dict[str, Any]) -> None:
    told = refused(await post(one, "ann", "/v1/messages", text="let me in", conversation="room", **field), 400)
    assert next(iter(field)) in told["title"]
    assert one.rows("SELECT 1 FROM message WHERE text = 'let me in'") == []


async def test_a_scope_that_is_missing_is_named(one: Site) -> None:
    for path, scope in (("/v1/messages", "talk"), ("/v1/memories", "write"), ("/v1/batches:lease", "operate")):
        told = refused(await post(one, "reader", path, text="x", conversation="x"), 403)
        assert scope in told["title"]
        assert told["code"] == "KS-SCOPE"


@pytest.mark.parametrize("path", ["/v1/status", "/v1/people", "/v1/events", "/v1/tasks", "/v1/schedules"])
async def test_no_key_opens_what_is_the_operators(one: Site, path: str) -> None:
    for name in TOKENS:
        refused(await one.client.get(path, headers=bearing(name)), 401)


async def test_a_key_opens_no_conversation_and_no_file_of_the_channel_http(one: Site) -> None:
    for path in ("/v1/conversations/room/events", "/v1/files/msg_0000000000001/1"):
        refused(await one.client.get(path, headers=bearing("ann")), 401)


async def test_memory_by_its_routes(one: Site) -> None:
    saved = await post(one, "ann", "/v1/memories", text="The spare key hangs in the shed", key="spare")
    assert saved.status_code == 201, saved.text
    assert (
        await post(one, "ann", "/v1/memories", text="The spare key hangs in the shed", key="spare")
    ).status_code == 200
    refused(await post(one, "ann", "/v1/memories", text="There is no spare key", key="spare"), 409)
    found = await one.client.get("/v1/memories", params={"query": "where is the spare key?"}, headers=bearing("ann"))
    assert [hit["memory"]["text"] for hit in found.json()["hits"]] == ["The spare key hangs in the shed"]
    path = f"/v1/memories/{saved.json()['id']}"
    refused(await one.client.get(path, headers=bearing("bob")), 404)
    edited = await post(one, "ann", f"{path}/edit", text="The spare key hangs in the hall")
    assert edited.status_code == 200, edited.text
    ids = [edited.json()["id"]]
    counted = (await post(one, "ann", "/v1/memories/forget", ids=ids)).json()
    done = await post(one, "ann", "/v1/memories/forget", ids=ids, confirm=counted["confirm"])
    assert done.json()["by"] == "library:ann:ann@example"
    newest = await one.client.get("/v1/memories", headers=bearing("ann"))
    assert "hall" not in newest.text


async def test_talk_and_context_by_their_routes(one: Site) -> None:
    said = {"role": "user", "text": "The gauge reads in bar.", "key": "g"}
    assert (await post(one, "ann", "/v1/lanes:record", conversation="boat", messages=[said])).status_code == 201
    assert (await post(one, "ann", "/v1/lanes:record", conversation="boat", messages=[said])).status_code == 200
    other = {**said, "text": "The gauge reads in psi."}
    refused(await post(one, "ann", "/v1/lanes:record", conversation="boat", messages=[other]), 409)
    read = await one.client.get("/v1/lanes", params={"conversation": "boat", "limit": "5"}, headers=bearing("ann"))
    assert [one["text"] for one in read.json()["messages"]] == ["The gauge reads in bar."]
    built = (await post(one, "ann", "/v1/context", conversation="dock", text="What does the gauge read in?")).json()
    assert "bar" in built["memory"]
    refused(await one.client.get("/v1/lanes", params={"after": "-1"}, headers=bearing("ann")), 422)
    refused(await post(one, "ann", "/v1/agent/obey"), 404)


async def test_a_worker_is_never_handed_what_was_recorded(one: Site) -> None:
    """It leases what waits for an answer, of all conversations, and settles it."""
    await post(one, "bob", "/v1/lanes:record", conversation="r", messages=[{"role": "user", "text": "for the record"}])
    await post(one, "bob", "/v1/messages", text="please answer", conversation="r")
    texts: list[str] = []
    while "please answer" not in texts:
        leased = (await post(one, "worker", "/v1/batches:lease", limit=8, wait_s=5)).json()["batches"]
        for batch in leased:
            texts += [message["text"] for message in batch["messages"]]
            path = f"/v1/batches/{batch['id']}/{batch['fence']}/done"
            assert (await post(one, "worker", path, reply="answered")).status_code == 200
    assert "for the record" not in texts


async def test_the_operator_calls_as_an_agent_of_the_owner_in_an_account_of_its_own(one: Site) -> None:
    def asked(account: str, text: str = "The harbour master is Ole") -> Any:
        head = {**one.owner, "X-Keepsaid-Account": account}
        return one.client.post("/v1/agent/save", json={"text": text}, headers=head)

    assert (await asked("desk")).status_code == 200
    for account in ("ann", "default", "No Name", "x" * 41):
        refused(await asked(account), 400)
    found = await one.client.post("/v1/agent/recall", json={"query": "harbour master"}, headers=bearing("ann"))
    assert found.json()["hits"] == []


WRONG: dict[str, dict[str, Any]] = {
    "a token that could be guessed": {"ann": {"token": "short"}},
    "a token of two keys": {"ann": {"token": "a" * 40}, "bob": {"token": "a" * 40}},
    "the account of programs without a key": {"default": {"token": "a" * 40}},
    "the account of a client without a key": {"mcp": {"token": "a" * 40}},
    "the sender of what the program says": {"ann": {"token": "a" * 40, "sender": "system"}},
    "its name as a key": {"system": {"token": "a" * 40}},
    "a channel that every client reads": {"ann": {"token": "a" * 40, "channel": "http"}},
    "a channel that is not there": {"ann": {"token": "a" * 40, "channel": "pigeon"}},
    "a scope that is none": {"ann": {"token": "a" * 40, "scopes": ["everything"]}},
}


@pytest.mark.parametrize("name", WRONG)
async def test_settings_of_keys_that_would_let_in_too_many_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError) as refusal:
        load(tmp_path / "config.yaml", {"keys": WRONG[name]})
    assert "a" * 40 not in str(refusal.value)
