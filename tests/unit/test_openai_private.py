"""Temporary chats and incognito over the OpenAI protocol: nothing of them is remembered, whatever the client edits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.unit.openai_cast import proxy_site
from tests.unit.test_openai_agent import KEYS, Agent, Message, agent, assistant, user

TEMPORARY = {"X-OpenWebUI-Chat-Id": "local:Zt5xBq0PpYw4mJcSAAAB"}


async def say(here: Agent, messages: list[Message], head: dict[str, str]) -> str:
    async with here.client() as client:
        create: Any = client.chat.completions.create
        made = await create(model="keepsaid", messages=messages, extra_headers=head)
    return made.choices[0].message.content or ""


async def remembered(here: Agent, query: str) -> list[str]:
    """The texts that recall finds for a query, once nothing is left to be recorded."""
    await here.site.instance.recorder.catch_up()
    head = {"Authorization": f"Bearer {KEYS['ann']['token']}"}
    found = await here.site.client.post("/v1/agent/recall", json={"query": query}, headers=head)
    return [hit["memory"]["text"] for hit in found.json()["hits"]]


async def edited(here: Agent, head: dict[str, str], opening: list[Message]) -> None:
    """A chat in which a message is said, edited and answered once more; the model is shown what was said before."""
    first = await say(here, [*opening, user("The zebra is in the barn")], head)
    said = [*opening, user("The zebra is in the barn"), assistant(first)]
    await say(here, [*said, user("The zebra is striped")], head)
    await say(here, [*said, user("The zebra is plain")], head)
    assert ("assistant", first) in here.shown()
    await say(here, [*said, user("The zebra is plain")], {**head, "X-Keepsaid-Answer": "2"})
    assert ("assistant", first) in here.shown()


@pytest.mark.parametrize("head", [TEMPORARY, {"X-Keepsaid-Conversation": "local:Zt5xBq0PpYw4mJcSAAAB"}])
async def test_a_temporary_chat_of_open_webui_is_not_remembered(tmp_path: Path, head: dict[str, str]) -> None:
    async with agent(tmp_path) as here:
        await edited(here, head, [])
        await say(here, [user("Another zebra, in another temporary chat of the same page")], head)
        await say(here, [user("My horse is a roan")], {"X-OpenWebUI-Chat-Id": "c1"})
        assert await remembered(here, "zebra barn striped plain") == []
        assert "My horse is a roan" in await remembered(here, "horse roan")


async def test_what_is_edited_in_incognito_is_not_remembered_either(tmp_path: Path) -> None:
    head = {"X-Keepsaid-Conversation": "room"}
    async with agent(tmp_path) as here:
        opening = [user("/incognito on")]
        opening.append(assistant(await say(here, opening, head)))
        await edited(here, head, opening)
        assert await remembered(here, "zebra barn striped plain") == []


async def test_a_fork_of_what_was_said_after_incognito_is_remembered_and_does_not_show_it(tmp_path: Path) -> None:
    head = {"X-Keepsaid-Conversation": "room"}
    async with agent(tmp_path) as here:
        said = list[Message]()
        for text in ("/incognito on", "The code is 4711", "/incognito off", "My horse is a roan"):
            said.append(user(text))
            said.append(assistant(await say(here, said, head)))
        await say(here, [*said, user("It eats oats")], head)
        await say(here, [*said, user("It eats barley")], head)
        assert "4711" not in str(here.shown())
        assert "It eats barley" in await remembered(here, "barley")


async def test_a_memory_proxy_does_not_record_a_temporary_chat(tmp_path: Path) -> None:
    async with proxy_site(tmp_path) as one:
        said = {"model": "memory/both", "messages": [user("The zebra is in the barn")]}
        assert (await one.post(said, headers=TEMPORARY)).status_code == 200
        assert await one.recorded(TEMPORARY["X-OpenWebUI-Chat-Id"]) == []
        assert (await one.post(said, headers={"X-OpenWebUI-Chat-Id": "c1"})).status_code == 200
        assert len(await one.recorded("c1")) == 2


async def test_an_answer_that_a_client_edited_is_noted_whatever_the_alphabet(tmp_path: Path) -> None:
    head = {"X-Keepsaid-Conversation": "room"}
    async with agent(tmp_path) as here:
        await say(here, [user("Grüße")], head)
        await say(here, [user("Grüße"), assistant("Something else"), user("Später")], head)
        [second] = here.site.rows("SELECT max(id) FROM message")
        story = await here.site.instance.operations.story(second[0])
        assert story is not None
        assert "client edited" in story.placed
