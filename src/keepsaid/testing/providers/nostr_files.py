"""A server of files on a loopback port, where people keep what they send by Nostr, encrypted (NIP-17, kind 15).

It takes uploads as Blossom says (BUD-01, BUD-02): under their SHA-256, and allowed by an event that names it.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from base64 import b64decode
from collections.abc import Callable, Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any

from keepsaid.adapters.channels.nostr.keys import NostrForged, NostrKeys
from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection, GoneError, HttpRequest, head
from keepsaid.testing.providers.kept_files import KeptFiles
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless
from keepsaid.values import frozen


@frozen
class SealedFile:
    """A file that was encrypted and kept: its name at the server, its address, and its key in hexadecimal."""

    name: str
    url: str
    key: str
    tags: tuple[tuple[str, str], ...]

    def tags_with(self, **other: str) -> list[list[str]]:
        """The tags of the message that sends it; others are written with `_` for `-`, and left out where empty."""
        found = {**dict(self.tags), **{name.replace("_", "-"): value for name, value in other.items()}}
        return [[name, value] for name, value in found.items() if value]


class NostrFileServer(ListeningServer):
    """Keeps encrypted files; an async context manager.

    `mischief` decides what goes wrong with each request, by its method; `answers` maps a method to the status that it
    gets. Files of more than `bytes_max` are refused. Requests are counted in `calls`.
    """

    def __init__(self, port: int = 0, mischief: MischiefMaker = harmless, bytes_max: int = 25_000_000) -> None:
        super().__init__(self._serve, port)
        self.files = KeptFiles()
        self.mischief = mischief
        self.bytes_max = bytes_max
        self.answers: dict[str, int] = {}
        self.calls: dict[str, int] = {}
        self._news = asyncio.Condition()

    async def wait_for(self, done: Callable[[], bool], within_s: float = 60.0) -> None:
        """Wait until something is so after a request; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    def seal(self, content: bytes, kind: str = "image/png") -> SealedFile:
        """Encrypt a file under a key of its own, and keep it."""
        cipher = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
        key = sha256(f"the key of file {len(self.files.contents)}".encode()).digest()
        nonce = key[:12]
        sealed = cipher.AESGCM(key).encrypt(nonce, content, None)
        name = self.files.keep(sealed)
        told = {
            "file-type": kind,
            "encryption-algorithm": "aes-gcm",
            "decryption-key": key.hex(),
            "decryption-nonce": nonce.hex(),
            "x": sha256(sealed).hexdigest(),
            "ox": sha256(content).hexdigest(),
            "size": str(len(sealed)),
        }
        return SealedFile(name, f"{self.url}/{name}", key.hex(), tuple(told.items()))

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                goes_on = True
                while goes_on:
                    goes_on = await self._answer(connection, await connection.receive())
                    async with self._news:
                        self._news.notify_all()
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request; returns whether the connection goes on."""
        method, name = request.method, request.path.rpartition("/")[2]
        self.calls[method] = self.calls.get(method, 0) + 1
        act = self.mischief(method, sum(self.calls.values()))
        if act is Mischief.DROP:
            await connection.reset()
            return False
        if not act.does:
            later = {"retry-after": "1"} if act is Mischief.SLOW_DOWN else {}
            await connection.send(429 if act is Mischief.SLOW_DOWN else 500, b"", extra=later)
            return True
        if (status := self.answers.get(method)) is not None:
            moved = {"location": f"{self.url}/elsewhere"} if status in (301, 302, 307, 308) else {}
            await connection.write(head(status, {"content-length": "0", **moved}))
            return True
        if method == "GET":
            return await self.files.send(connection, name, request.headers)
        if method == "HEAD":
            found = self.files.contents.get(name)
            size = 0 if found is None else len(found)
            await connection.write(head(404 if found is None else 200, {"content-length": str(size)}))
            return True
        return await self._take(connection, request, act)

    async def _take(self, connection: Connection, request: HttpRequest, act: Mischief) -> bool:
        """Keep what is uploaded, under its SHA-256."""
        digest = sha256(request.body).hexdigest()
        if (request.method, request.path) != ("PUT", "/upload"):
            await connection.send(404, b"")
        elif len(request.body) > self.bytes_max:
            await connection.send(413, b"")
        elif not is_allowed(request.headers.get("authorization", ""), digest):
            await connection.send(401, b"")
        else:
            self.files.contents[digest] = request.body
            if act is Mischief.RESET_AFTER:
                await connection.reset()
                return False
            if act is Mischief.FAIL_AFTER:
                await connection.send(500, b"")
            elif act is Mischief.GARBLE:
                await connection.send(200, b"<html>gateway</html>")
            else:
                kept = {"url": f"{self.url}/{digest}", "sha256": digest, "size": len(request.body)}
                await connection.send(200, json.dumps(kept).encode())
        return True


def is_allowed(authorization: str, digest: str) -> bool:
    """Whether a header allows an upload of the file with a SHA-256: a signed event of kind 24242 that names it."""
    scheme, _, text = authorization.partition(" ")
    try:
        event: Mapping[str, object] = json.loads(b64decode(text, validate=True))
        NostrKeys(sha256(b"a server of files").hexdigest()).verify(event)
    except (ValueError, NostrForged):
        return False
    tags = event["tags"]
    assert isinstance(tags, list), "an event that is genuine has tags"
    named = {tuple(tag[:2]) for tag in tags}
    until = next((int(value) for name, value in named if name == "expiration"), 0)
    wanted = {("t", "upload"), ("x", digest)}
    return scheme == "Nostr" and event["kind"] == 24_242 and wanted <= named and until > int(str(event["created_at"]))


def opened_file(host: NostrFileServer, message: Mapping[str, Any]) -> tuple[str, bytes]:
    """The name and the bytes of a file in a message of kind 15, as its receiver reads them from its server.

    Raises KeyError where the server does not have it, and ValueError for another file than the one that was announced.
    """
    told = {tag[0]: tag[1] for tag in message["tags"]}
    sealed = host.files.contents[str(message["content"]).removeprefix(f"{host.url}/")]
    cipher = importlib.import_module("cryptography.hazmat.primitives.ciphers.aead")
    key, nonce = bytes.fromhex(told["decryption-key"]), bytes.fromhex(told["decryption-nonce"])
    content = bytes(cipher.AESGCM(key).decrypt(nonce, sealed, None))
    found = (sha256(sealed).hexdigest(), sha256(content).hexdigest(), str(len(sealed)))
    if found != (told["x"], told["ox"], told["size"]):
        raise ValueError("the file is another one than the message says")
    return told["name"], content
