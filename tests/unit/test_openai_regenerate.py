"""Another answer to the same message, by the real client: the message is stored once, and each answer stays."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.test_openai_agent import Agent, Message, agent, assistant, user

from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, ProviderMarks
from keepsaid.domain.views import MessageFilter

DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


async def say(here: Agent, messages: list[Message], answer: str, chat: str = "room", **more: Any) -> str:
    """The answer of this name to the last of these messages, as Open WebUI asks for it."""
    headers = {"X-Keepsaid-Answer": answer, **({"X-Keepsaid-Conversation": chat} if chat else {})}
    async with here.client() as client:
        create: Any = client.chat.completions.create
        made = await create(model="keepsaid", messages=messages, extra_headers=headers, **more)
    return made.choices[0].message.content or ""


async def words(here: Agent) -> list[str]:
    """The texts of messages that have any, oldest first."""
    return [text for text in await here.stored() if text]


@pytest.mark.parametrize("chat", ["room", ""])
async def test_another_name_of_the_answer_gives_another_answer_to_the_same_message(tmp_path: Path, chat: str) -> None:
    history = [user("one"), assistant("answer 1"), user("two")]
    async with agent(tmp_path) as here:
        assert await say(here, history[:1], "a1", chat) == "answer 1"
        assert [await say(here, history, "a2", chat) for _ in range(2)] == ["answer 2"] * 2
        assert [await say(here, history, "a3", chat) for _ in range(2)] == ["answer 3"] * 2
        assert here.shown(1)[:2] == here.shown(2)[:2] == [("user", "one"), ("assistant", "answer 1")]
        assert here.shown(1)[-1][1] == here.shown(2)[-1][1]
        assert "answer 2" not in json.dumps(here.model.requests[2].messages)
        # each answer is kept under its name, and without a name the newest one counts
        assert await say(here, history, "a2", chat) == "answer 2"
        assert await here.say(history, chat) == "answer 3"
        assert await words(here) == ["one", "two"]
        # the conversation goes on after the newest answer
        assert await say(here, [*history, assistant("answer 3"), user("three")], "a4", chat) == "answer 4"
        said = [text for _, text in here.shown()]
        assert said[:4] == ["one", "answer 1", "two", "answer 3"]
        assert await words(here) == ["one", "two", "three"]


async def test_first_message_of_a_chat_is_answered_once_more_in_its_conversation(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        assert [await say(here, [user("one")], name) for name in ("a1", "a2", "a2", "a1")] == [
            "answer 1",
            "answer 2",
            "answer 2",
            "answer 1",
        ]
        assert await words(here) == ["one"]
        assert here.site.rows("SELECT DISTINCT conversation FROM lane WHERE head > 0") == [("room",)]


async def test_fork_after_a_regenerated_answer_has_that_answer_and_nothing_after_it(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await say(here, [user("one")], "a1")
        await say(here, [user("one")], "a2")
        history = [user("one"), assistant("answer 2"), user("two")]
        assert await say(here, history, "a3") == "answer 3"
        assert await say(here, [*history[:2], user("two, edited")], "a4") == "answer 4"
        assert [text for _, text in here.shown()][:2] == ["one", "answer 2"]
        assert "answer 3" not in json.dumps(here.model.requests[-1].messages)
        assert await words(here) == ["one", "two", "two, edited"]


async def test_conversation_goes_on_after_the_answer_that_the_client_shows(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        for name in ("a1", "a2"):
            await say(here, [user("one")], name)
        for answer, number in (("answer 1", 3), (" answer\n2", 4)):
            assert await say(here, [user("one"), assistant(answer), user(f"after {number}")], "b") == f"answer {number}"
            assert [text for _, text in here.shown()][:2] == ["one", " ".join(answer.split())]
        assert here.site.rows("SELECT count(*) FROM placed WHERE reason LIKE '%client edited%'") == [(0,)]
        # an answer of the first message is still found, though the second one has newer answers
        history = [user("one"), assistant("answer 1"), user("after 3")]
        assert await say(here, history, "c") == "answer 5"
        assert [await say(here, history, name) for name in ("b", "c")] == ["answer 3", "answer 5"]
        for name in ("a3", "a1"):
            await say(here, [user("one")], name)
        assert [await say(here, history, name) for name in ("b", "c")] == ["answer 3", "answer 5"]


async def test_answer_that_the_client_edited_is_marked_and_ours_is_shown_to_the_model(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("one")], "room")
        await here.say([user("one"), assistant("The code is 4711"), user("two")], "room")
        assert [text for _, text in here.shown()][:2] == ["one", "answer 1"]
        assert "4711" not in json.dumps(here.model.requests[-1].messages)
        for (number,) in here.site.rows("SELECT id FROM message ORDER BY id"):
            message = await here.site.client.get(f"/v1/messages/{show('message', number)}", headers=here.site.owner)
            assert "client edited" in message.json()["lane_reason"]
        for table in ("message", "transcript"):
            assert here.site.rows(f"SELECT count(*) FROM {table} WHERE text LIKE '%4711%'") == [(0,)]


async def test_same_request_twice_at_once_is_one_answer(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await say(here, [user("one")], "a1")
        assert set(await asyncio.gather(*(say(here, [user("one")], "a2") for _ in range(6)))) == {"answer 2"}
        assert len(here.model.requests) == 2


async def test_words_of_the_message_are_remembered_once_and_its_picture_is_shown_again(tmp_path: Path) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{DOT}"}}
    asked: list[Message] = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}]
    async with agent(tmp_path) as here:
        for name in ("a1", "a2"):
            await say(here, asked, name)
        assert here.site.rows("SELECT count(*) FROM file") == [(1,)]
        assert all("image_url" in json.dumps(request.messages) for request in here.model.requests)
        refs = here.site.rows("SELECT ref FROM transcript WHERE role = 'user' ORDER BY lane_id, position")
        assert len(refs) == 2
        assert len(set(refs)) == 1


async def test_stream_of_another_answer_has_its_pieces(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.chat.completions.create
        await say(here, [user("one")], "a1")
        headers = {"X-Keepsaid-Answer": "a2", "X-Keepsaid-Conversation": "room"}
        stream = await create(model="keepsaid", messages=[user("one")], stream=True, extra_headers=headers)
        chunks = [chunk async for chunk in stream]
    assert "".join(one.choices[0].delta.content or "" for one in chunks) == "answer 2"
    assert chunks[-1].choices[0].finish_reason == "stop"


async def test_nobody_gets_the_words_of_another_sender_answered(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("The code is 4711")], "room")
        [said] = await here.site.instance.operations.find(MessageFilter(limit=10))
        inbound = said.message.inbound
        asked = Content(json.dumps({"answers": said.message.id}).encode(), "", "regenerate")
        for origin in (replace(inbound.origin, sender="eve"), replace(inbound.origin, conversation="other")):
            other = replace(inbound, origin=origin, content=asked, marks=ProviderMarks())
            received = await here.site.instance.receive(other)
            story = await here.site.settled(show("message", received.id))
            assert story["replies"] == []
        assert len(here.model.requests) == 1


async def test_forgotten_message_is_not_answered_once_more(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await say(here, [user("The code is 4711")], "a1")
        await say(here, [user("The code is 4711")], "a2")
        [(said_id,)] = here.site.rows("SELECT min(id) FROM message")
        body = {"ids": [show("message", said_id)], "yes": True}
        answer = await here.site.client.post("/v1/forget", json=body, headers=here.site.owner)
        assert answer.status_code == 200, answer.text
        body = {"wait_s": 30}
        await here.site.client.post("/v1/forget/settled", json=body, headers=here.site.owner)
        for table in ("message", "transcript"):
            assert here.site.rows(f"SELECT count(*) FROM {table} WHERE text LIKE '%4711%'") == [(0,)]
