"""Servers of files for Nostr (Blossom, BUD-01 and BUD-02): an encrypted file is uploaded there under its SHA-256.

They are asked by https at a public address alone, and no redirect is followed. One that has the file already gets it no
second time, so that any try may be repeated.
"""

from __future__ import annotations

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import field
from enum import Enum
from hashlib import sha256
from urllib.parse import urlsplit

import httpx2

from keepsaid.adapters.channels.abilities import NOSTR
from keepsaid.adapters.channels.http_client import HTTP_ERRORS, LazyClient
from keepsaid.adapters.channels.nostr.files import unshared_client
from keepsaid.adapters.channels.nostr.keys import NostrForged
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.sealing import NewUpload, SealedUpload, sealed_upload
from keepsaid.adapters.channels.public_address import AddressFinder, NotPublic, checked_url, public_address
from keepsaid.adapters.channels.uploads import GONE, UPLOAD_S, UploadSource, no_uploads, not_sent
from keepsaid.domain.reply import StoredReply
from keepsaid.errors import FileRefused, StoreError
from keepsaid.values import frozen

_AUTHORIZATION = 24_242
"""The kind of the events that allow a request (BUD-01)."""

_EXPIRES_S = 600
_ASK_S, _CONNECT_S = 15.0, 10.0
_ANSWER_BYTES_MAX = 65_536
_LATER = (408, 425, 429)
_RETRY_MS_MAX = 3_600_000
_NO_PACKAGE = "the package cryptography, which encrypts files, is not installed"
_LOOPBACK = ("127.0.0.1", "localhost")


class UploadState(Enum):
    """The state of a file: a server has it, none takes it, one may take it later, or it is not kept any more."""

    KEPT = "kept"
    REFUSED = "refused"
    AWAY = "away"
    GONE = "gone"


@frozen
class UploadResult:
    """Where a file is now; `detail` names the servers and why they do not have it."""

    state: UploadState
    detail: str = ""
    retry_after_ms: int | None = None


@frozen
class _MediaRequest:
    """A request to a server of files."""

    method: str
    url: str
    timeout_s: float = _ASK_S
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | None = field(default=None, repr=False)


@frozen
class _MediaAnswer:
    status: int
    body: bytes = b""
    retry_after_ms: int | None = None


class NostrUploads:
    """Uploads by the account of a pool to `servers`, such as https://host; `source` reads the files."""

    def __init__(
        self,
        pool: NostrPool,
        servers: Sequence[str] = (),
        source: UploadSource = no_uploads,
        find_address: AddressFinder = public_address,
        make_client: Callable[[], httpx2.AsyncClient] = unshared_client,
    ) -> None:
        self._pool = pool
        self._servers = list(dict.fromkeys(one.rstrip("/") for one in servers))
        self._source = source
        self._find_address = find_address
        self._client = LazyClient(make_client)
        self._trusted = frozenset(filter(None, map(_loopback_origin, self._servers)))

    @property
    def bytes_max(self) -> int:
        """How large a file may be; 0 without servers."""
        return NOSTR.uploads if self._servers else 0

    async def seal(self, reply: StoredReply) -> list[NewUpload | str]:
        """The files of a reply, each under a new key, or what is said in its place. Raises StoreError."""
        return [await self._sealed(reply, file.number) for file in reply.files]

    async def bring(self, reply: StoredReply, file: SealedUpload) -> UploadResult:
        """Have a server keep a file, unless one does; never raises."""
        try:
            content = await self._content(reply, file.number)
            blob = None if content is None else await asyncio.to_thread(file.sealed, content)
        except StoreError as error:
            return UploadResult(UploadState.AWAY, error.what)
        except FileRefused:
            return UploadResult(UploadState.AWAY, _NO_PACKAGE)
        if blob is None or sha256(blob).hexdigest() != file.digest:
            return UploadResult(UploadState.GONE, GONE)
        found: list[UploadResult] = []
        for server in list(self._servers):
            found.append(await self._bring_to(server, file.digest, blob))
            if found[-1].state is UploadState.KEPT:
                self._prefer(server)
                return found[-1]
        details = "; ".join(one.detail for one in found) or "no server of files is set up any more"
        if (away := next((one for one in found if one.state is UploadState.AWAY), None)) is not None:
            return UploadResult(UploadState.AWAY, details, away.retry_after_ms)
        return UploadResult(UploadState.REFUSED, details)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _sealed(self, reply: StoredReply, number: int) -> NewUpload | str:
        file = next(one for one in reply.files if one.number == number)
        if (content := await self._source(file)) is None:
            return not_sent(file.name, GONE)
        try:
            return await asyncio.to_thread(sealed_upload, file, content, tuple(self._servers))
        except FileRefused:
            return not_sent(file.name, _NO_PACKAGE)

    async def _content(self, reply: StoredReply, number: int) -> bytes | None:
        file = next((one for one in reply.files if one.number == number), None)
        return None if file is None else await self._source(file)

    def _prefer(self, server: str) -> None:
        """Name a server first in what follows: it took a file."""
        if self._servers[:1] != [server]:
            self._servers = [server, *(one for one in self._servers if one != server)]

    async def _bring_to(self, server: str, digest: str, blob: bytes) -> UploadResult:
        """Have one server keep a file. It has it if it says so to HEAD, whatever it answered to the upload."""
        host = urlsplit(server).netloc
        kept = _MediaRequest("HEAD", f"{server}/{digest}")
        try:
            if (await self._ask(kept)).status == 200:
                return UploadResult(UploadState.KEPT)
            headers = await asyncio.to_thread(self._headers, digest)
            answer = await self._ask(_MediaRequest("PUT", f"{server}/upload", UPLOAD_S, headers, blob))
            if answer.status in (200, 201) and (_is_of(answer, digest) or (await self._ask(kept)).status == 200):
                return UploadResult(UploadState.KEPT)
        except NotPublic:
            return UploadResult(UploadState.REFUSED, f"{host} is not https:// at a public address")
        except NostrForged as error:
            return UploadResult(UploadState.REFUSED, f"{error}")
        except HTTP_ERRORS as error:
            return UploadResult(UploadState.AWAY, f"{host} cannot be reached ({type(error).__name__})")
        detail = f"{host} answered {answer.status}"
        if answer.status in (200, 201):
            return UploadResult(UploadState.AWAY, f"{detail}, and does not have the file")
        if answer.status in _LATER or answer.status >= 500:
            return UploadResult(UploadState.AWAY, detail, answer.retry_after_ms)
        return UploadResult(UploadState.REFUSED, detail)

    def _headers(self, digest: str) -> Mapping[str, str]:
        """The headers of an upload, with the event that allows it. Raises NostrForged."""
        now_s = self._pool.clock.now_ms() // 1_000
        tags = [["t", "upload"], ["x", digest], ["expiration", str(now_s + _EXPIRES_S)]]
        event = self._pool.keys.sign(_AUTHORIZATION, "Upload a file", tags, now_s)
        allowed = f"Nostr {b64encode(event.encode()).decode()}"
        return {"Authorization": allowed, "Content-Type": "application/octet-stream", "X-SHA-256": digest}

    async def _ask(self, asked: _MediaRequest) -> _MediaAnswer:
        """Make a request. Raises NotPublic and HTTP_ERRORS."""
        target = await checked_url(asked.url, self._trusted, self._find_address)
        client = await self._client.opened()
        more = {"sni_hostname": target.server_name} if target.server_name else {}
        timeout = httpx2.Timeout(asked.timeout_s, connect=_CONNECT_S, pool=_CONNECT_S)
        headers = {"User-Agent": "keepsaid", **asked.headers, **target.headers}
        async with asyncio.timeout(asked.timeout_s):
            request = client.build_request(
                asked.method, target.url, headers=headers, content=asked.content, timeout=timeout, extensions=more
            )
            response = await client.send(request, stream=True, follow_redirects=False)
            body = bytearray()
            async with aclosing(response):
                async for piece in response.aiter_bytes():
                    body += piece[: _ANSWER_BYTES_MAX - len(body)]
                    if len(body) >= _ANSWER_BYTES_MAX:
                        break
        wait = response.headers.get("retry-after", "")
        wait_ms = min(int(wait[:9]) * 1_000, _RETRY_MS_MAX) if wait.isascii() and wait.isdigit() else None
        return _MediaAnswer(response.status_code, bytes(body), wait_ms)


def _is_of(answer: _MediaAnswer, digest: str) -> bool:
    """Whether an answer describes the file that was uploaded (BUD-02)."""
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and found.get("sha256") == digest


def _loopback_origin(server: str) -> str:
    """The origin of a server on this machine, which is asked as it is; "" of any other."""
    parts = urlsplit(server)
    return f"{parts.scheme}://{parts.netloc}" if parts.hostname in _LOOPBACK else ""
