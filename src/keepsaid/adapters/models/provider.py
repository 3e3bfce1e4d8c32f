"""Providers through pydantic-ai: the only file that knows it. Imported when the first call is made."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from contextvars import ContextVar
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from ssl import SSLContext
from typing import Any

from httpx2 import create_ssl_context
from openai import AsyncOpenAI
from openai.resources.chat import AsyncChat
from openai.resources.chat.completions import AsyncCompletions
from openai.types.chat import ChatCompletionMessageParam
from pydantic_ai import direct, exceptions, messages
from pydantic_ai.agent import AbstractAgent
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from keepsaid import errors
from keepsaid.domain.prompt import Role, ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest, Tool, at_once

_log = logging.getLogger("keepsaid.models")

BEGUN: ContextVar[Callable[[], Awaitable[None]]] = ContextVar("begun", default=at_once)
"""What a call waits for when its request is ready, before any of it is sent."""


def build(provider: str, model: str, key: str, address: str | None) -> tuple[ProviderModel, AsyncExitStack]:
    """A provider's model and what must be closed after it."""
    resources = AsyncExitStack()
    if provider == "anthropic":
        return _anthropic(model, key, address, resources), resources
    return _openai(model, key, address, resources), resources


async def _on_record(_: object) -> None:
    await BEGUN.get()()


@cache
def authorities() -> SSLContext:
    """The certificates of the system, which take 30 ms to load."""
    return create_ssl_context()


def _openai(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415 - only the provider in use is imported
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    class Chat(TransformsOnce, OpenAIChatModel):
        """Transforms tool schemas once."""

    http = DefaultAsyncHttpxClient(event_hooks={"request": [_on_record]}, verify=authorities())
    client = PlainOpenAI(api_key=key, base_url=address, max_retries=0, http_client=http)
    resources.push_async_callback(client.close)
    return Chat(model, provider=OpenAIProvider(openai_client=client))


def _anthropic(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    class Chat(TransformsOnce, AnthropicModel):
        """Transforms tool schemas once."""

    http = DefaultAsyncHttpxClient(event_hooks={"request": [_on_record]}, verify=authorities())
    client = AsyncAnthropic(api_key=key, base_url=address, max_retries=0, http_client=http)
    resources.push_async_callback(client.close)
    return Chat(model, provider=AnthropicProvider(anthropic_client=client))


class PlainOpenAI(AsyncOpenAI):
    """The library walks every message once for each type one could have, a quarter of a millisecond a message on the
    event loop, and every tool's schema, to rename keys that have no other name. Sent as `extra_body` they are only
    written as JSON."""

    @cached_property
    def chat(self) -> AsyncChat:
        """The chat resource, with completions that skip the walk."""
        return _Chat(self)


class _Chat(AsyncChat):
    @cached_property
    def completions(self) -> AsyncCompletions:
        return _Completions(self._client)


class _Completions(AsyncCompletions):
    async def create(
        self, *, messages: Iterable[ChatCompletionMessageParam], extra_body: object = None, **rest: Any
    ) -> Any:
        body = {"messages": list(messages), **(extra_body if isinstance(extra_body, Mapping) else {})}
        if isinstance(rest.get("tools"), list):
            body["tools"] = rest.pop("tools")
        return await super().create(messages=[], extra_body=body, **rest)


_KEPT_MAX = 1_024


def definition_of(tool: Tool) -> ToolDefinition:
    """Return a tool as the library takes it: the same object for each tool with the same name, text and schema."""
    return _definition(tool.name, tool.description, json.dumps(dict(tool.schema)))


@lru_cache(_KEPT_MAX)
def _definition(name: str, description: str, schema: str) -> ToolDefinition:
    return ToolDefinition(name=name, description=description, parameters_json_schema=json.loads(schema))


class TransformsOnce(ProviderModel):
    """A mixin for models of the library: a tool's schema is transformed for the provider once, not in each request."""

    def customize_request_parameters(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        """Return the parameters of a request in the form that the provider takes."""
        offered = model_request_parameters.function_tools
        if len(self._transformed) > _KEPT_MAX:
            self._transformed.clear()
        new = [tool for tool in offered if id(tool) not in self._transformed]
        made = super().customize_request_parameters(replace(model_request_parameters, function_tools=new))
        for tool, transformed in zip(new, made.function_tools, strict=True):
            self._transformed[id(tool)] = tool, transformed
        return replace(made, function_tools=[self._transformed[id(tool)][1] for tool in offered])

    @cached_property
    def _transformed(self) -> dict[int, tuple[ToolDefinition, ToolDefinition]]:
        """By the id of a definition: that definition, which keeps its id taken, and what it is transformed to."""
        return {}


_RETRY_AFTER_S_MAX = 3_600.0
_MISSHAPEN = (IndexError, AttributeError, TypeError, KeyError, ValueError)
_OVERLOADED = (408, 409, 425)
_REFUSED = (400, 413, 422)
_LENGTHY = ("context_length_exceeded", "maximum context length", "prompt is too long", "context size", "context window")
"""How providers and local servers say that a prompt does not fit, beside what their library knows."""

Build = Callable[[], tuple[ProviderModel, AsyncExitStack]]


class ProviderChat:
    """One model of one provider. `build` makes the client on first use.

    `instrument` are pydantic-ai's settings for traces: with them each call has a span, else none.
    """

    def __init__(self, name: str, build: Build, instrument: object = None) -> None:
        self._name = name
        self._instrument = instrument if isinstance(instrument, InstrumentationSettings) else None
        self._model, self._resources = build()
        self._unpriced: set[tuple[str | None, str | None, str | None]] = set()
        self._takes_pictures = False

    @property
    def name(self) -> str:
        return self._name

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Make one call, or two where the model refuses pictures: the second is without them."""
        try:
            return await self._answer(request, delta)
        except errors.ModelTooLong:
            raise
        except errors.ModelRejected as error:
            if not request.prompt.pictures or self._takes_pictures:
                raise
            _log.warning("%s is asked again without pictures: %s", self._name, error.what, extra={"code": error.code})
            return await self._answer(replace(request, prompt=replace(request.prompt, pictures=())), delta)

    async def _answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        settings = ModelSettings(max_tokens=request.tokens_max, timeout=request.limit_s)
        BEGUN.set(request.begun)
        try:
            offered = ModelRequestParameters(function_tools=[definition_of(tool) for tool in request.tools])
            async with asyncio.timeout(request.limit_s):
                stream = direct.model_request_stream(
                    self._model,
                    _history(request),
                    model_settings=settings,
                    model_request_parameters=offered,
                    instrument=self._instrument,
                )
                async with stream as events:
                    async for event in events:
                        if text := _written(event):
                            delta(text)
                    response = events.get()
        except TimeoutError:
            raise errors.ModelTimeout(f"{self._name} did not answer within {request.limit_s:g} s") from None
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise _ours(self._name, error) from error
        except _MISSHAPEN as error:
            raise errors.ModelMalformed(
                f"the answer of {self._name} cannot be read ({type(error).__name__})"
            ) from error
        self._takes_pictures = self._takes_pictures or bool(request.prompt.pictures)
        return self._read(response)

    def _read(self, response: messages.ModelResponse) -> ModelAnswer:
        text = "".join(part.content for part in response.parts if isinstance(part, messages.TextPart))
        calls = tuple(
            ToolCall(part.tool_call_id, part.tool_name, part.args if isinstance(part.args, str) else _json(part.args))
            for part in response.parts
            if isinstance(part, messages.ToolCallPart)
        )
        usage = response.usage
        if response.usage.unmeasured_requests and not calls and response.finish_reason is None:
            raise errors.ModelMalformed(f"the answer of {self._name} broke off")
        if not text.strip() and not calls and not _stopped(response):
            raise errors.ModelMalformed(f"{self._name} ended without an answer ({response.finish_reason})")
        cost = Usage(usage.input_tokens, usage.output_tokens, self._cost(response))
        return ModelAnswer(text, calls, cost, self._name, response.finish_reason == "length")

    def _cost(self, response: messages.ModelResponse) -> int | None:
        """Return the price in millionths of a dollar; None for a model without a known price, looked up once."""
        model = response.provider_name, response.provider_url, response.model_name
        if model in self._unpriced:
            return None
        try:
            return int(response.cost().total_price * 1_000_000)
        except (LookupError, ValueError, AssertionError):
            self._unpriced.add(model)
            return None

    async def close(self) -> None:
        await self._resources.aclose()


class AgentChat:
    """Answers by an agent of pydantic-ai, with the agent's own model, instructions and tools."""

    def __init__(self, agent: AbstractAgent[Any, Any]) -> None:
        self._agent = agent

    @property
    def name(self) -> str:
        return f"agent/{self._agent.name or 'agent'}"

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        await request.begun()
        try:
            async with asyncio.timeout(request.limit_s):
                done = await self._agent.run(message_history=_history(request))
        except TimeoutError:
            raise errors.ModelTimeout(f"{self.name} did not answer within {request.limit_s:g} s") from None
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise _ours(self.name, error) from error
        text, usage = str(done.output), done.usage
        delta(text)
        return ModelAnswer(text, usage=Usage(usage.input_tokens, usage.output_tokens, None), model=self.name)


def _stopped(response: messages.ModelResponse) -> bool:
    """Whether the model stopped by itself; where the provider gave no reason, the library assumes so."""
    return response.finish_reason == "stop" and bool((response.provider_details or {}).get("finish_reason"))


def _written(event: object) -> str:
    if isinstance(event, messages.PartStartEvent) and isinstance(event.part, messages.TextPart):
        return event.part.content
    if isinstance(event, messages.PartDeltaEvent) and isinstance(event.delta, messages.TextPartDelta):
        return event.delta.content_delta
    return ""


def _history(request: ModelRequest) -> list[messages.ModelMessage]:
    """The wire form, made for every call and kept nowhere: values of one turn exist only here."""
    prompt = request.prompt
    parts: list[messages.ModelRequestPart] = [messages.SystemPromptPart(prompt.system)] if prompt.system else []
    made: list[messages.ModelMessage] = []
    sent = (record for _, record in prompt.parts)
    for record in (*sent, *request.exchange):
        if record.role is Role.ASSISTANT:
            if parts:
                made.append(messages.ModelRequest(parts))
            parts = []
            said: list[messages.ModelResponsePart] = [messages.TextPart(record.text)] if record.text else []
            said += [messages.ToolCallPart(call.name, call.arguments, call.id) for call in record.calls]
            made.append(messages.ModelResponse(said))
        elif record.role is Role.TOOL:
            parts.append(messages.ToolReturnPart(record.speaker, record.text, record.call_id))
        else:
            seen = [messages.BinaryContent(one.content, media_type=one.kind) for one in record.pictures]
            parts.append(messages.UserPromptPart([record.text, *seen] if seen else record.text))
    if parts:
        made.append(messages.ModelRequest(parts))
    return made


def _json(value: object) -> str:
    return json.dumps(value if value is not None else {})


_WORDS: tuple[tuple[type[Exception], type[errors.ModelError], str], ...] = (
    (exceptions.ModelAuthenticationError, errors.ModelAuth, "refused the key"),
    (exceptions.ModelQuotaExceededError, errors.ModelQuota, "says there is no credit left"),
    (exceptions.ModelContextWindowExceededError, errors.ModelTooLong, "says the prompt is too long"),
    (exceptions.ModelNotFoundError, errors.ModelRejected, "is not known to the provider"),
    (exceptions.ModelTimeoutError, errors.ModelTimeout, "did not answer in time"),
    (exceptions.ModelRequestTimeout, errors.ModelTimeout, "did not answer in time"),
    (exceptions.ModelConnectionError, errors.ModelUnreachable, "cannot be reached"),
)


def _ours(name: str, error: Exception) -> errors.ModelError:
    """The error tree's word for a provider's failure."""
    if isinstance(error, exceptions.ModelRateLimitError):
        wait = min(error.retry_after, _RETRY_AFTER_S_MAX) if error.retry_after is not None else None
        return errors.ModelUnavailable(f"{name} asks for fewer requests", retry_after_s=wait)
    for theirs, ours, said in _WORDS:
        if isinstance(error, theirs):
            return ours(f"{name} {said}")
    if isinstance(error, exceptions.ModelHTTPError):
        return _http(name, error)
    if isinstance(error, exceptions.UserError | exceptions.ModelRequestRejectedError):
        return errors.ModelRejected(f"{name}: {error}")
    if isinstance(error, exceptions.ModelAPIError):
        return errors.ModelUnavailable(f"{name} broke its answer off")
    return errors.ModelMalformed(f"the answer of {name} cannot be read")


def _http(name: str, error: exceptions.ModelHTTPError) -> errors.ModelError:
    status = error.status_code
    if status >= 500 or status in _OVERLOADED:
        return errors.ModelUnavailable(f"{name} has an outage (HTTP {status})")
    if status in _REFUSED and any(said in str(error.body).casefold() for said in _LENGTHY):
        return errors.ModelTooLong(f"{name} says the prompt is too long (HTTP {status})")
    return errors.ModelRejected(f"{name} refused the request (HTTP {status})")
