"""Media over HTTP: what a bot hands over is stored before it is acknowledged, and found again by what answers it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import pytest_asyncio
from tests.unit.http_cast import Site, refused, site

pytestmark = pytest.mark.asyncio(loop_scope="module")

ANN = {"id": 7, "first_name": "Ann"}
JSON = {"Content-Type": "application/json"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def one(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Site]:
    """A server at which nobody answers, with a channel of its own for Telegram."""
    channels = {"telegram": {"trust": "external"}}
    async with site(tmp_path_factory.mktemp("home"), answering=False, channels=channels) as running:
        yield running


def message(number: int, chat: int = -5, **fields: object) -> dict[str, Any]:
    return {"message_id": number, "chat": {"id": chat, "type": "group"}, "from": ANN, "text": f"no. {number}", **fields}


async def hand(one: Site, source: object, query: str = "", headers: dict[str, str] | None = None) -> httpx2.Response:
    body = json.dumps(source).encode()
    return await one.client.post(f"/v1/media/telegram{query}", content=body, headers={**JSON, **(headers or {})})


async def test_a_message_is_kept_with_all_that_its_medium_says(one: Site) -> None:
    answer = await hand(one, {"update_id": 1, "message": message(1)})
    assert answer.status_code == 201
    told = answer.json()
    assert (told["intake"], told["conversation"], told["lane"]) == (
        "stored",
        "telegram:chat:-5",
        "root:telegram:chat:-5",
    )
    story = (await one.client.get(answer.headers["location"])).json()
    shown = [story[name] for name in ("channel", "account", "sender", "name", "text", "external_id", "trust")]
    assert shown == ["http", "default", "7", "Ann", "no. 1", "telegram:-5:1", "known"]


async def test_the_same_again_is_a_duplicate_and_another_under_its_id_a_conflict(one: Site) -> None:
    first = await hand(one, message(10))
    again = await hand(one, message(10))
    assert (again.status_code, again.json()) == (200, {**first.json(), "intake": "duplicate"})
    assert refused(await hand(one, message(10, text="other")), 409)["code"] == "KS-INP-CONFLICT"
    edit = await hand(one, {"update_id": 4, "edited_message": message(10, text="other", edit_date=9)})
    assert edit.status_code == 201


async def test_a_reply_joins_the_lane_of_what_it_answers_and_a_topic_is_a_lane(one: Site) -> None:
    in_topic = message(20, message_thread_id=19, is_topic_message=True)
    topic = (await hand(one, in_topic)).json()["lane"]
    assert topic == "topic:telegram:chat:-5:19"
    reply = await hand(one, message(21, reply_to_message={"message_id": 20}))
    assert reply.json()["lane"] == topic
    unknown = await hand(one, message(22, reply_to_message={"message_id": 999}))
    assert unknown.json()["lane"] == "reply:telegram:chat:-5:999"


async def test_a_channel_of_its_own_needs_the_owner_and_brings_its_settings(one: Site) -> None:
    refused(await hand(one, message(30), "?channel=telegram"), 401)
    kept = await hand(one, message(30), "?channel=telegram&account=bot-1", one.owner)
    story = (await one.client.get(kept.headers["location"], headers=one.owner)).json()
    assert [story[name] for name in ("channel", "account", "trust")] == ["telegram", "bot-1", "external"]


async def test_what_nobody_said_is_acknowledged_with_the_reason_and_not_kept(one: Site) -> None:
    before = one.rows("SELECT count(*) FROM message")
    ignored = await hand(one, {"update_id": 5, "callback_query": {}})
    assert (ignored.status_code, ignored.json()) == (200, {"ignored": "the update holds no message"})
    assert one.rows("SELECT count(*) FROM message") == before


async def test_what_is_wrong_is_named_and_nothing_is_kept(one: Site) -> None:
    before = one.rows("SELECT count(*) FROM message")
    wrong = await hand(one, {"update_id": 6, "message": {**message(1), "chat": {"type": "group"}}})
    assert "'message.chat.id' is missing" in refused(wrong, 422)["title"]
    assert "'channle'" in refused(await hand(one, message(1), "?channle=x"), 400)["title"]
    assert refused(await hand(one, message(1), "?channel=nowhere"), 422)["code"] == "KS-INP-CHANNEL"
    refused(await hand(one, message(1), "?reply_url=http://x.org"), 422)
    refused(await hand(one, [1]), 400)
    nowhere = await one.client.post("/v1/media/github", content=b"{}", headers=JSON)
    assert refused(nowhere, 404)["hint"] == "webhooks of GitHub go to /hooks/github"
    assert one.rows("SELECT count(*) FROM message") == before


async def test_a_reply_that_was_shown_may_be_named(one: Site) -> None:
    wrong = await one.client.post(
        "/v1/replies/rep_0000000000001/seen", content=b'{"provider_id": 7}', headers=one.owner
    )
    refused(wrong, 400)
    unknown = await one.client.post(
        "/v1/replies/rep_0000000000001/seen", content=b'{"provider_id": "7"}', headers=one.owner
    )
    assert unknown.json() == {"seen": False}


async def test_the_rules_of_lanes_come_from_the_settings(tmp_path: Path) -> None:
    lanes = {"reply": "literal", "infer": "on"}
    async with site(tmp_path, answering=False, lanes=lanes) as other:
        bob = {"id": 8, "first_name": "Bob"}
        asked = await hand(other, message(1, text="where is the key of the red cupboard?"))
        begun = await hand(other, {**message(2, text="hello all, does the printer work?"), "from": bob})
        joined = await hand(other, message(3, text="Bob: no, it is jammed"))
        reply = await hand(other, message(4, reply_to_message={"message_id": 1}))
        found = [one.json()["lane"].removesuffix(begun.json()["id"]) for one in (asked, begun, joined, reply)]
        place = "telegram:chat:-5"
        assert found == [f"root:{place}", f"strand:{place}:", f"strand:{place}:", f"reply:{place}:1"]
