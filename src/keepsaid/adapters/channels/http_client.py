"""The HTTP client of a channel: made when it is first used; requests are traced, and answers are bounded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing

import httpx2

from keepsaid.adapters.channels.certificates import authorities
from keepsaid.adapters.channels.sending import SendTrace
from keepsaid.values import frozen

_CONNECTIONS = httpx2.Limits(max_connections=16, max_keepalive_connections=4, keepalive_expiry=20.0)
_CONNECT_S = 5.0
"""How long a connection may take at most, and a place among those of the client."""

HTTP_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, httpx2.StreamError, OSError, RuntimeError, ValueError)
"""What a request may raise that was not answered."""


class LazyClient:
    """A client that is made when it is first used."""

    def __init__(self, make: Callable[[], httpx2.AsyncClient]) -> None:
        self._make = make
        self._client: httpx2.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def opened(self) -> httpx2.AsyncClient:
        """The client."""
        async with self._opening:
            if self._client is None:
                # the first of all clients loads the certificates of the system, which takes too long for the loop
                self._client = await asyncio.to_thread(self._make)
            return self._client

    async def close(self) -> None:
        """Close its connections."""
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def plain_client(limits: httpx2.Limits = _CONNECTIONS) -> httpx2.AsyncClient:
    """A client that asks no proxy of the environment."""
    return httpx2.AsyncClient(limits=limits, trust_env=False, verify=authorities())


@frozen
class HttpCall:
    """A request: its method, its address, its body and headers, and the seconds it may take."""

    method: str
    url: str
    content: bytes | None
    headers: Mapping[str, str]
    timeout_s: float


@frozen
class HttpResult:
    """The whole answer: its status, its headers by lower-case name, and its body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class BoundedHttp:
    """Makes requests whose answers have a limit in bytes. Redirects are answers like any other."""

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._client = LazyClient(plain_client)

    async def call(self, call: HttpCall, attempt: SendTrace) -> HttpResult:
        """Make a request; `attempt` follows it. Raises HTTP_ERRORS, ValueError for an answer that is too long."""
        client = await self._client.opened()
        async with asyncio.timeout(call.timeout_s):
            request = client.build_request(
                call.method,
                call.url,
                content=call.content,
                headers=dict(call.headers),
                timeout=httpx2.Timeout(
                    call.timeout_s, connect=min(_CONNECT_S, call.timeout_s), pool=min(_CONNECT_S, call.timeout_s)
                ),
                extensions={"trace": attempt.note},
            )
            response = await client.send(request, stream=True, follow_redirects=False)
            body = bytearray()
            async with aclosing(response):
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > self._bytes_max:
                        raise ValueError("the answer is too long")
        headers = {name.lower(): value for name, value in response.headers.items()}
        return HttpResult(response.status_code, headers, bytes(body))

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()
