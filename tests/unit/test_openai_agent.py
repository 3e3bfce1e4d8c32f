"""The agent over the OpenAI protocol, by the real client, against a real server and a model that answers a script."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from tests.unit.http_cast import Site, site

from keepsaid.domain.ids import show
from keepsaid.domain.views import MessageFilter
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Say
from keepsaid.testing.model_server import ModelServer

KEYS: dict[str, dict[str, Any]] = {
    "ann": {"token": "a" * 40},
    "bob": {"token": "b" * 40},
    "reader": {"token": "c" * 40, "scopes": ["read"]},
    "webui": {"token": "d" * 40, "people": True},
}
Message = dict[str, Any]


def user(text: str) -> Message:
    return {"role": "user", "content": text}


def assistant(text: str) -> Message:
    return {"role": "assistant", "content": text}


@dataclass(frozen=True)
class Agent:
    """A running instance, its model, and clients of two keys."""

    site: Site
    model: ModelServer

    def client(self, key: str = "ann") -> openai.AsyncOpenAI:
        """The real client, without retries of its own."""
        token = str(KEYS[key]["token"])
        return openai.AsyncOpenAI(base_url=f"{self.site.address.url}/v1", api_key=token, max_retries=0)

    async def say(self, messages: Sequence[Message], chat: str = "", key: str = "ann", **more: Any) -> str:
        """The answer to the last of these messages."""
        headers = {"X-Keepsaid-Conversation": chat} if chat else {}
        async with self.client(key) as client:
            made: Any = client.chat.completions.create
            answer = await made(model="keepsaid", messages=list(messages), extra_headers=headers, **more)
        return answer.choices[0].message.content or ""

    async def stored(self) -> list[str]:
        """What was said, oldest first."""
        found = await self.site.instance.operations.find(MessageFilter(limit=1_000))
        return [one.message.text for one in reversed(found)]

    def shown(self, number: int = -1) -> list[tuple[str, str]]:
        """What the model was shown in a request, without the system prompt."""
        request = self.model.requests[number]
        return [(str(one["role"]), str(one["content"])) for one in request.messages if one["role"] != "system"]


def numbered(request: ChatRequest) -> Reaction:
    """An answer that names the number of its request."""
    return Say(f"answer {request.number}")


@asynccontextmanager
async def agent(root: Path, script: Any = numbered) -> AsyncIterator[Agent]:
    async with ModelServer(script) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "none"}
        async with site(root, models=models, keys=KEYS) as here:
            yield Agent(here, model)


async def test_an_answer_is_whole_and_says_what_it_cost(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        answer = await client.chat.completions.create(model="keepsaid", messages=[{"role": "user", "content": "Hello"}])
    assert answer.choices[0].message.content == "answer 1"
    assert answer.choices[0].finish_reason == "stop"
    assert answer.model == "keepsaid"
    assert answer.id.startswith("chatcmpl-")
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


async def test_a_chat_that_grows_is_stored_once(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        first = await here.say([user("one")])
        second = await here.say([user("one"), assistant(first), user("two")])
        third = await here.say([user("one"), assistant(first), user("two"), assistant(second), user("three")])
        assert await here.stored() == ["one", "two", "three"]
        assert [first, second, third] == ["answer 1", "answer 2", "answer 3"]
        said = [text for _, text in here.shown()]
    assert said[:4] == ["one", "answer 1", "two", "answer 2"]
    assert said[-1] == "three"


async def test_the_same_call_again_gets_the_same_answer_and_asks_no_model(tmp_path: Path) -> None:
    history = [user("one"), assistant("answer 1"), user("two")]
    async with agent(tmp_path) as here:
        await here.say(history[:1], "room")
        answers = [await here.say(history, "room") for _ in range(3)]
        assert answers == ["answer 2"] * 3
        assert len(here.model.requests) == 2
        assert await here.stored() == ["one", "two"]


async def test_an_edited_message_leaves_what_was_said_after_it(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("one")], "room")
        await here.say([user("one"), assistant("answer 1"), user("two")], "room")
        third = [user("one"), assistant("answer 1"), user("two"), assistant("answer 2"), user("three")]
        await here.say(third, "room")
        edited = [user("one"), assistant("answer 1"), user("two, edited")]
        assert await here.say(edited, "room") == "answer 4"
        said = [text for _, text in here.shown()]
        assert said[:2] == ["one", "answer 1"]
        assert said[-1].endswith("two, edited")
        assert not [text for text in said if text in ("two", "answer 2", "three")]
        assert await here.stored() == ["one", "two", "three", "two, edited"]
        # the fork goes on, and so does the one that was left
        assert await here.say([*edited, assistant("answer 4"), user("four")], "room") == "answer 5"
        assert [text for _, text in here.shown()][:4] == ["one", "answer 1", "two, edited", "answer 4"]
        assert await here.say([*third, assistant("answer 3"), user("five")], "room") == "answer 6"
        assert [text for _, text in here.shown()][:6] == ["one", "answer 1", "two", "answer 2", "three", "answer 3"]


async def test_a_history_that_the_client_shortened_goes_on_in_its_conversation(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("one")], "room")
        await here.say([user("one"), assistant("answer 1"), user("two")], "room")
        short = [user("Summary: one, two"), assistant("I see."), user("three")]
        assert await here.say(short, "room") == "answer 3"
        assert [text for _, text in here.shown()][:4] == ["one", "answer 1", "two", "answer 2"]
        assert await here.stored() == ["one", "two", "three"]


async def test_what_was_said_with_another_model_is_shown_and_not_stored_as_said(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("My cat is called Miu"), assistant("Nice name."), user("What is she called?")])
        assert await here.stored() == ["What is she called?"]
        assert "My cat is called Miu" in here.shown()[-2][1]


async def test_instructions_of_the_client_stand_in_the_prompt_and_nowhere_else(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([{"role": "system", "content": "Speak like a pirate."}, user("Hello")], "room")
        system = [str(one["content"]) for one in here.model.requests[0].messages if one["role"] == "system"]
        assert "Speak like a pirate." in "\n".join(system)
        assert await here.stored() == ["Hello"]
        await here.say([user("Hello"), assistant("answer 1"), user("And now?")], "room")
        assert "pirate" not in json.dumps(here.model.requests[1].messages)
        memories = here.site.rows("SELECT count(*) FROM message WHERE text LIKE '%pirate%'")
        assert memories == [(0,)]


async def test_a_stream_has_the_pieces_of_the_model_and_its_cost(tmp_path: Path) -> None:
    """The first piece goes out while the model rests; what comes together with the end may come as one."""
    said = Say("The sail is torn and has to be mended today.", delay_s=0.2, chunk=8, rest_after_s=1.0)
    async with agent(tmp_path, lambda _: said) as here, here.client() as one:
        stream = await one.chat.completions.create(
            model="keepsaid", messages=[{"role": "user", "content": "Which sail?"}], stream=True,
            stream_options={"include_usage": True},
        )  # fmt: skip
        chunks = [chunk async for chunk in stream]
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(pieces) == "The sail is torn and has to be mended today."
    assert len([piece for piece in pieces if piece]) > 1
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"
    assert chunks[-1].usage is not None


async def test_keys_are_apart_whatever_they_call_their_conversation(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        await here.say([user("The code is 4711")], "room", "ann")
        history = [user("The code is 4711"), assistant("answer 1"), user("Which code?")]
        await here.say(history, "room", "bob")
        assert not any(role == "assistant" for role, _ in here.shown())
        [[number]] = here.site.rows("SELECT min(id) FROM message")
        first = f"resp_{show('message', number).partition('_')[2]}"
        async with here.client("bob") as client:
            with pytest.raises(openai.NotFoundError):
                await client.responses.retrieve(first)


async def test_the_people_of_a_program_are_apart(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client("webui") as client:
        for person in ("ann", "bob"):
            await here.say([user("The code is 4711")], "room", "webui", user=person)
        assert len(here.model.requests) == 2
        history = [user("The code is 4711"), assistant("answer 1"), user("Which code?")]
        await here.say(history, "room", "webui", user="bob")
        assert [text for _, text in here.shown()][:2] == ["The code is 4711", "answer 2"]
        first = await client.responses.create(model="keepsaid", input="Hello", user="ann")
        with pytest.raises(openai.APIStatusError) as refused:
            await client.responses.create(model="keepsaid", input="And?", previous_response_id=first.id, user="bob")
        assert refused.value.status_code == 400
        found = await here.site.instance.operations.find(MessageFilter(limit=100))
        assert {one.message.inbound.origin.sender for one in found} == {"ann", "bob"}


async def test_a_client_that_leaves_gets_its_answer_with_the_same_call(tmp_path: Path) -> None:
    script = lambda _: Say("The foresail is torn.", delay_s=0.2, chunk=4)  # noqa: E731
    async with agent(tmp_path, script) as here, here.client() as client:
        create: Any = client.chat.completions.create
        stream = await create(model="keepsaid", messages=[user("Which sail?")], stream=True)
        await anext(aiter(stream))
        await stream.close()
        assert await here.say([user("Which sail?")]) == "The foresail is torn."
        assert len(here.model.requests) == 1
        assert await here.stored() == ["Which sail?"]


async def test_the_same_call_twice_at_once_is_one_message(tmp_path: Path) -> None:
    async with agent(tmp_path) as here:
        said = [user("Which sail?")]
        answers = await asyncio.gather(*(here.say(said, "room") for _ in range(8)))
        assert set(answers) == {"answer 1"}
        assert await here.stored() == ["Which sail?"]


async def test_a_picture_comes_with_its_message(tmp_path: Path) -> None:
    dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    picture = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{dot}"}}
    async with agent(tmp_path) as here:
        asked = [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, picture]}]
        for _ in range(2):
            assert await here.say(asked) == "answer 1"
        [[files]] = here.site.rows("SELECT count(*) FROM file")
        assert files == 1
        assert "image_url" in json.dumps(here.model.requests[0].messages)
        far = {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}
        with pytest.raises(openai.APIStatusError, match="no address is fetched"):
            await here.say([{"role": "user", "content": [far]}])


async def test_calls_that_say_nothing_are_refused(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client, here.client("reader") as reader:
        create: Any = client.chat.completions.create
        for wrong in ([], [assistant("I?")], [{"role": "wizard", "content": "x"}], [user("")]):
            with pytest.raises(openai.BadRequestError):
                await create(model="keepsaid", messages=wrong)
        with pytest.raises(openai.NotFoundError):
            await create(model="gpt-5", messages=[user("Hello")])
        with pytest.raises(openai.PermissionDeniedError):
            await reader.chat.completions.create(model="keepsaid", messages=[{"role": "user", "content": "Hello"}])
        assert await here.stored() == []


async def test_responses_go_on_where_the_one_before_was(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        first = await client.responses.create(model="keepsaid", input="one", instructions="Be short.")
        assert first.output_text == "answer 1"
        second = await client.responses.create(model="keepsaid", input="two", previous_response_id=first.id)
        assert second.output_text == "answer 2"
        assert [text for _, text in here.shown()][:2] == ["one", "answer 1"]
        again = await client.responses.create(model="keepsaid", input="two", previous_response_id=first.id)
        assert again.id == second.id
        other = await client.responses.create(model="keepsaid", input="other", previous_response_id=first.id)
        assert other.output_text == "answer 3"
        assert [text for _, text in here.shown()][:2] == ["one", "answer 1"]
        assert "two" not in json.dumps(here.model.requests[-1].messages)
        found = await client.responses.retrieve(second.id)
        assert (found.status, found.output_text) == ("completed", "answer 2")


async def test_deleted_response_is_found_no_more_and_its_conversation_stays(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client, here.client("bob") as other:
        first = await client.responses.create(model="keepsaid", input="one")
        with pytest.raises(openai.NotFoundError):
            await other.responses.delete(first.id)
        sent = {"Authorization": f"Bearer {'a' * 40}"}
        answer = await here.site.client.delete(f"/v1/responses/{first.id}", headers=sent)
        assert answer.json() == {"id": first.id, "object": "response", "deleted": True}
        for gone in (client.responses.retrieve, client.responses.delete):
            with pytest.raises(openai.NotFoundError):
                await gone(first.id)
        with pytest.raises(openai.BadRequestError, match="no such response"):
            await client.responses.create(model="keepsaid", input="two", previous_response_id=first.id)
        history: Any = [user("one"), assistant("answer 1"), user("two")]
        second = await client.responses.create(model="keepsaid", input=history)
        assert [text for _, text in here.shown()][:2] == ["one", "answer 1"]
        await client.responses.delete(second.id)
        assert await here.stored() == ["one", "two"]


async def test_a_conversation_that_the_server_keeps_takes_the_same_words_twice(tmp_path: Path) -> None:
    async with agent(tmp_path) as here, here.client() as client:
        answers = [
            (await client.responses.create(model="keepsaid", input="next", conversation="lesson")).output_text
            for _ in range(3)
        ]
        assert answers == ["answer 1", "answer 2", "answer 3"]
        assert await here.stored() == ["next"] * 3


async def test_a_response_comes_in_events(tmp_path: Path) -> None:
    async with agent(tmp_path, lambda _: Say("Mend the sail first.")) as here, here.client() as client:
        events = [
            one async for one in await client.responses.create(model="keepsaid", input="What first?", stream=True)
        ]
    kinds = [one.type for one in events]
    assert kinds[0] == "response.created"
    assert kinds[-1] == "response.completed"
    assert [one.sequence_number for one in events] == list(range(len(events)))
    text = "".join(one.delta for one in events if one.type == "response.output_text.delta")
    assert text == "Mend the sail first."


LIGHTS = {
    "type": "function",
    "function": {
        "name": "set_light",
        "description": "Switch a light.",
        "parameters": {"type": "object", "properties": {"room": {"type": "string"}}, "required": ["room"]},
    },
}


def switching(request: ChatRequest) -> Reaction:
    """A model that switches a light before it answers."""
    results = [one for one in request.messages if one["role"] == "tool"]
    if not results:
        return Call("set_light", {"room": "hall"})
    return Say(f"The tool said: {results[-1]['content']}")


async def test_a_tool_of_the_client_is_called_by_the_client_and_its_turn_goes_on(tmp_path: Path) -> None:
    async with agent(tmp_path, switching) as here, here.client() as client:
        create: Any = client.chat.completions.create
        asked = [user("Switch on the light in the hall")]
        first = await create(model="keepsaid", messages=asked, tools=[LIGHTS])
        assert first.choices[0].finish_reason == "tool_calls"
        [call] = first.choices[0].message.tool_calls
        assert (call.function.name, json.loads(call.function.arguments)) == ("set_light", {"room": "hall"})
        again = await create(model="keepsaid", messages=asked, tools=[LIGHTS])
        assert again.choices[0].message.tool_calls[0].id == call.id
        called = {"role": "assistant", "content": None, "tool_calls": [call.model_dump()]}
        forged = {"role": "tool", "tool_call_id": "call_of_another", "content": "on"}
        with pytest.raises(openai.APIStatusError) as refused:
            await create(model="keepsaid", messages=[*asked, called, forged], tools=[LIGHTS])
        assert refused.value.status_code == 400
        assert "call_of_another" in str(refused.value)
        result = {"role": "tool", "tool_call_id": call.id, "content": "it is on"}
        history = [*asked, called, result]
        for _ in range(2):
            last = await create(model="keepsaid", messages=history, tools=[LIGHTS])
            assert last.choices[0].finish_reason == "stop"
            assert "it is on" in last.choices[0].message.content
        assert len(here.model.requests) == 2
        history += [assistant(last.choices[0].message.content), user("Thank you")]
        done = await create(model="keepsaid", messages=history)
        assert done.choices[0].message.content
        assert await here.stored() == ["Switch on the light in the hall", "Thank you"]


async def test_a_tool_of_the_client_in_a_stream_and_in_responses(tmp_path: Path) -> None:
    async with agent(tmp_path, switching) as here, here.client() as client:
        create: Any = client.chat.completions.create
        stream = await create(model="keepsaid", messages=[user("Light on")], tools=[LIGHTS], stream=True)
        chunks = [chunk async for chunk in stream]
        calls = [one for chunk in chunks for one in chunk.choices[0].delta.tool_calls or []]
        assert [one.function.name for one in calls] == ["set_light"]
        assert chunks[-1].choices[0].finish_reason == "tool_calls"
        tool: Any = {"type": "function", **LIGHTS["function"]}  # type: ignore[dict-item]
        first = await client.responses.create(model="keepsaid", input="Light on, please", tools=[tool])
        [item] = first.output
        assert item.type == "function_call"
        output: Any = [{"type": "function_call_output", "call_id": item.call_id, "output": "done"}]
        last = await client.responses.create(model="keepsaid", input=output, previous_response_id=first.id)
        assert last.output_text.startswith("The tool said:")
        assert "done" in last.output_text
