"""Files of Nostr (NIP-17, kind 15): encrypted by whoever sent them, and kept at any server that they chose.

The server is asked by https at a public address alone, and follows no redirect. What it answers is checked against the
hash in the message, and decrypted in memory: AES-GCM shows at the end of a file alone whether it is genuine.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from base64 import b64decode
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from hashlib import sha256
from typing import Any

import httpx2

from keepsaid.adapters.channels.downloads import Download, body_of
from keepsaid.adapters.channels.http_client import LazyClient, plain_client
from keepsaid.adapters.channels.public_address import AddressFinder, CheckedUrl, NotPublic, checked_url, public_address
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, FileUnavailable
from keepsaid.values import frozen

_BYTES_MAX, _NAME_CHARS_MAX = 20_000_000, 200
_TAG_BYTES, _KEY_BYTES = 16, 32
_NONCE_BYTES = range(8, 129)
_PIECE_BYTES = 262_144
_SERVER = "the server of the file"
_AES_GCM = "cryptography.hazmat.primitives.ciphers.aead"
_NO_PACKAGE = "it is encrypted, and the package cryptography, which decrypts it, is not installed"
_TAGS = ("encryption-algorithm", "decryption-key", "decryption-nonce", "x")


def attachment_of(url: str, tags: Mapping[str, str]) -> Attachment:
    """The file of a message by the values of its tags. Its `ref` holds the key, and goes to the store alone."""
    size, ref = tags.get("size", ""), [url.strip(), *(tags.get(name, "").strip() for name in _TAGS)]
    told = int(size) if size.isascii() and size.isdecimal() and len(size) < 19 else 0
    return Attachment(name_of(tags) or "file", tags.get("file-type") or tags.get("m") or "", json.dumps(ref), told)


def name_of(tags: Mapping[str, str]) -> str:
    """The name in the tags of a file, in one line; "" without one."""
    return " ".join(tags.get("name", "").split())[:_NAME_CHARS_MAX]


@frozen
class _SealedFile:
    """Where an encrypted file is, its key and nonce, and its SHA-256 in hexadecimal ("" if it is not known)."""

    url: str
    key: bytes
    nonce: bytes
    digest: str

    def __repr__(self) -> str:
        """Nothing of it: it holds a key."""
        return "_SealedFile()"


def unshared_client() -> httpx2.AsyncClient:
    """A client that uses no connection twice: one address may have several names."""
    return plain_client(httpx2.Limits(max_connections=4, max_keepalive_connections=0))


class NostrFiles:
    """Downloads and decrypts files. `trusted` are origins, such as http://host:port, that are asked as they are."""

    def __init__(
        self,
        trusted: Sequence[str] = (),
        find_address: AddressFinder = public_address,
        make_client: Callable[[], httpx2.AsyncClient] = unshared_client,
    ) -> None:
        self._trusted = frozenset(trusted)
        self._find_address = find_address
        self._client = LazyClient(make_client)

    async def pieces(self, ref: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, decrypted. Raises FileRefused and FileUnavailable, without its address or its key."""
        sealed = _sealed(ref)
        cipher = await asyncio.to_thread(cipher_module)
        content = await asyncio.to_thread(_opened, cipher, sealed, await self._download(sealed.url))
        for at in range(0, len(content), _PIECE_BYTES):
            yield content[at : at + _PIECE_BYTES]

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _download(self, url: str) -> bytearray:
        """The bytes at a URL, 20 MB at most."""
        target = await self._dialled(url)
        download = Download(_SERVER, target.url, {"Accept-Encoding": "identity", **target.headers}, target.server_name)
        content = bytearray()
        async with aclosing(body_of(await self._client.opened(), download)) as pieces:
            async for piece in pieces:
                content += piece
                if len(content) > _BYTES_MAX + _TAG_BYTES:
                    raise FileRefused(f"it is larger than {_BYTES_MAX // 1_000_000} MB")
        return content

    async def _dialled(self, url: str) -> CheckedUrl:
        """The URL with the address that was checked in it. Raises FileRefused and FileUnavailable."""
        try:
            return await checked_url(url, self._trusted, self._find_address)
        except (NotPublic, ValueError):
            raise FileRefused("its server is not https:// at a public address") from None
        except OSError as error:
            raise FileUnavailable(f"{_SERVER} is not found ({type(error).__name__})") from None


def _sealed(ref: str) -> _SealedFile:
    """The file of a `ref`. Raises FileRefused for one that is not encrypted as this module can decrypt it."""
    try:
        url, algorithm, key, nonce, digest = map(str, json.loads(ref))
    except (ValueError, TypeError):
        raise FileRefused("where it is cannot be read") from None
    if algorithm.lower() != "aes-gcm":
        raise FileRefused("it is not encrypted by AES-GCM")
    sealed = _SealedFile(url, _bytes_in(key), _bytes_in(nonce), digest.lower())
    if len(sealed.key) != _KEY_BYTES or len(sealed.nonce) not in _NONCE_BYTES:
        raise FileRefused("its message has no key that fits it")
    return sealed


def _bytes_in(text: str) -> bytes:
    """Bytes in hexadecimal or Base64, as clients write them: NIP-17 does not say which; b"" for neither."""
    for read in (bytes.fromhex, lambda given: b64decode(given, validate=True)):
        try:
            return read(text)
        except ValueError:
            continue
    return b""


def cipher_module() -> Any:
    """The module that has AES-GCM. Raises FileRefused without the package."""
    try:
        return importlib.import_module(_AES_GCM)
    except ImportError:
        raise FileRefused(_NO_PACKAGE) from None


def _opened(cipher: Any, sealed: _SealedFile, content: bytearray) -> bytes:
    """The decrypted file. Raises FileRefused if it is not the one that was sent."""
    if sealed.digest and sha256(content).hexdigest() != sealed.digest:
        raise FileRefused(f"{_SERVER} has another file there")
    invalid_tag = importlib.import_module("cryptography.exceptions").InvalidTag
    try:
        return bytes(cipher.AESGCM(sealed.key).decrypt(sealed.nonce, content, None))
    except (invalid_tag, ValueError):
        raise FileRefused("it cannot be decrypted: its key does not fit, or it was changed") from None
