"""A running instance with memory proxies in front of a scripted model, and real clients of the OpenAI library."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from openai import AsyncOpenAI, DefaultAsyncHttpxClient
from tests.unit.http_cast import Site, site

from keepsaid.testing.model_server import ModelServer

PROVIDER_KEY = "sk-provider-" + "p" * 30
KEYS: dict[str, dict[str, Any]] = {
    "ann": {"token": "a" * 40},
    "bob": {"token": "b" * 40},
    "reader": {"token": "c" * 40, "scopes": ["read"]},
    "talker": {"token": "d" * 40, "scopes": ["talk"]},
    "club": {"token": "e" * 40, "direct": False},
}


@dataclass(frozen=True)
class ProxySite:
    """The instance, the provider behind its proxies, and what a key sees of both."""

    here: Site
    provider: ModelServer

    def client(self, key: str = "ann", **options: Any) -> AsyncOpenAI:
        """The library's client with a key, which does not retry."""
        given = {"max_retries": 0, "timeout": 120.0, **options}
        http = DefaultAsyncHttpxClient(trust_env=False)
        return AsyncOpenAI(base_url=f"{self.here.address.url}/v1", api_key=token(key), http_client=http, **given)

    async def post(self, body: object, key: str = "ann", headers: Mapping[str, str] | None = None) -> httpx2.Response:
        """A call without the library."""
        sent = {"Authorization": f"Bearer {token(key)}", **(headers or {})}
        path = "/v1/chat/completions"
        if isinstance(body, bytes):
            return await self.here.client.post(path, content=body, headers=sent)
        return await self.here.client.post(path, json=body, headers=sent)

    async def save(self, text: str, key: str = "ann") -> None:
        """Put a memory of a key's sender."""
        sent = {"Authorization": f"Bearer {token(key)}"}
        told = await self.here.client.post("/v1/memories", json={"text": text}, headers=sent)
        assert told.status_code == 201, told.text

    async def recorded(self, conversation: str, key: str = "ann") -> list[tuple[str, str]]:
        """What is recorded of a conversation, as role and text."""
        sent = {"Authorization": f"Bearer {token(key)}"}
        told = await self.here.client.get("/v1/lanes", params={"conversation": conversation}, headers=sent)
        assert told.status_code == 200, told.text
        return [(one["role"], one["text"]) for one in told.json()["messages"]]


def token(key: str) -> str:
    """The token of a key of the cast; any other text is a token itself."""
    return str(KEYS[key]["token"]) if key in KEYS else key


def proxies(url: str) -> dict[str, dict[str, Any]]:
    """Proxies in front of a provider: one for each use of memory, and one for a single key."""
    base = {"base_url": url, "key": PROVIDER_KEY, "model": "scripted-1"}
    return {
        "both": base,
        "off": {**base, "memory": "off"},
        "read": {**base, "memory": "read"},
        "write": {**base, "memory": "write"},
        "own": {**base, "keys": ["bob"]},
        "narrow": {**base, "concurrent_max": 1},
    }


@asynccontextmanager
async def proxy_site(root: Path, **settings: Any) -> AsyncIterator[ProxySite]:
    """An instance with proxies, and its provider, while the block runs."""
    async with ModelServer() as provider:
        openai = {"proxies": proxies(provider.url)}
        async with site(root, answering=False, keys=KEYS, openai=openai, **settings) as here:
            yield ProxySite(here, provider)
