"""Tool schemas are transformed once for each tool, and requests contain the same as when they are transformed anew."""

from __future__ import annotations

import json
from contextlib import AsyncExitStack, suppress
from types import MappingProxyType
from typing import Any

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai.models import Model as ProviderModel
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.models.test import TestModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from keepsaid.adapters.models import provider as clients
from keepsaid.adapters.models.provider import ProviderChat, TransformsOnce, definition_of
from keepsaid.domain.prompt import Json, Prompt
from keepsaid.errors import ModelError
from keepsaid.ports.model import ModelRequest, Tool
from keepsaid.testing.reply_receiver import ReplyReceiver

_NESTED: dict[str, Json] = {
    "type": "object",
    "properties": {
        "query": {"type": "string", "description": "Wörter", "title": "Query"},
        "when": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
    },
    "$defs": {"item": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}}},
    "required": ["query"],
    "additionalProperties": False,
}


async def nothing(_: dict[str, Json]) -> str:
    return ""


def tool(name: str, schema: dict[str, Json] | None = None) -> Tool:
    return Tool(name, f"Do {name}.", MappingProxyType(_NESTED if schema is None else schema), nothing)


def plain(provider: str, url: str) -> tuple[ProviderModel, AsyncExitStack]:
    """The model of the library as it is."""
    resources = AsyncExitStack()
    if provider == "openai":
        openai = AsyncOpenAI(api_key="k", base_url=url, max_retries=0)
        resources.push_async_callback(openai.close)
        return OpenAIChatModel("m", provider=OpenAIProvider(openai_client=openai)), resources
    anthropic = AsyncAnthropic(api_key="k", base_url=url, max_retries=0)
    resources.push_async_callback(anthropic.close)
    return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=anthropic)), resources


async def ask(chat: ProviderChat, *tools: Tool) -> None:
    """Send a request; the receiver's answer is none of a model."""
    with suppress(ModelError):
        await chat.answer(ModelRequest(Prompt("Be brief.", (), "", "hello"), tools=tools), lambda _: None)


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
async def test_requests_contain_what_they_contained_before(provider: str) -> None:
    tools = tool("search"), tool("save", {"type": "object", "properties": {}}), tool("ask")
    async with ReplyReceiver() as receiver:
        url = f"http://{receiver.host}"
        ours = ProviderChat("m", lambda: clients.build(provider, "m", "k", url))
        theirs = ProviderChat("m", lambda: plain(provider, url))
        for chat in (theirs, ours, ours):
            await ask(chat, *tools)
        await ask(ours)
        await ours.close()
        await theirs.close()
        before, first, second, bare = [dict(posted.json) for posted in receiver.accepted]
    sent: Any = before["tools"]
    assert len(sent) == 3
    assert {json.dumps(one["tools"]) for one in (first, second)} == {json.dumps(sent)}, "in the same order, too"
    assert first == second == before
    assert "tools" not in bare


class Counting(TestModel):
    """Counts the tools that it transforms."""

    transformed = 0

    def customize_request_parameters(self, model_request_parameters: ModelRequestParameters) -> ModelRequestParameters:
        self.transformed += len(model_request_parameters.function_tools)
        return super().customize_request_parameters(model_request_parameters)


class Once(TransformsOnce, Counting):
    """Transforms once what it is given."""


def names_of(model: Once, *tools: Tool) -> list[str]:
    offered = ModelRequestParameters(function_tools=[definition_of(one) for one in tools])
    return [one.name for one in model.customize_request_parameters(offered).function_tools]


def test_a_tool_is_transformed_once_whatever_is_offered_beside_it() -> None:
    model = Once()
    assert names_of(model, tool("a"), tool("b")) == ["a", "b"]
    assert names_of(model, tool("b"), tool("a")) == ["b", "a"]
    assert names_of(model, tool("b"), tool("c")) == ["b", "c"]
    assert model.transformed == 3


def test_a_tool_with_another_schema_or_text_is_another() -> None:
    schema: dict[str, Json] = {"type": "object", "properties": {"n": {"minimum": 1}}}
    made = [definition_of(tool("a", schema))]
    schema["properties"] = {"n": {"minimum": True}}
    made += [definition_of(tool("a", schema)), definition_of(Tool("a", "Other.", schema, nothing))]
    assert len({id(one) for one in made}) == 3
    assert [json.dumps(one.parameters_json_schema["properties"]) for one in made[:2]] == [
        '{"n": {"minimum": 1}}',
        '{"n": {"minimum": true}}',
    ]
