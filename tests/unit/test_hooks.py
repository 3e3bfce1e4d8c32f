"""Webhooks over HTTP: proven first, stored before they are answered, a redelivery stored once."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from urllib.parse import quote_plus

import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

from keepsaid.testing.webhooks import deliveries, payload, sign

pytestmark = pytest.mark.asyncio(loop_scope="module")

SECRET = "a lantern at the end of the pier"
HOOK = "/hooks/github"
_numbers = count(1)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """The hook is open, and whatever it takes in is dropped, as the shipped config says."""
    channels = {"github": {"secret": SECRET, "window_ms": 0, "quiet_ms": 0}}
    async with site(tmp_path_factory.mktemp("home"), channels=channels) as running:
        yield running


def headers(body: bytes, event: str = "issues", secret: str = SECRET, **others: str) -> dict[str, str]:
    """As GitHub sends them; a GUID of its own for every delivery."""
    return {
        "content-type": "application/json",
        "x-github-event": event,
        "x-github-delivery": f"guid-{next(_numbers)}",
        "x-hub-signature-256": sign(secret, body),
        **others,
    }


def issue(seed: int = 1) -> bytes:
    return json.dumps(payload("issues", seed)).encode()


def stored(running: Site) -> int:
    return int(running.rows("SELECT count(*) FROM message")[0][0])


async def test_a_delivery_is_on_disk_when_it_is_answered(one: Site) -> None:
    body = issue()
    sent = headers(body)
    response = await one.client.post(HOOK, content=body, headers=sent)
    told = response.json()
    assert (response.status_code, told["intake"]) == (202, "stored")
    select = "SELECT payload, trust, lane.channel FROM message JOIN lane ON lane.id = lane_id WHERE external_id = ?"
    assert one.rows(select, sent["x-github-delivery"]) == [(body, "external", "github")]
    story = await one.settled(told["id"])
    assert (story["state"], story["batch"]["reason"]) == (
        "dropped",
        "no rule matched; channels.github.unmatched is drop",
    )


async def test_a_redelivery_is_one_message(one: Site) -> None:
    body = issue(2)
    sent = headers(body)
    before = stored(one)
    first, again = [await one.client.post(HOOK, content=body, headers=sent) for _ in range(2)]
    assert (first.status_code, again.status_code) == (202, 202)
    assert again.json() == {**first.json(), "intake": "duplicate"}
    assert stored(one) == before + 1


async def test_a_replay_under_another_delivery_id_or_event_is_a_duplicate(one: Site) -> None:
    """GitHub signs the body alone, so whoever has one signed body can choose both headers."""
    body = issue(21)
    before = stored(one)
    first = await one.client.post(HOOK, content=body, headers=headers(body))
    for event in ("issues", "push", "pull_request"):
        again = await one.client.post(HOOK, content=body, headers=headers(body, event))
        assert again.status_code == 202
        assert again.json() == {**first.json(), "intake": "duplicate"}
    assert stored(one) == before + 1


async def test_a_replayed_ping_is_a_ping_under_any_event(one: Site) -> None:
    body = json.dumps({"zen": "Keep it simple.", "hook_id": 1, "hook": {}, "repository": {"full_name": "a/b"}}).encode()
    before = stored(one)
    answers = [await one.client.post(HOOK, content=body, headers=headers(body, event)) for event in ("ping", "issues")]
    assert [answer.status_code for answer in answers] == [200, 200]
    assert stored(one) == before


async def test_the_same_delivery_with_other_content_is_a_conflict(one: Site) -> None:
    bodies = issue(3), issue(4)
    sent = headers(bodies[0])
    await one.client.post(HOOK, content=bodies[0], headers=sent)
    sent["x-hub-signature-256"] = sign(SECRET, bodies[1])
    refused(await one.client.post(HOOK, content=bodies[1], headers=sent), 409)


async def test_forged_deliveries_are_refused_and_not_stored(one: Site) -> None:
    before = stored(one)
    body = issue(5)
    true = headers(body)
    wrong = [
        {"x-hub-signature-256": sign("another secret", body)},
        {"x-hub-signature-256": sign(SECRET, body + b" ")},
        {"x-hub-signature-256": true["x-hub-signature-256"].upper()},
        {"x-hub-signature-256": true["x-hub-signature-256"][:-1]},
        {"x-hub-signature-256": ""},
        {"x-hub-signature-256": "sha256="},
    ]
    for change in wrong:
        told = refused(await one.client.post(HOOK, content=body, headers={**true, **change}), 401)
        assert told["code"] == "KS-INP-FORGED"
        assert SECRET not in str(told)
    unsigned = {name: value for name, value in true.items() if name != "x-hub-signature-256"}
    refused(await one.client.post(HOOK, content=body, headers=unsigned), 401)
    twice = [*true.items(), ("x-hub-signature-256", sign("another secret", body))]
    refused(await one.client.post(HOOK, content=body, headers=twice), 401)
    assert stored(one) == before


async def test_a_forged_delivery_of_any_shape_is_refused_before_it_is_read(one: Site) -> None:
    for body in (b"", b"\xff", b"[" * 100_000, b"x" * 1_000_000):
        refused(await one.client.post(HOOK, content=body, headers=headers(body, secret="wrong")), 401)


async def test_a_true_delivery_that_cannot_be_read_is_refused(one: Site) -> None:
    before = stored(one)
    for body in (b"", b"{", b"[]", b"\xff", b"[" * 100_000):
        refused(await one.client.post(HOOK, content=body, headers=headers(body)), 422)
    body = issue(6)
    for name in ("x-github-event", "x-github-delivery"):
        for value in ("", "x" * 300, "ping\xff"):
            sent = {**headers(body), name: value}
            raw = {key.encode(): text.encode("latin-1") for key, text in sent.items()}
            refused(await one.client.post(HOOK, content=body, headers=raw), 422)
    assert stored(one) == before


async def test_a_ping_is_answered_and_not_stored(one: Site) -> None:
    before = stored(one)
    body = b'{"zen": "Keep it said."}'
    response = await one.client.post(HOOK, content=body, headers=headers(body, "ping"))
    assert (response.status_code, response.json()) == (200, {"ignored": "ping"})
    refused(await one.client.post(HOOK, content=body, headers=headers(body, "ping", secret="wrong")), 401)
    assert stored(one) == before


async def test_a_form_is_read_too(one: Site) -> None:
    document = issue(7)
    body = b"payload=" + quote_plus(document).encode()
    sent = headers(body, **{"content-type": "application/x-www-form-urlencoded"})
    assert (await one.client.post(HOOK, content=body, headers=sent)).status_code == 202
    select = "SELECT payload FROM message WHERE external_id = ?"
    assert one.rows(select, sent["x-github-delivery"]) == [(document,)]


async def test_text_that_cannot_be_stored_is_made_fit(one: Site) -> None:
    hostile = {"action": "opened", "issue": {"number": 5, "title": "a\0b\ud800", "user": {"login": "\ud800"}}}
    body = json.dumps({**hostile, "repository": {"full_name": "a\0/\ud800"}, "sender": {"login": "\0"}}).encode()
    response = await one.client.post(HOOK, content=body, headers=headers(body))
    story = await one.settled(response.json()["id"])
    assert "a\ufffdb\ufffd" in story["text"]


async def test_a_hook_needs_no_token_and_is_called_by_any_name(one: Site) -> None:
    body = issue(8)
    sent = headers(body, host="keepsaid.example", origin="https://github.com")
    assert (await one.client.post(HOOK, content=body, headers=sent)).status_code == 202


async def test_an_unknown_hook_is_not_found(one: Site) -> None:
    for name in ("gitlab", "http", "github/x", "GitHub"):
        refused(await one.client.post(f"/hooks/{name}", content=b"{}"), 404)


async def test_of_a_storm_every_true_delivery_is_stored_once(one: Site) -> None:
    before = stored(one)
    storm = list(deliveries(11, 32, SECRET))
    statuses = [(await one.client.post(HOOK, content=d.body, headers=dict(d.headers))).status_code for d in storm]
    assert statuses == [401 if delivery.forged else 202 for delivery in storm]
    true = {delivery.id for delivery in storm if not delivery.forged}
    assert stored(one) == before + len(true)


async def test_without_a_secret_the_hook_is_closed(tmp_path: Path) -> None:
    body = issue()
    async with site(tmp_path, channels={"github": {"secret": " "}}) as running:
        for secret in (SECRET, "", " "):
            told = refused(await running.client.post(HOOK, content=body, headers=headers(body, secret=secret)), 404)
            assert told["code"] == "KS-INP-CLOSED"
            assert "channels.github.secret" in told["hint"]
        assert stored(running) == 0


async def test_a_channel_that_is_switched_off_has_no_hook(tmp_path: Path) -> None:
    body = issue()
    async with site(tmp_path, channels={"github": {"secret": SECRET, "enabled": False}}) as running:
        refused(await running.client.post(HOOK, content=body, headers=headers(body)), 404)


async def test_a_delivery_larger_than_allowed_is_refused(tmp_path: Path) -> None:
    buffer = {"payload_bytes_max": 100_000}
    async with site(tmp_path, buffer=buffer, channels={"github": {"secret": SECRET}}) as running:
        body = b"x" * 100_001
        told = refused(await running.client.post(HOOK, content=body, headers=headers(body)), 413)
        assert "100,000 are allowed" in told["title"]
