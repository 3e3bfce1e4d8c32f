"""Clients: one HTTP client a provider, without retries of its own, closed with the runtime."""

from __future__ import annotations

from contextlib import AsyncExitStack

from pydantic_ai.models import Model as ProviderModel


def build(provider: str, model: str, key: str, address: str | None) -> tuple[ProviderModel, AsyncExitStack]:
    """A provider's model and what must be closed after it."""
    resources = AsyncExitStack()
    if provider == "anthropic":
        return _anthropic(model, key, address, resources), resources
    return _openai(model, key, address, resources), resources


def _openai(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from pydantic_ai.models.openai import OpenAIChatModel  # noqa: PLC0415 - only the provider in use is imported
    from pydantic_ai.providers.openai import OpenAIProvider  # noqa: PLC0415

    from keepsaid.adapters.models.plain_openai import PlainOpenAI  # noqa: PLC0415

    client = PlainOpenAI(api_key=key, base_url=address, max_retries=0)
    resources.push_async_callback(client.close)
    return OpenAIChatModel(model, provider=OpenAIProvider(openai_client=client))


def _anthropic(model: str, key: str, address: str | None, resources: AsyncExitStack) -> ProviderModel:
    from anthropic import AsyncAnthropic  # noqa: PLC0415
    from pydantic_ai.models.anthropic import AnthropicModel  # noqa: PLC0415
    from pydantic_ai.providers.anthropic import AnthropicProvider  # noqa: PLC0415

    client = AsyncAnthropic(api_key=key, base_url=address, max_retries=0)
    resources.push_async_callback(client.close)
    return AnthropicModel(model, provider=AnthropicProvider(anthropic_client=client))
