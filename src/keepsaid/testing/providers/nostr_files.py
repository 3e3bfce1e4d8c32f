"""A server of files on a loopback port, where people keep what they send by Nostr, encrypted (NIP-17, kind 15)."""

from __future__ import annotations

import importlib
from contextlib import suppress
from hashlib import sha256

from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import Connection, GoneError
from keepsaid.testing.providers.kept_files import KeptFiles
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
    """Keeps encrypted files; an async context manager."""

    def __init__(self, port: int = 0) -> None:
        super().__init__(self._serve, port)
        self.files = KeptFiles()

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
                    request = await connection.receive()
                    goes_on = await self.files.send(connection, request.path.rpartition("/")[2], request.headers)
        finally:
            await connection.close()
