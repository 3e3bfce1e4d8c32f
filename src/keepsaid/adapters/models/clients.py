"""Clients: one HTTP client a provider, without retries of its own, closed with the runtime."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from contextvars import ContextVar

from pydantic_ai.models import Model as ProviderModel

from keepsaid.ports.model import at_once

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


def _openai(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from openai import DefaultAsyncHttpxClient  # noqa: PLC0415 - only the provider in use is imported
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    from keepsaid.adapters.models.plain_openai import PlainOpenAI  # noqa: PLC0415
    from keepsaid.adapters.models.tool_schemas import TransformsOnce  # noqa: PLC0415

    class Chat(TransformsOnce, OpenAIChatModel):
        """Transforms tool schemas once."""

    http = DefaultAsyncHttpxClient(event_hooks={"request": [_on_record]})
    client = PlainOpenAI(api_key=key, base_url=address, max_retries=0, http_client=http)
    resources.push_async_callback(client.close)
    return Chat(model, provider=OpenAIProvider(openai_client=client))


def _anthropic(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from anthropic import AsyncAnthropic, DefaultAsyncHttpxClient  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    from keepsaid.adapters.models.tool_schemas import TransformsOnce  # noqa: PLC0415

    class Chat(TransformsOnce, AnthropicModel):
        """Transforms tool schemas once."""

    http = DefaultAsyncHttpxClient(event_hooks={"request": [_on_record]})
    client = AsyncAnthropic(api_key=key, base_url=address, max_retries=0, http_client=http)
    resources.push_async_callback(client.close)
    return Chat(model, provider=AnthropicProvider(anthropic_client=client))
