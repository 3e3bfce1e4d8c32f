"""A provider's OpenAI-compatible API over HTTP: bodies pass through, keys and cookies do not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from keepsaid.errors import ModelTimeout, ModelUnavailable, ModelUnreachable
from keepsaid.text.normal import without_passwords

_SENT = frozenset(("accept", "user-agent", "openai-beta", "anthropic-beta", "http-referer", "x-title"))
"""Headers of a client that a provider receives, with those that begin as below; none names a person."""

_SENT_PREFIX = "x-stainless-"
_RETURNED = frozenset(("content-type", "content-encoding", "x-request-id", "retry-after", "retry-after-ms"))
_RETURNED_PREFIXES = ("openai-", "x-ratelimit-", "x-should-retry")
_STRUCK = b"(key)"
_SECRET_CHARS_MIN = 8
"""Characters of a key that is a secret. Servers without keys are given a word such as `x`, which stands everywhere."""

_PIECE_BYTES = 262_144
_SAFE = "The call was not answered; nothing was recorded."


class UpstreamEndpoint:
    """One provider behind `base_url`. Redirects are not followed: they could lead elsewhere, with the key."""

    def __init__(
        self, base_url: str, key: str | None = None, *, timeout_s: float = 600.0, connections: int = 64
    ) -> None:
        self._base_url = base_url.rstrip("/")
        self._shown = without_passwords(self._base_url)
        self._key = key
        self._timeout_s, self._connections = timeout_s, connections
        self._client: Any = None
        self._opening = asyncio.Lock()

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> UpstreamResponse:
        """Send a body as JSON; returns once the head of the answer is there. Raises ModelUnreachable, ModelTimeout."""
        import httpx2  # noqa: PLC0415 - a program that forwards nothing starts without

        client = await self._opened()
        sent = {name: value for name, value in headers.items() if name in _SENT or name.startswith(_SENT_PREFIX)}
        sent |= {"content-type": "application/json", "accept-encoding": "identity"}
        if self._key:
            sent["authorization"] = f"Bearer {self._key}"
        sent["content-length"] = str(len(body))
        request = client.build_request("POST", f"{self._base_url}{path}", content=_pieces(body), headers=sent)
        try:
            response = await client.send(request, stream=True, follow_redirects=False)
        except httpx2.TimeoutException as error:
            raise _safe(ModelTimeout(f"{self._shown} did not answer in time")) from error
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, ValueError) as error:
            raise _safe(ModelUnreachable(f"{self._shown} cannot be reached ({type(error).__name__})")) from error
        if 300 <= response.status_code < 400:
            await response.aclose()
            raise _safe(ModelUnavailable(f"{self._shown} answered with a redirect ({response.status_code})"))
        return UpstreamResponse(response, self._shown, self._key)

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            await self._client.aclose()

    async def _opened(self) -> Any:
        import httpx2  # noqa: PLC0415 - as above

        async with self._opening:
            if self._client is None:
                timeout = httpx2.Timeout(self._timeout_s, connect=min(10.0, self._timeout_s))
                limits = httpx2.Limits(max_connections=self._connections, keepalive_expiry=20.0)
                # loading the certificates of the system takes 30 ms, too long for the loop
                self._client = await asyncio.to_thread(httpx2.AsyncClient, timeout=timeout, limits=limits)
            return self._client


class UpstreamResponse:
    """The answer of a provider."""

    def __init__(self, response: Any, shown: str, key: str | None) -> None:
        self._response, self._shown = response, shown
        secret = key if key and len(key) >= _SECRET_CHARS_MIN else ""
        self._secret = secret.encode()
        self.status: int = response.status_code
        kept = {name.lower(): value for name, value in response.headers.items() if _is_returned(name.lower())}
        self.headers: Mapping[str, str] = {
            name: value for name, value in kept.items() if not secret or secret not in value
        }  # fmt: skip

    async def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises ModelUnavailable where it ends before its end."""
        import httpx2  # noqa: PLC0415 - as above

        try:
            async for chunk in self._response.aiter_raw():
                yield chunk
        except (httpx2.HTTPError, httpx2.StreamError, OSError) as error:
            what = f"{self._shown} broke its answer off ({type(error).__name__})"
            raise ModelUnavailable(what) from error

    def without_key(self, body: bytes) -> bytes:
        """The body with the provider's key struck out."""
        return body.replace(self._secret, _STRUCK) if self._secret else body

    async def close(self) -> None:
        """Drop the rest of the body."""
        await self._response.aclose()


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    """A body in parts: sending megabytes in one step would hold the event loop."""
    for start in range(0, len(body), _PIECE_BYTES):
        yield body[start : start + _PIECE_BYTES]
        await asyncio.sleep(0)  # else a fast provider takes the whole body in one step of the loop


def _is_returned(name: str) -> bool:
    return name in _RETURNED or name.startswith(_RETURNED_PREFIXES)


def _safe(error: ModelUnavailable) -> ModelUnavailable:
    error.safe = _SAFE
    return error
