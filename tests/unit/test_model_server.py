"""The scripted model, seen by the clients that real providers are called with."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx2
import openai
import pytest
from openai import AsyncOpenAI
from pydantic_ai import exceptions as errors
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelRequest, ModelResponse, PartDeltaEvent, PartStartEvent, TextPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from tests.waits import HANG_S

from keepsaid.testing import model_script as ms
from keepsaid.testing.model_server import ModelServer

HELLO: list[Any] = [{"role": "user", "content": "hello"}]
WEATHER: list[Any] = [{"type": "function", "function": {"name": "weather", "parameters": {"type": "object"}}}]


class Bench(NamedTuple):
    """A server and the two clients connected to it."""

    server: ModelServer
    client: AsyncOpenAI
    model: OpenAIChatModel

    async def say(self, **more: Any) -> Any:
        """Ask as the OpenAI client does."""
        return await self.client.chat.completions.create(model="m", messages=HELLO, **more)

    async def stream(self, **more: Any) -> list[Any]:
        """Ask for a stream as the OpenAI client does; all its chunks."""
        stream = await self.client.chat.completions.create(model="m", messages=HELLO, stream=True, **more)
        return [chunk async for chunk in stream]

    async def broken_stream(self, **more: Any) -> tuple[str, openai.APIConnectionError]:
        """Ask for a stream that breaks; what it said before, and how it broke."""
        said = ""
        with pytest.raises(openai.APIConnectionError) as caught:  # noqa: PT012 - it breaks while it is read
            stream = await self.client.chat.completions.create(model="m", messages=HELLO, stream=True, **more)
            async for chunk in stream:
                said += chunk.choices[0].delta.content or ""
        return said, caught.value

    async def ask(self, *, streamed: bool, read_s: float = HANG_S) -> ModelResponse:
        """Ask as pydantic-ai does; only reading may time out, so that the server has the request by then."""
        patience: Any = httpx2.Timeout(HANG_S, read=read_s)  # the type names httpx, which only others install
        messages, settings = [ModelRequest.user_text_prompt("hello")], ModelSettings(timeout=patience)
        tools = ModelRequestParameters(function_tools=[ToolDefinition(name="weather")])
        if not streamed:
            return await model_request(self.model, messages, model_settings=settings, model_request_parameters=tools)
        async with model_request_stream(
            self.model, messages, model_settings=settings, model_request_parameters=tools
        ) as stream:
            async for _ in stream:
                pass
            return stream.get()


@asynccontextmanager
async def connected(script: ms.Script | ms.Reactor | None = None) -> AsyncIterator[Bench]:
    async with (
        ModelServer(script) as server,
        AsyncOpenAI(base_url=server.url, api_key="key-1", max_retries=0, timeout=HANG_S) as client,
    ):
        yield Bench(server, client, OpenAIChatModel("m", provider=OpenAIProvider(openai_client=client)))


class TestAnswers:
    async def test_text(self) -> None:
        async with connected(ms.Script(ms.Say("hi"))) as bench:
            first, second = await bench.say(), await bench.say()
        assert first.choices[0].message.content == "hi"
        assert first.choices[0].finish_reason == "stop"
        assert (first.id, first.created, first.model, first._request_id) == ("chatcmpl-1", 0, "m", "req_1")
        assert second.choices[0].message.content == "You said: hello"
        assert second.id == "chatcmpl-2"

    async def test_usage_follows_the_bytes_or_the_script(self) -> None:
        async with connected(ms.Script(ms.Say("12345"), ms.Say("x", usage=(1000, 100)))) as bench:
            counted, scripted = (await bench.say()).usage, (await bench.say()).usage
            size = len(bench.server.requests[0].raw)
        assert (counted.prompt_tokens, counted.completion_tokens) == (-(-size // 4), 2)
        assert counted.total_tokens == counted.prompt_tokens + 2
        assert (scripted.prompt_tokens, scripted.completion_tokens) == (1000, 100)

    async def test_stream(self) -> None:
        async with connected(ms.Script(ms.Say("abcdefgh", chunk=3))) as bench:
            chunks = await bench.stream(stream_options={"include_usage": True})
        assert [c.choices[0].delta.content for c in chunks[:-2]] == ["", "abc", "def", "gh"]
        assert chunks[0].choices[0].delta.role == "assistant"
        assert chunks[-2].choices[0].finish_reason == "stop"
        assert chunks[-1].choices == []
        assert chunks[-1].usage.completion_tokens == 2

    async def test_stream_has_no_usage_unless_asked(self) -> None:
        async with connected() as bench:
            chunks = await bench.stream()
        assert chunks[-1].choices[0].finish_reason == "stop"
        assert all(chunk.usage is None for chunk in chunks)

    @pytest.mark.parametrize("streamed", [False, True])
    async def test_text_through_pydantic_ai(self, streamed: bool) -> None:
        async with connected(ms.Script(ms.Say("grüße \U0001f600 " * 9, usage=(7, 3)))) as bench:
            response = await bench.ask(streamed=streamed)
        assert response.text == "grüße \U0001f600 " * 9
        assert (response.usage.input_tokens, response.usage.output_tokens) == (7, 3)
        assert response.finish_reason == "stop"

    async def test_events_of_a_stream(self) -> None:
        async with (
            connected(ms.Script(ms.Say("abcdef", chunk=2))) as bench,
            model_request_stream(bench.model, [ModelRequest.user_text_prompt("x")]) as stream,
        ):
            events = [event async for event in stream]
        starts = [e.part for e in events if isinstance(e, PartStartEvent)]
        assert starts == [TextPart("ab")]
        assert sum(isinstance(e, PartDeltaEvent) for e in events) == 2


class TestCalls:
    async def test_call(self) -> None:
        async with connected(ms.Script(ms.Call("weather", {"city": "Porto"}, "Let me look."))) as bench:
            choice = (await bench.say(tools=WEATHER)).choices[0]
        (call,) = choice.message.tool_calls
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Let me look."
        assert (call.id, call.function.name) == ("call_1_1", "weather")
        assert json.loads(call.function.arguments) == {"city": "Porto"}

    async def test_streamed_calls(self) -> None:
        calls = ms.Calls((ms.Call("a", {"n": 1}), ms.Call("b", '{"broken":')))
        async with connected(ms.Script(calls)) as bench:
            chunks = await bench.stream(tools=WEATHER)
        deltas = [d for chunk in chunks for d in chunk.choices[0].delta.tool_calls or []]
        named = [(d.index, d.id, d.function.name) for d in deltas if d.id]
        assert named == [(0, "call_1_1", "a"), (1, "call_1_2", "b")]
        assert "".join(d.function.arguments for d in deltas if d.index == 1) == '{"broken":'
        assert chunks[-1].choices[0].finish_reason == "tool_calls"

    @pytest.mark.parametrize("streamed", [False, True])
    async def test_calls_through_pydantic_ai(self, streamed: bool) -> None:
        calls = ms.Calls((ms.Call("weather", {"city": "Lisbon"}, "Both."), ms.Call("weather", "[not json")))
        async with connected(ms.Script(calls)) as bench:
            response = await bench.ask(streamed=streamed)
        first, second = response.tool_calls
        assert response.text == "Both."
        assert first.args_as_dict() == {"city": "Lisbon"}
        assert second.args == "[not json"
        assert [call.tool_call_id for call in response.tool_calls] == ["call_1_1", "call_1_2"]

    @pytest.mark.parametrize("streamed", [False, True])
    async def test_empty(self, streamed: bool) -> None:
        async with connected(ms.Script(ms.Empty())) as bench:
            response = await bench.ask(streamed=streamed)
        assert not response.text
        assert response.finish_reason == "stop"

    @pytest.mark.parametrize("slow", [ms.Say("late", 0.02), ms.Call("late", {}, "", 0.02)])
    async def test_delay(self, slow: ms.Reaction) -> None:
        loop = asyncio.get_running_loop()
        async with connected(ms.Script(slow)) as bench:
            asked = loop.time()
            await bench.say()
            assert loop.time() - asked >= 0.02

    async def test_clock(self) -> None:
        async with (
            ModelServer(clock=lambda: 1700000000.9) as server,
            AsyncOpenAI(base_url=server.url, api_key="k") as client,
        ):
            assert (await client.chat.completions.create(model="m", messages=HELLO)).created == 1700000000

    async def test_an_obedient_model(self) -> None:
        def obey(request: ms.ChatRequest) -> ms.Reaction:
            if request.last("tool"):
                return ms.Say(f"The tool said {request.last('tool')}.")
            return ms.Call(request.tool_names[0], {})

        tool: list[Any] = [*HELLO, {"role": "assistant"}, {"role": "tool", "content": "rain"}]
        async with connected(obey) as bench:
            asked = await bench.client.chat.completions.create(model="m", messages=HELLO, tools=WEATHER)
            told = await bench.client.chat.completions.create(model="m", messages=tool, tools=WEATHER)
        assert asked.choices[0].finish_reason == "tool_calls"
        assert told.choices[0].message.content == "The tool said rain."

    async def test_models(self) -> None:
        async with connected() as bench:
            assert [model.id async for model in bench.client.models.list()] == ["scripted"]


REFUSALS = [
    (ms.BAD_KEY, openai.AuthenticationError, errors.ModelAuthenticationError),
    (ms.NO_MODEL, openai.NotFoundError, errors.ModelNotFoundError),
    (ms.TOO_LONG, openai.BadRequestError, errors.ModelContextWindowExceededError),
    (ms.RATE_LIMITED, openai.RateLimitError, errors.ModelRateLimitError),
    (ms.NO_QUOTA, openai.RateLimitError, errors.ModelQuotaExceededError),
    (ms.BROKEN, openai.InternalServerError, errors.ModelServerError),
    (ms.UNAVAILABLE, openai.InternalServerError, errors.ModelUnavailableError),
    (ms.OVERLOADED, openai.InternalServerError, errors.ModelOverloadedError),
]


class TestFailures:
    @pytest.mark.parametrize(("refuse", "sdk", "ours"), REFUSALS, ids=lambda v: getattr(v, "code", None))
    async def test_refuse(
        self, refuse: ms.Refuse, sdk: type[openai.APIStatusError], ours: type[errors.ModelAPIError]
    ) -> None:
        async with connected(ms.Script(default=refuse)) as bench:
            with pytest.raises(sdk) as plain:
                await bench.say()
            for streamed in (False, True):
                with pytest.raises(ours) as wrapped:
                    await bench.ask(streamed=streamed)
                assert wrapped.value.provider_error_code == refuse.code
            assert bench.server.clients == 1
        assert (plain.value.status_code, plain.value.code) == (refuse.status, refuse.code)
        assert refuse.message in str(plain.value)

    @pytest.mark.parametrize(("retry_after", "read"), [(3, 3.0), (0.25, 0.25), ("7", 7.0), (None, None)])
    async def test_retry_after(self, retry_after: float | str | None, read: float | None) -> None:
        refuse = ms.Refuse(429, "rate_limit_exceeded", retry_after=retry_after)
        async with connected(ms.Script(refuse)) as bench:
            with pytest.raises(errors.ModelRateLimitError) as caught:
                await bench.ask(streamed=False)
        assert caught.value.retry_after == read

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("reaction", [ms.Hang(), ms.Stall("a long text", 6), ms.Stall("x"), ms.Say("late", 60)])
    async def test_a_timeout_ends_the_wait_of_both(self, reaction: ms.Reaction, streamed: bool) -> None:
        async with connected(ms.Script(reaction)) as bench:
            with pytest.raises(errors.ModelTimeoutError):
                await bench.ask(streamed=streamed, read_s=0.05)
            await bench.server.wait_for(1)  # else the next request would get the reaction that hangs
            await bench.server.wait_idle()
            assert (await bench.say()).choices[0].message.content == "You said: hello"

    async def test_a_stall_brings_its_first_characters(self) -> None:
        async with connected(ms.Script(ms.Stall("abcdefgh", 5))) as bench:
            said, error = await bench.broken_stream(timeout=httpx2.Timeout(HANG_S, read=0.1))
            await bench.server.wait_idle()
        assert said == "abcde"
        assert isinstance(error, openai.APITimeoutError)

    @pytest.mark.parametrize("streamed", [False, True])
    @pytest.mark.parametrize("reaction", [ms.Hang(0), ms.Cut("a long text", 6)])
    async def test_a_broken_connection(self, reaction: ms.Reaction, streamed: bool) -> None:
        async with connected(ms.Script(reaction)) as bench:
            with pytest.raises(errors.ModelConnectionError) as caught:
                await bench.ask(streamed=streamed)
        assert not isinstance(caught.value, errors.ModelTimeoutError)
        assert caught.value.phase == "read"

    async def test_a_cut_brings_its_first_characters_then_a_reset(self) -> None:
        async with connected(ms.Script(ms.Cut("abcdefgh", 5))) as bench:
            said, error = await bench.broken_stream()
        assert said == "abcde"
        root: BaseException = error
        while (cause := root.__cause__ or root.__context__) is not None:
            root = cause
        assert isinstance(root, ConnectionResetError)

    @pytest.mark.parametrize("body", ["<html>oops", "", "{}", "[]"])
    @pytest.mark.parametrize("streamed", [False, True])
    async def test_garble(self, body: str, streamed: bool) -> None:
        async with connected(ms.Script(ms.Garble(body))) as bench:
            with pytest.raises((errors.UnexpectedModelBehavior, errors.ModelAPIError)):
                await bench.ask(streamed=streamed)

    async def test_an_error_inside_a_stream(self) -> None:
        event = 'data: {"error": {"message": "slow down", "code": "rate_limit_exceeded"}}\n\n'
        async with connected(ms.Script(ms.Garble(event))) as bench:
            with pytest.raises(errors.ModelRateLimitError) as caught:
                await bench.ask(streamed=True)
        assert caught.value.in_stream

    async def test_closing_the_server_ends_every_wait(self) -> None:
        async with connected(ms.Script(default=ms.Hang())) as bench:
            waiting = [asyncio.create_task(bench.ask(streamed=streamed)) for streamed in (False, True)]
            await bench.server.wait_for(2)
            await bench.server.__aexit__(None, None, None)
            ended = await asyncio.wait_for(asyncio.gather(*waiting, return_exceptions=True), HANG_S)
        assert all(isinstance(error, errors.ModelConnectionError) for error in ended)

    async def test_a_script_that_raises_fails_the_test(self) -> None:
        def wrong(_: ms.ChatRequest) -> ms.Reaction:
            raise OSError("a mistake in the script")

        with pytest.raises(OSError, match="a mistake in the script"):  # noqa: PT012 - leaving raises it
            async with connected(wrong) as bench:
                with pytest.raises(openai.APIConnectionError):
                    await bench.say()

    async def test_the_error_of_a_script_is_noted_on_the_error_of_a_test(self) -> None:
        def wrong(_: ms.ChatRequest) -> ms.Reaction:
            raise ValueError("a mistake in the script")

        with pytest.raises(openai.APIConnectionError) as caught:
            async with connected(wrong) as bench:
                await bench.say()
        assert "a mistake in the script" in caught.value.__notes__[0]


class TestRecord:
    async def test_what_the_model_saw(self) -> None:
        async with connected() as bench:
            await bench.ask(streamed=True)
            await bench.say(tools=WEATHER)
            streamed, plain = bench.server.requests
        assert json.loads(streamed.raw) == streamed.body
        assert (streamed.number, streamed.stream, streamed.include_usage) == (1, True, True)
        assert (plain.number, plain.stream, plain.include_usage) == (2, False, False)
        assert plain.messages == HELLO
        assert plain.tools == WEATHER
        assert plain.tool_names == streamed.tool_names == ["weather"]
        assert plain.headers["authorization"] == "Bearer key-1"
        assert plain.headers["x-stainless-retry-count"] == "0"
        assert plain.model == "m"

    async def test_the_very_bytes(self) -> None:
        body = b'{ "messages" :[{"role":"user","content":[{"type":"text","text":"a"},{"text":"b"}]}]}'
        async with ModelServer() as server, httpx2.AsyncClient() as http:
            answer = await http.post(f"{server.url}/chat/completions", content=body)
        assert server.requests[0].raw == body
        assert answer.json()["choices"][0]["message"]["content"] == "You said: ab"

    async def test_retries_are_seen(self) -> None:
        async with connected(ms.Script(ms.Refuse(500, retry_after=0.001))) as bench:
            await bench.client.with_options(max_retries=1).chat.completions.create(model="m", messages=HELLO)
            counts = [r.headers["x-stainless-retry-count"] for r in bench.server.requests]
        assert counts == ["0", "1"]

    async def test_wait_for(self) -> None:
        async with connected(ms.Script(ms.Hang())) as bench:
            seen = asyncio.create_task(bench.server.wait_for(2))
            hanging = asyncio.create_task(bench.say())
            await bench.server.wait_for(1)
            assert not seen.done()
            await bench.say()
            assert [request.number for request in await seen] == [1, 2]
            with pytest.raises(TimeoutError):
                await bench.server.wait_for(3, within_s=0.01)
            hanging.cancel()
            await bench.server.wait_idle()

    async def test_clients_at_once_share_few_connections(self) -> None:
        async with connected() as bench:
            for _ in range(20):
                await bench.say()
            assert bench.server.clients == 1
            answers = await asyncio.gather(*(bench.say() for _ in range(50)))
            assert len({answer.id for answer in answers}) == 50
            assert len(bench.server.requests) == 70

    async def test_a_large_request_and_answer(self) -> None:
        text = "long " * 400_000
        async with connected(ms.Script(ms.Say(text), ms.Say(text, chunk=1000))) as bench:
            messages: list[Any] = [{"role": "user", "content": text}]
            plain = await bench.client.chat.completions.create(model="m", messages=messages)
            response = await bench.ask(streamed=True)
        assert plain.choices[0].message.content == text == response.text
        assert bench.server.requests[0].last("user") == text

    async def test_a_script_can_be_replaced_and_grow(self) -> None:
        async with connected() as bench:
            bench.server.script = ms.Script(ms.Say("one")).then(ms.Say("two"), lambda r: ms.Say(r.last("user")))
            said = [(await bench.say()).choices[0].message.content for _ in range(4)]
        assert said == ["one", "two", "hello", "You said: hello"]
