"""The stream of a conversation: a page that comes and goes is told all of it once, and sees answers being written."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import Site, refused, site

from keepsaid.domain.ids import read
from keepsaid.ports.channel import TurnProgress
from keepsaid.testing.model_script import Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer


async def stream(at: Site, last: str = "", conversation: str = "room") -> AsyncIterator[dict[str, Any]]:
    """The events of a conversation: kind, id and data."""
    headers = {"Last-Event-ID": last} if last else {}
    path = f"/v1/conversations/{conversation}/events"
    async with at.client.stream("GET", path, headers=headers) as response:
        assert response.status_code == 200
        event: dict[str, Any] = {}
        async for line in response.aiter_lines():
            field, _, value = line.partition(": ")
            if not line and "event" in event:
                yield event
                event = {}
            elif field in ("event", "id"):
                event[field] = value
            elif field == "data":
                event["data"] = json.loads(value)


async def until(
    at: Site, done: Callable[[list[dict[str, Any]]], bool], last: str = "", say: str = ""
) -> list[dict[str, Any]]:
    """What is told until something is so; says something once the stream is open."""
    told: list[dict[str, Any]] = []
    async with aclosing(stream(at, last)) as events:  # type: ignore[type-var]
        if say:
            await at.say(say)
        async for one in events:
            told.append(one)
            if done(told):
                return told
    raise AssertionError(told)


def texts(told: list[dict[str, Any]], kind: str) -> list[str]:
    return [one["data"]["text"] for one in told if one["event"] == kind]


async def test_a_page_is_told_what_is_said_and_answered(tmp_path: Path) -> None:
    async with ModelServer(Script(Say("hello Ann"), Say("bye Ann"))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as at:
            told = await until(at, lambda told: bool(texts(told, "reply")), last="m0.r0", say="hi")
            assert texts(told, "message") == ["hi"]
            assert texts(told, "reply") == ["hello Ann"]
            assert told[0]["event"] == "message"
            await until(at, lambda told: bool(texts(told, "reply")), last=told[-1]["id"], say="bye")
            assert at.rows("SELECT state FROM reply ORDER BY id LIMIT 1") == [("sent",)]


async def test_an_answer_is_seen_while_it_is_written(tmp_path: Path) -> None:
    """Where the model is slower than the page; a reply that the page has already is not written once more."""
    async with ModelServer(lambda _: Say("hello Ann", chunk=5, rest_after_s=0.2)) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as at:
            last, pieces = "m0.r0", list[str]()
            while "".join(pieces) != "hello Ann":
                told = await until(at, lambda told: bool(texts(told, "reply")), last=last, say="hi")
                last, pieces = told[-1]["id"], texts(told, "delta")
            kinds = [one["event"] for one in told]
            assert kinds.index("message") < kinds.index("delta") < kinds.index("reply")
            assert all("id" not in one for one in told if one["event"] in ("delta", "began"))


async def test_the_stages_of_a_turn_are_told_in_order(tmp_path: Path) -> None:
    async with site(tmp_path, answering=False) as at:
        put = (await at.say("hi")).json()
        story = await at.instance.services.asking.story(read("message", put["id"]) or 0)
        assert story is not None
        told: list[str] = []
        async with aclosing(stream(at, "m0.r0")) as events:  # type: ignore[type-var]
            async for one in events:
                told.append(one["event"])
                if one["event"] == "message":
                    for stage in (TurnProgress("began"), TurnProgress("delta", "he"), TurnProgress("tool", "search")):
                        at.instance.hub.tell([story.message], stage)
                if one["event"] == "tool":
                    break
        assert told == ["message", "began", "delta", "tool"]


async def test_who_comes_back_is_told_what_it_missed_once(tmp_path: Path) -> None:
    async with site(tmp_path) as at:
        first = await until(at, lambda told: bool(texts(told, "reply")), last="m0.r0", say="one")
        for text in ("two", "three"):
            await at.settled((await at.say(text)).json()["id"])
        last = first[-1]["id"]
        missed = await until(at, lambda told: len(texts(told, "reply")) == 2, last=last)
        assert texts(missed, "message") == ["two", "three"]
        assert [one["event"] for one in missed] == ["message", "reply", "message", "reply"]
        rest = await until(at, lambda told: bool(texts(told, "reply")), last=missed[-1]["id"], say="four")
        assert texts(rest, "message") == ["four"]
        whole = await until(at, lambda told: len(texts(told, "reply")) == 4, last="m0.r0")
        assert texts(whole, "message") == ["one", "two", "three", "four"]
        assert len({one["data"]["id"] for one in whole}) == 8


async def test_a_new_page_is_told_the_replies_that_nobody_has_seen(tmp_path: Path) -> None:
    """What was said before it came is no news; a reply that nobody fetched is."""
    async with site(tmp_path) as at:
        await at.say("one")
        told = await until(at, lambda told: bool(texts(told, "reply")))
        assert texts(told, "message") == []
        again = await until(at, lambda told: bool(texts(told, "reply")), told[-1]["id"], say="two")
        assert texts(again, "message") == ["two"]
        assert at.rows("SELECT count(*) FROM reply WHERE state = 'sent'")[0][0] >= 1


async def test_a_notice_is_told_too(tmp_path: Path) -> None:
    """That no answer will come is said by no turn, and stands in no transcript."""
    async with ModelServer(Script(Refuse(400))) as server:
        models = {"chat": "openai/scripted", "base_url": server.url, "api_key": "k"}
        async with site(tmp_path, models=models) as at:
            told = await until(at, lambda told: any(one["data"].get("notice") for one in told), say="hi")
            assert texts(told, "reply")


async def test_two_pages_are_told_the_same_and_other_conversations_nothing(tmp_path: Path) -> None:
    async with (
        site(tmp_path) as at,
        aclosing(stream(at, "m0.r0")) as one,  # type: ignore[type-var]
        aclosing(stream(at, "m0.r0")) as two,  # type: ignore[type-var]
    ):
        await at.say("secret", conversation="elsewhere")
        await at.say("hi")
        seen = [[], []]  # type: list[list[dict[str, Any]]]
        for told, events in zip(seen, (one, two), strict=True):
            async for event in events:
                told.append(event)
                if event["event"] == "reply":
                    break
        assert [texts(told, "message") for told in seen] == [["hi"], ["hi"]]
        assert seen[0][-1]["data"]["id"] == seen[1][-1]["data"]["id"]


@pytest.mark.parametrize("last", ["nonsense", "m1", "m-1.r2", "m1.r2;"])
async def test_an_id_of_another_stream_is_refused(tmp_path: Path, last: str) -> None:
    async with site(tmp_path) as at:
        refused(await at.client.get("/v1/conversations/room/events", headers={"Last-Event-ID": last}), 400)
        assert (await at.client.head("/v1/conversations/room/events")).status_code == 200


async def test_it_needs_the_token_of_clients(tmp_path: Path) -> None:
    async with site(tmp_path, server={"port": 0, "token": "t" * 40}) as at:
        refused(await at.client.get("/v1/conversations/room/events"), 401)
