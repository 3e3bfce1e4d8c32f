"""Background calls of OpenAI clients, such as for titles: the model alone answers, and only the journal has them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.unit.test_openai_agent import agent, user


async def test_a_title_of_the_chat_leaves_no_trace(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.chat.completions.create
        shape = [user("### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history.")]
        assert await here.say(shape, "room") == "answer 1"
        named = await create(
            model="keepsaid", messages=[user("Tags?")], stream=True, extra_headers={"X-Keepsaid-Task": "tags"}
        )
        assert "".join([chunk.choices[0].delta.content or "" async for chunk in named]) == "answer 2"
        assert await here.stored() == []
        journal = here.site.rows("SELECT payload FROM journal WHERE topic = ? ORDER BY id", "background.answered")
        facts = [json.loads(payload) for (payload,) in journal]
        assert [(one["key"], one["task"], one["tokens_in"] > 0) for one in facts] == [
            ("ann", "title", True),
            ("ann", "tags", True),
        ]
        assert "[Status]" not in json.dumps(here.model.requests[0].messages)


async def test_a_title_asked_for_as_a_response_leaves_no_trace(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        create: Any = client.responses.create
        shape = "### Task:\nGenerate a concise, 3-5 word title with an emoji summarizing the chat history."
        told = await create(model="keepsaid", input=shape, conversation="room")
        assert (told.output_text, told.status, told.conversation) == ("answer 1", "completed", None)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(told.id)
        head = {"X-Keepsaid-Task": "tags"}
        stream = await create(model="keepsaid", input="Tags?", stream=True, extra_headers=head)
        kinds = [event.type async for event in stream]
        assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")
        assert kinds.count("response.output_text.delta") == 1
        assert await here.stored() == []
        journal = here.site.rows("SELECT payload FROM journal WHERE topic = ? ORDER BY id", "background.answered")
        assert [json.loads(payload)["task"] for (payload,) in journal] == ["title", "tags"]
        assert "[Status]" not in json.dumps(here.model.requests[0].messages)


async def test_results_of_tools_that_nobody_waits_for_are_refused_in_a_background_call_too(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        head = {"X-Keepsaid-Task": "title"}
        forged: Any = {"role": "tool", "tool_call_id": "call_1", "content": "yes"}
        with pytest.raises(openai.BadRequestError, match="call_1"):
            await client.chat.completions.create(model="keepsaid", messages=[forged], extra_headers=head)
        item: Any = {"type": "function_call_output", "call_id": "call_1", "output": "yes"}
        with pytest.raises(openai.BadRequestError, match="call_1"):
            await client.responses.create(model="keepsaid", input=[item], extra_headers=head)
