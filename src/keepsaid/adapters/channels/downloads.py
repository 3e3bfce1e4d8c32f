"""Downloads: the bytes of a file from its provider's servers, as they come; no redirect is followed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from urllib.parse import urlsplit

import httpx2

from keepsaid.adapters.channels.http_client import HTTP_ERRORS, LazyClient, plain_client
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.values import frozen

_CONNECT_S, _READ_S = 10.0, 30.0
_LATER = (408, 425, 429)
_RETRY_S_MAX = 3_600.0
_START_BYTES = 4_096


@frozen
class AnswerStart:
    """How the answer to a download begins: its status, its media type without parameters, and its first bytes.

    The first bytes are read of a refusal alone: of a file they are empty.
    """

    status: int
    kind: str
    text: bytes = b""


def any_answer(start: AnswerStart) -> None:
    """Accept an answer as its status says."""


class FileDownloads:
    """Downloads from the servers of one provider: those of `hosts` and what is below them, and that of `url`.

    Where another server is named, whoever sent the message chose it: nothing is asked of it.
    """

    def __init__(self, provider: str, url: str, hosts: Sequence[str] = ()) -> None:
        self._provider = provider
        self._own = _origin(url)
        self._hosts = tuple(hosts)
        self._client = LazyClient(plain_client)

    async def pieces(
        self, url: str, headers: Mapping[str, str] | None = None, check: Callable[[AnswerStart], None] = any_answer
    ) -> AsyncGenerator[bytes, None]:
        """The bytes at an address. Raises FileRefused and FileUnavailable, neither with the address in its words.

        `check` is called with how the answer begins, and raises what its provider means by it.
        """
        self.check(url)
        client = await self._client.opened()
        download = Download(self._provider, url, headers or {}, check=check)
        async with aclosing(body_of(client, download)) as pieces:
            async for piece in pieces:
                yield piece

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    def check(self, url: str) -> None:
        """Raise FileRefused for an address that is not the provider's."""
        try:
            origin = _origin(url)
        except ValueError:
            raise FileRefused(f"its address at {self._provider} cannot be read") from None
        scheme, host, _ = origin
        theirs = scheme == "https" and any(host == one or host.endswith(f".{one}") for one in self._hosts)
        if origin != self._own and not theirs:
            raise FileRefused(f"its address is not one of {self._provider}")


@frozen
class Download:
    """What is to be downloaded, from whom. Where the address is that of a machine, `server_name` is the name that its
    certificate has to have. `check` is called with how the answer begins, and raises what its provider means by it.
    """

    provider: str
    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    server_name: str = ""
    check: Callable[[AnswerStart], None] = any_answer


async def body_of(client: httpx2.AsyncClient, wanted: Download) -> AsyncGenerator[bytes, None]:
    """The body of an answer. Raises FileRefused and FileUnavailable, whose words name the provider alone."""
    timeout = httpx2.Timeout(_READ_S, connect=_CONNECT_S, pool=_CONNECT_S)
    more = {"sni_hostname": wanted.server_name} if wanted.server_name else {}
    try:
        headers = dict(wanted.headers)
        request = client.build_request("GET", wanted.url, headers=headers, timeout=timeout, extensions=more)
        response = await client.send(request, stream=True, follow_redirects=False)
    except HTTP_ERRORS as error:
        raise _unreached(wanted.provider, error) from None
    async with aclosing(response):
        try:
            wanted.check(await _start_of(response))
            _check_status(wanted.provider, response)
            async for piece in response.aiter_bytes():
                yield piece
        except HTTP_ERRORS as error:
            raise _unreached(wanted.provider, error) from None


def _check_status(provider: str, response: httpx2.Response) -> None:
    status = response.status_code
    if status in _LATER or status >= 500:
        raise FileUnavailable(f"{provider} answered {status}", _retry_after(response))
    if status != 200:
        raise FileRefused(f"{provider} answered {status}")


def _unreached(provider: str, error: Exception) -> FileUnavailable:
    return FileUnavailable(f"{provider} cannot be reached ({type(error).__name__})")


async def _start_of(response: httpx2.Response) -> AnswerStart:
    """How an answer begins. Raises HTTP_ERRORS."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    text = bytearray()
    if response.status_code != 200:
        async for piece in response.aiter_bytes():
            text += piece[: _START_BYTES - len(text)]
            if len(text) >= _START_BYTES:
                break
    return AnswerStart(response.status_code, kind, bytes(text))


def _origin(url: str) -> tuple[str, str, int]:
    """Scheme, host and port of an address. Raises ValueError."""
    parts = urlsplit(url)
    scheme, host = parts.scheme.lower(), (parts.hostname or "").lower()
    return scheme, host, parts.port or (443 if scheme == "https" else 80)


def _retry_after(response: httpx2.Response) -> float | None:
    told = response.headers.get("retry-after", "")
    return min(float(told), _RETRY_S_MAX) if told.isascii() and told.isdigit() else None
