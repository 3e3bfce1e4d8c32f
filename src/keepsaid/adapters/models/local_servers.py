"""Asks model servers which models they offer: the usual local ones on loopback, or one at a given base URL."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from keepsaid.values import frozen

LOOK_S = 0.5
"""Seconds that all local servers together have for their answers."""

_BYTES_MAX = 1_000_000
_NAME_CHARS_MAX = 200


@frozen
class LocalServer:
    """A kind of model server: its name for people, the provider of its models, and its base URL."""

    title: str
    provider: str
    base_url: str

    @property
    def place(self) -> str:
        """The host and port, for people."""
        return urlsplit(self.base_url).netloc


LOCAL_SERVERS = (
    LocalServer("Ollama", "ollama", "http://127.0.0.1:11434/v1"),
    LocalServer("LM Studio", "openai", "http://127.0.0.1:1234/v1"),
    LocalServer("llama.cpp", "openai", "http://127.0.0.1:8080/v1"),
    LocalServer("vLLM", "openai", "http://127.0.0.1:8000/v1"),
)
"""Servers that are asked, by the port that each has unless it is changed."""


async def offered_by(servers: Sequence[LocalServer], within_s: float = LOOK_S) -> list[tuple[LocalServer, list[str]]]:
    """Return the servers that answer in time and the chat models of each; the servers are asked at the same time.

    No key is sent. A server that is not there, is too slow or answers with something else is left out.
    """
    import httpx2  # noqa: PLC0415 - only commands that look for models need it

    # On loopback neither a proxy nor a certificate has a part.
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        asked = [asyncio.create_task(_listed(http, one.base_url, {})) for one in servers]
        if asked:
            await asyncio.wait(asked, timeout=within_s)
        ended = [(one, task) for one, task in zip(servers, asked, strict=True) if task.done()]
        answers = [(one, task.result()) for one, task in ended]
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)
    return [(one, names) for one, names in answers if names]


async def models_at(base_url: str, key: str | None, within_s: float) -> tuple[str, list[str]]:
    """Return the base URL that answered, which may be `base_url` with `/v1` added, and the chat models there.

    When neither answers with a list, it is `base_url` and no model.
    """
    import httpx2  # noqa: PLC0415

    base_url = base_url.rstrip("/")
    headers = {"authorization": f"Bearer {key}"} if key else {}
    candidates = (base_url,) if urlsplit(base_url).path else (base_url, f"{base_url}/v1")
    async with httpx2.AsyncClient(timeout=within_s) as http:
        for candidate in candidates:
            if names := await _listed(http, candidate, headers):
                return candidate, names
    return base_url, []


async def _listed(http: Any, base_url: str, headers: dict[str, str]) -> list[str]:
    """Return the names of the chat models at a base URL; empty when it does not list any."""
    import httpx2  # noqa: PLC0415

    try:
        async with http.stream("GET", f"{base_url}/models", headers=headers) as answer:
            answer.raise_for_status()
            content = b""
            async for chunk in answer.aiter_bytes():
                content += chunk
                if len(content) > _BYTES_MAX:
                    return []
        return _names(content)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError):
        return []


def _names(content: bytes) -> list[str]:
    """Return the names that can be typed and stored, without models that only embed. Raises ValueError."""
    listed = json.loads(content)
    entries = listed.get("data") if isinstance(listed, dict) else None
    ids = [entry.get("id") for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    names = [name for name in ids if isinstance(name, str) and name.isprintable() and " " not in name]
    return [name for name in names if 0 < len(name) <= _NAME_CHARS_MAX and "embed" not in name.casefold()]
