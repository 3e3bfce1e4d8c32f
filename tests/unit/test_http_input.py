"""Bad input over HTTP: refused with what is wrong, whether data is safe and what to do; nothing of it is stored."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site
from tests.waits import HANG_S

from keepsaid.domain.commits import Failure
from keepsaid.domain.ids import read, show
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.errors import KeepsaidError

pytestmark = pytest.mark.asyncio(loop_scope="module")

BYTES_MAX = 11_000_000
HELLO = {"text": "hello", "sender": "ann", "conversation": "room"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A server that lets nobody answer, so that all that is stored is what was taken in."""
    buffer = {"window_ms": 0, "payload_bytes_max": BYTES_MAX}
    channels = {"github": {"enabled": False}}
    root = tmp_path_factory.mktemp("home")
    async with site(root, answering=False, buffer=buffer, channels=channels) as running:
        yield running


def stored(running: Site) -> int:
    return int(running.rows("SELECT count(*) FROM message")[0][0])


async def test_what_is_refused_is_told_and_not_stored(one: Site) -> None:
    before = stored(one)
    cases: list[tuple[object, int, str]] = [
        (b"", 400, "not valid JSON"),
        (b"{", 400, "not valid JSON"),
        (b'{"text": "a", "data": {"n": NaN}}', 400, "not valid JSON: NaN is not a number"),
        (b'{"text": "a", "data": {"n": 1, "n": 2}}', 400, "not valid JSON: 'n' stands twice in one object"),
        (b'{"text": "a" "b"}', 400, "not valid JSON"),
        (b"[]", 400, "a JSON object, not a list"),
        (b"null", 400, "a JSON object, not null"),
        (b'"hello"', 400, "a JSON object, not a text"),
        (b'{"text": "\xff"}', 400, "not UTF-8 (byte 10)"),
        (b"\xff\xfe\x00", 400, "not UTF-8"),
        (b"\0", 400, "not valid JSON"),
        (b"1" * 5_000, 400, "not valid JSON"),
        (b"[" * 100_000, 400, "nested too deeply"),
        (b'{"data": ' * 100_000, 400, "nested too deeply"),
        ({**HELLO, "txt": "a"}, 400, "unknown field 'txt'; did you mean 'text'?"),
        ({**HELLO, "zzzzzz": 1}, 400, "unknown field 'zzzzzz'"),
        ({**HELLO, "\ud800": 1}, 400, "unknown field '\ufffd'"),
        ({"sender": "ann", "conversation": "room"}, 422, "'text' is missing"),
        ({"text": "hello", "conversation": "room"}, 422, "'sender' is missing"),
        ({"text": "hello", "sender": "ann"}, 422, "'conversation' is missing"),
        ({**HELLO, "text": None}, 422, "'text' is missing"),
        ({**HELLO, "text": ["hello"]}, 422, "'text' must be text, not a list"),
        ({**HELLO, "sender": 5}, 422, "'sender' must be text, not a number"),
        ({**HELLO, "conversation": {}}, 422, "'conversation' must be text, not an object"),
        ({**HELLO, "topic": True}, 422, "'topic' must be text, not true or false"),
        ({**HELLO, "direct": "yes"}, 422, "'direct' must be true or false"),
        ({**HELLO, "reply_url": 5}, 422, "'reply_url' must be text, not a number"),
        ({**HELLO, "reply_to_text": 5}, 422, "'reply_to_text' must be text, not a number"),
        ({**HELLO, "text": ""}, 422, "the message is empty"),
        ({**HELLO, "text": " \n\t\u2003"}, 422, "the message is empty"),
        ({**HELLO, "sender": ""}, 422, "1 to 1024 characters"),
        ({**HELLO, "account": ""}, 422, "1 to 1024 characters"),
        ({**HELLO, "conversation": "r" * 1_025}, 422, "1 to 1024 characters"),
        ({**HELLO, "text": "x" * 1_000_001}, 413, "1,000,001 characters; 1,000,000 are allowed"),
        ({**HELLO, "channel": 5}, 422, "'channel' must be text, not a number"),
        ({**HELLO, "channel": "htpp"}, 422, "no channel 'htpp'; known: http, library, terminal"),
        ({**HELLO, "channel": "\ud800"}, 422, "no channel '\ufffd'"),
        ({**HELLO, "channel": "github"}, 422, "no channel 'github'; known: http, library, terminal"),
    ]
    for body, status, what in cases:
        assert what in refused(await one.put(body), status)["title"]
    assert stored(one) == before


async def test_null_is_as_if_the_field_were_not_there(one: Site) -> None:
    optional = ("name", "account", "channel", "direct", "topic", "provider_id", "reply_to", "reply_url", "data")
    response = await one.put({**HELLO, "conversation": "nulls", **dict.fromkeys(optional)})
    assert response.status_code == 201
    story = (await one.client.get(f"/v1/messages/{response.json()['id']}")).json()
    assert (story["channel"], story["account"], story["name"]) == ("http", "default", "")


async def test_a_client_is_told_no_command_of_the_owner(one: Site) -> None:
    calls = [
        (await one.put({**HELLO, "text": ""}, headers), (await one.put({**HELLO, "channel": "htpp"}, headers)))
        for headers in ({}, one.owner)
    ]
    client, owner = [[refused(response, 422)["hint"] for response in both] for both in calls]
    assert client == ["see docs/use/reference/http.md"] * 2
    assert owner == ["correct it, and try again", "keepsaid config show channels"]
    assert refused(await one.client.get("/v1/messages/msg_1"), 404)["hint"] == "see docs/use/reference/http.md"


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
async def test_another_content_type_is_refused(one: Site, kind: str) -> None:
    before = stored(one)
    told = refused(await one.put(HELLO, {"Content-Type": kind}), 400)
    assert told["title"] == "the body must be application/json"
    assert stored(one) == before


async def test_json_is_known_by_any_of_its_names(one: Site) -> None:
    for kind in ("application/json; charset=utf-8", "APPLICATION/JSON"):
        assert (await one.put(HELLO, {"Content-Type": kind})).status_code == 201


@pytest.mark.parametrize("key", ["", "k" * 513])
async def test_a_key_without_measure_is_refused(one: Site, key: str) -> None:
    assert "Idempotency-Key" in refused(await one.say("hello", key=key), 422)["title"]


async def test_a_long_key_of_any_bytes_is_taken(one: Site) -> None:
    headers = [(b"content-type", b"application/json"), (b"idempotency-key", b"\xff\xe4" * 256)]
    statuses = [
        (await one.client.post("/v1/messages", content=json.dumps(HELLO).encode(), headers=headers)).status_code
        for _ in range(2)
    ]
    assert statuses == [201, 200]


# What cannot be stored as text is stored as what can


@pytest.mark.parametrize(
    "body",
    [
        b'{"text": "a\\u0000b", "sender": "s\\u0000", "conversation": "names", "name": "n\\u0000"}',
        b'{"text": "a\\ud800b", "sender": "s\\udfff", "conversation": "names", "name": "n\\udbff"}',
        b'{"text": "a\xed\xa0\x80b", "sender": "s\xed\xa0\x80", "conversation": "names", "name": "n\xed\xa0\x80"}',
    ],
    ids=["NUL", "lone surrogates", "surrogates as bytes"],
)
async def test_nul_and_lone_surrogates_become_question_marks(one: Site, body: bytes) -> None:
    response = await one.put(body)
    assert response.status_code == 201
    story = (await one.client.get(f"/v1/messages/{response.json()['id']}")).json()
    assert (story["text"], story["sender"], story["name"]) == ("a\ufffdb", "s\ufffd", "n\ufffd")
    (row,) = one.rows("SELECT payload FROM message ORDER BY id DESC LIMIT 1")
    assert row == (body,)


async def test_a_conversation_of_nothing_but_nul_is_a_conversation(one: Site) -> None:
    response = await one.put(
        {**HELLO, "conversation": "\0", "topic": "\0\ud800", "reply_to": "\0", "provider_id": "\0"}
    )
    assert response.status_code == 201
    assert response.json()["conversation"] == "\ufffd"


async def test_scripts_and_signs_come_back_as_they_were(one: Site) -> None:
    text = "灯台が回らない 🕯️ \u202eabc e\u0301 ' \" \\ -- ; {{}}"
    response = await one.put(json.dumps({**HELLO, "text": text, "sender": "жанна"}, ensure_ascii=False).encode())
    story = (await one.client.get(f"/v1/messages/{response.json()['id']}")).json()
    assert (story["text"], story["sender"]) == (text.replace("e\u0301", "é"), "жанна")


async def test_what_is_nested_as_deep_as_allowed_is_kept(one: Site) -> None:
    deep = b'{"text": "deep", "sender": "ann", "conversation": "room", "data": ' + b"[" * 500 + b"]" * 500 + b"}"
    assert (await one.put(deep)).status_code == 201


# Size


async def chunks(count: int) -> AsyncIterator[bytes]:
    yield b'{"text": "big", "sender": "ann", "conversation": "big", "data": "'
    for _ in range(count):
        yield b"x" * 1_000_000
    yield b'"}'


async def test_ten_megabytes_are_taken_and_more_than_allowed_is_not(one: Site) -> None:
    headers = {"Content-Type": "application/json"}
    ten, twelve = b"".join([one async for one in chunks(10)]), b"".join([one async for one in chunks(12)])
    count = "SELECT count(*) FROM message WHERE text = 'big'"
    assert (await one.put(ten, {"Idempotency-Key": "ten"})).status_code == 201
    streamed = {**headers, "Idempotency-Key": "ten"}
    assert (await one.client.post("/v1/messages", content=chunks(10), headers=streamed)).status_code == 200
    told = refused(await one.put(twelve), 413)
    assert told["title"] == f"the body has {len(twelve):,} bytes; 11,000,000 are allowed"
    told = refused(await one.client.post("/v1/messages", content=chunks(12), headers=headers), 413)
    assert told["title"] == "the body has more than 11,000,000 bytes"
    assert one.rows(count) == [(1,)]
    assert one.rows("SELECT length(payload) FROM message WHERE text = 'big'") == [(len(ten),)]


async def test_a_body_that_ends_early_stores_nothing(one: Site) -> None:
    before = stored(one)
    with pytest.raises(ConnectionError):
        await one.client.post("/v1/messages", content=_cut_off(), headers={"Content-Type": "application/json"})
    assert (await one.client.get("/readyz")).json() == {"ready": True}
    assert stored(one) == before


async def _cut_off() -> AsyncIterator[bytes]:
    yield b'{"text": "hello", "sender": "ann", "conversation": "room"}'
    raise ConnectionError("the sender died")


@pytest.mark.parametrize("field", ["name", "topic", "reply_to", "provider_id"])
async def test_no_name_is_longer_than_a_name(one: Site, field: str) -> None:
    refused(await one.put({**HELLO, "conversation": "long", field: "n" * 200_000}), 422)


# Elsewhere


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/messages", 405),
        ("DELETE", "/v1/messages/msg_0000000000001", 405),
        ("POST", "/healthz", 405),
        ("GET", "/hooks/github", 405),
        ("OPTIONS", "/v1/messages", 405),
    ],
)
async def test_what_no_route_takes_is_a_problem_too(one: Site, method: str, path: str, status: int) -> None:
    response = await one.client.request(method, path)
    told = refused(response, status)
    assert path in told["title"]
    assert ("allow" in response.headers) == (status == 405)


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/memories", b"{", 400),
        ("/v1/memories", b"{}", 400),
        ("/v1/memories", b'{"text": 5}', 400),
        ("/v1/memories", b'{"text": " "}', 422),
        ("/v1/memories", b'{"text": "a", "kind": "rumour"}', 422),
        ("/v1/memories", b'{"text": "a", "kind": "\\ud800"}', 422),
        ("/v1/memories", json.dumps({"text": "x" * 50_001}).encode(), 422),
        ("/v1/memories", b'"' + b"x" * 1_000_000 + b'"', 413),
        ("/v1/batches/bat_zz/requeue", b"{}", 404),
        ("/v1/batches/bat_0000000000001/requeue", b"[]", 400),
        ("/v1/replies/rep_zz/seen", b"{}", 404),
        ("/v1/replies/rep_zz/resend", b"{}", 404),
        ("/v1/replies/rep_0000000000001/resend", b'{"accept": "yes"}', 400),
    ],
)
async def test_the_operators_routes_are_as_strict(one: Site, path: str, body: bytes, status: int) -> None:
    refused(await one.client.post(path, content=body, headers=one.owner), status)


async def claimed_of(one: Site, conversation: str) -> ClaimedBatch:
    """The batch of a conversation, once it is routed; those of others go back."""
    async with asyncio.timeout(HANG_S):
        while True:
            for lease in await one.instance.flow.claim(one.instance.leases, 50):
                if lease.batch.lane.conversation == conversation:
                    return await one.instance.flow.open(lease)
            await one.instance.clock.wait(one.instance.flow.hints.work, 20)


async def test_a_reason_of_any_bytes_requeues_a_batch(one: Site) -> None:
    put = (await one.say("hello", "requeued")).json()
    claimed = await claimed_of(one, "requeued")
    await one.instance.attempt.failed(claimed, Failure.BURY, KeepsaidError("it does not work"))
    path = f"/v1/batches/{show('batch', claimed.batch.id)}/requeue"
    response = await one.client.post(path, content=b'{"reason": "\\ud800\\u0000"}', headers=one.owner)
    assert response.json() == {"requeued": True}
    assert (await one.client.get(f"/v1/messages/{put['id']}")).json()["batch"]["state"] == "queued"
    again = await one.client.post(path, content=b"{}", headers=one.owner)
    assert again.json() == {"requeued": False}


async def test_an_internal_error_shows_nothing_of_the_inside(one: Site, caplog: pytest.LogCaptureFixture) -> None:
    put = (await one.say("hello", "broken")).json()
    with one.database(writing=True) as db:
        db.execute("UPDATE message SET trust = 'nobody knows' WHERE id = ?", (read("message", put["id"]),))
    told = refused(await one.client.get(f"/v1/messages/{put['id']}"), 500)
    assert (told["title"], told["safe"], told["hint"]) == (
        "an internal error",
        "Unknown for this request.",
        "keepsaid data logs",
    )
    (logged,) = [record for record in caplog.records if record.name == "keepsaid.http"]
    assert logged.exc_info is not None
    assert (await one.say("hello", "whole")).status_code == 201
