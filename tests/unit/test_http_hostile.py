"""Hostile requests: each is answered with a problem that names what is wrong, none with a 5xx; none acts as another."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

from keepsaid.errors import StoreFull
from keepsaid.interfaces.http.responses import ConfirmedResponse

pytestmark = pytest.mark.asyncio(loop_scope="module")

HELLO = {"text": "hello", "sender": "ann", "conversation": "room"}
CLIENT = {"Authorization": "Bearer the client's"}
DEEP = "[" * 400 + "]" * 400
MEMORY_ID = "mem_1000000000000"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """On loopback, without a client's token; boss is an owner."""
    owner = [{"channel": "http", "account": "default", "sender": "boss"}]
    async with site(tmp_path_factory.mktemp("home"), answering=False, owner=owner) as running:
        yield running


def telegram(document: str) -> str:
    """A Telegram update with that document, in JSON."""
    chat = '"chat": {"id": 1}, "from": {"id": 1}'
    return f'{{"update_id": 1, "message": {{"message_id": 1, {chat}, "document": {document}}}}}'


def edge(weight: str) -> str:
    """An import of one association of that weight."""
    fields = '"type": "association", "source": "a", "target": "b", "relation": "updates", "at": 1'
    return f'{{"do": "look", "records": [{{{fields}, "weight": {weight}}}]}}'


def nostr(kind: str) -> str:
    """An event of that kind."""
    return f'{{"kind": {kind}, "id": "{"a" * 64}", "pubkey": "{"b" * 64}"}}'


CASES: list[tuple[str, str, int]] = [
    ("/v1/media/telegram", telegram('{"file_id": "a", "file_size": 1e400}'), 400),
    ("/v1/media/telegram", telegram('{"file_id": "a", "file_size": 1e300}'), 422),
    ("/v1/media/telegram", telegram('{"file_id": "a", "file_size": -1e19}'), 422),
    ("/v1/media/discord", '{"id": "1", "channel_id": "2", "attachments": [{"id": "1", "size": 1e400}]}', 400),
    ("/v1/media/nostr", nostr("1e400"), 400),
    ("/v1/media/nostr", nostr("1" + "0" * 290), 422),
    ("/v1/media/slack", '{"type": "\\ud800"}', 200),
    ("/v1/collection/run", '{"session": "\\ud800"}', 404),
    ("/v1/forget/undo", '{"id": "\\ud800"}', 422),
    ("/v1/lanes/reset", '{"channel": "http", "account": "a", "conversation": "\\ud800", "key": "\\ud800"}', 404),
    ("/v1/lanes/compact", '{"channel": "http", "account": "a", "conversation": "\\ud800", "key": "\\ud800"}', 404),
    ("/v1/memories/import", edge("1" + "0" * 290), 400),
    ("/v1/memories/import", edge("1" + "0" * 400), 400),
    ("/v1/memories/import", edge("1e400"), 400),
    ("/v1/forget", '{"filter": "x", "yes": true, "undo_for": "%sd"}' % ("9" * 5_000), 422),
    ("/v1/forget/settled", '{"wait_s": 1%s}' % ("0" * 290), 400),
]


@pytest.mark.parametrize(("path", "body", "status"), CASES)
async def test_no_number_and_no_half_character_breaks_a_route(one: Site, path: str, body: str, status: int) -> None:
    headers = {"Content-Type": "application/json", **one.owner}
    response = await one.client.post(path, content=body.encode(), headers=headers)
    if status == 200:
        assert response.json() == {"ignored": response.json()["ignored"]}
    else:
        assert len(refused(response, status)["title"]) < 400


async def test_a_schedule_to_half_a_character_is_stored_as_a_question_mark(one: Site) -> None:
    to = {"channel": "http", "conversation": "room", "topic": "HALF"}
    body = json.dumps({"name": "odd", "every_s": 3_600, "say": "hello", "to": to}).replace("HALF", "\\ud800")
    response = await one.client.post("/v1/schedules", content=body.encode(), headers=one.owner)
    assert response.status_code == 201, response.text
    assert "\ufffd" in response.text


@pytest.mark.parametrize("limit", ["9" * 5_000, "0", "-1", "1001", "²", "１", "1e3", ""])
async def test_a_limit_that_is_none_is_refused(one: Site, limit: str) -> None:
    response = await one.client.get("/v1/tasks", params={"limit": limit}, headers=one.owner)
    assert "limit must be a number from 1 to 1000" in refused(response, 400)["title"]


async def test_metadata_nested_too_deeply_names_its_record(one: Site) -> None:
    body = {"do": "look", "records": [{"type": "memory", "metadata": "[" * 5_000}]}
    told = refused(await one.client.post("/v1/memories/import", json=body, headers=one.owner), 400)
    assert told["title"].startswith("record 0: ")


@pytest.mark.parametrize("field", ["channel", "txet"])
async def test_no_answer_quotes_a_whole_body(one: Site, field: str) -> None:
    body = {**HELLO, "channel": "c" * 300_000} if field == "channel" else {**HELLO, "x" * 300_000: 1}
    response = await one.put(body)
    assert response.status_code in (400, 422)
    assert len(response.content) < 2_000


# Other addresses


@pytest.mark.parametrize("path", ["/v1/messages/", "/healthz/", "/v1/tasks/", "/hooks/github/", "//evil.example/"])
async def test_a_slash_at_the_end_is_another_address_and_nobody_is_sent_elsewhere(one: Site, path: str) -> None:
    for method in ("GET", "POST"):
        answer = await raw(one, f"{method} {path} HTTP/1.1\r\nHost: evil.example\r\nContent-Length: 0\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 404 "), answer
        assert b"location" not in answer.lower()


async def raw(one: Site, request: str) -> bytes:
    """The head of what is answered to a request as it stands."""
    async with asyncio.timeout(60):
        reader, writer = await asyncio.open_connection(one.address.host, one.address.port)
        writer.write(request.encode("latin-1"))
        head = await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    return head


# Who passes requests on

PASSED_ON = [
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Host",
    "X-Forwarded-Proto",
    "X-Forwarded",
    "X-Real-IP",
    "Via",
    "CF-Connecting-IP",
    "CF-Ray",
    "True-Client-IP",
    "X-Client-IP",
    "X-Cluster-Client-IP",
    "Fly-Client-IP",
    "Fastly-Client-IP",
    "X-Original-Host",
    "X-Envoy-Peer-Address",
    "X-Azure-ClientIP",
    "X-Appengine-User-Ip",
    "X-Amzn-Trace-Id",
    "X-Remote-Addr",
    "Client-IP",
    "X-Source-IP",
    "Forwarded-For",
    "CDN-Loop",
    "X-ProxyUser-Ip",
    "WL-Proxy-Client-IP",
    "Proxy-Client-IP",
    "X-Nf-Client-Connection-Ip",
    "Tailscale-User-Login",
    "Akamai-Origin-Hop",
    "X-Vercel-Id",
    "x-FORWARDED-for",
]
OWN = [
    "Accept",
    "User-Agent",
    "Content-Type",
    "Idempotency-Key",
    "Last-Event-ID",
    "X-Request-Id",
    "X-Client-Version",
    "Traceparent",
]


@pytest.mark.parametrize("header", PASSED_ON)
async def test_a_header_of_any_proxy_ends_the_trust_in_loopback(one: Site, header: str) -> None:
    told = refused(await one.put(HELLO, {header: "203.0.113.7"}), 403)
    assert "server.token" in told["hint"]
    refused(await one.client.get("/v1/messages/msg_1", headers={header: ""}), 403)
    assert (await one.put(HELLO, {header: "203.0.113.7", **one.owner})).status_code == 201


@pytest.mark.parametrize("header", OWN)
async def test_headers_of_ordinary_clients_need_no_token(one: Site, header: str) -> None:
    value = "application/json" if header == "Content-Type" else "any"
    assert (await one.put(HELLO, {header: value})).status_code in (200, 201)


async def test_what_speaks_an_old_protocol_counts_as_a_proxy(one: Site) -> None:
    body = json.dumps(HELLO)
    head = "POST /v1/messages HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    asked = f"{head}Content-Length: {len(body)}\r\n\r\n{body}"
    assert (await raw(one, asked)).startswith(b"HTTP/1.1 403 ")


async def test_nobody_speaks_as_the_owner_without_a_token(one: Site) -> None:
    boss: dict[str, Any] = {**HELLO, "sender": "boss", "conversation": "bosses"}
    told = refused(await one.put(boss), 401)
    assert "as the owner" in told["title"]
    assert (await one.put(boss, one.owner)).status_code == 201
    assert one.rows("SELECT trust FROM message WHERE sender = 'boss'") == [("owner",)]


async def test_with_the_clients_token_the_owner_is_known(tmp_path_factory: pytest.TempPathFactory) -> None:
    owner = [{"channel": "http", "account": "default", "sender": "boss"}]
    server = {"port": 0, "token": "the client's"}
    root = tmp_path_factory.mktemp("home")
    async with site(root, answering=False, owner=owner, server=server) as running:
        refused(await running.put({**HELLO, "sender": "boss"}), 401)
        assert (await running.put({**HELLO, "sender": "boss"}, CLIENT)).status_code == 201


# Whether it takes messages


class Full:
    """A hook of a store that is full."""

    def read(self, headers: object, body: bytes) -> None:
        """Refuse as the store does."""
        raise StoreFull("no space is left")


async def test_a_server_whose_writes_are_refused_is_not_ready(one: Site) -> None:
    one.instance.hooks["full"] = Full()  # type: ignore[assignment] # reading is all that is asked of it
    refused(await one.client.post("/hooks/full", content=b"{}"), 503)
    response = await one.client.get("/readyz")
    assert (response.status_code, response.json()) == (503, {"ready": False, "code": "KS-DB-FULL"})
    assert (await one.put(HELLO)).status_code == 201
    assert (await one.client.get("/readyz")).json() == {"ready": True}


# Replies that were seen


async def test_a_reply_counts_as_pulled_only_when_its_answer_was_sent_whole() -> None:
    pulled: list[str] = []

    async def pull() -> None:
        pulled.append("pulled")

    async def answer(*, leaves: bool) -> list[dict[str, Any]]:
        sent: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if not leaves:
                await asyncio.Event().wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message)

        await ConfirmedResponse({"id": "msg_1"}, pull)({"type": "http", "method": "GET"}, receive, send)
        return sent

    await answer(leaves=True)
    assert pulled == []
    sent = await answer(leaves=False)
    assert pulled == ["pulled"]
    assert b"".join(one.get("body", b"") for one in sent) == b'{"id":"msg_1"}'


async def test_a_head_request_pulls_nothing(tmp_path_factory: pytest.TempPathFactory) -> None:
    async with site(tmp_path_factory.mktemp("home")) as running:
        put = await running.say("hello")
        path, state = f"/v1/messages/{put.json()['id']}", "SELECT state FROM reply"
        async with asyncio.timeout(60):
            while not running.rows(state):
                assert (await running.client.head(path)).status_code == 200
        assert (await running.client.head(path)).content == b""
        assert running.rows(state) == [("pending",)]
        assert (await running.client.get(path)).status_code == 200
        assert running.rows(state) == [("sent",)]
