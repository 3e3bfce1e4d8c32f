"""Files of encrypted rooms of Matrix: AES-256 in counter mode, with a key and a SHA-256 in the message.

Source: Matrix specification v1.16, client-server API, "Sending encrypted attachments".
"""

from __future__ import annotations

import asyncio
import importlib
import json
import secrets
from base64 import b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import field
from hashlib import sha256
from hmac import compare_digest
from typing import Any

from keepsaid.adapters.channels.media.fields import MediaObject
from keepsaid.errors import FileRefused, InputError, installation
from keepsaid.values import frozen

_BYTES_MAX = 20_000_000
_PIECE_BYTES = 262_144
_KEY_BYTES, _COUNTER_BYTES = 32, 16
_CIPHERS = "cryptography.hazmat.primitives.ciphers"


@frozen
class EncryptedFile:
    """Where an encrypted file is, its key, the first value of its counter, and its SHA-256."""

    address: str
    key: bytes
    counter: bytes
    digest: bytes

    def __repr__(self) -> str:
        """Nothing of it: it holds a key."""
        return "EncryptedFile()"


def sealed_ref(file: MediaObject) -> str:
    """Where an encrypted file is, with its key, for the store alone; "" for one that is not encrypted as here."""
    try:
        key, hashes = file.needed("key"), file.needed("hashes")
        parts = [file.id("url"), key.id("k"), file.id("iv"), hashes.id("sha256")]
    except InputError:
        return ""
    return json.dumps(parts)


def sealed_file(ref: str) -> EncryptedFile | None:
    """The file of a `sealed_ref`; None for the address of a file that is not encrypted. Raises FileRefused."""
    if not ref.startswith("["):
        return None
    try:
        address, *rest = map(str, json.loads(ref))
        key, counter, digest = (_bytes(one) for one in rest)
    except (ValueError, TypeError):
        raise FileRefused("the key of the file cannot be read") from None
    if len(key) != _KEY_BYTES or len(counter) != _COUNTER_BYTES:
        raise FileRefused("the key of the file has another length than such keys have")
    return EncryptedFile(address, key, counter, digest)


@frozen
class SealedBytes:
    """The bytes of a file, encrypted, with their key and the first value of the counter."""

    content: bytes = field(repr=False)
    key: bytes = field(repr=False)
    counter: bytes = field(repr=False)


def seal_bytes(content: bytes, key: bytes = b"", counter: bytes = b"") -> SealedBytes:
    """Encrypt the bytes of a file, with a new key unless one is given. Needs the packages of the extra."""
    key = key or secrets.token_bytes(_KEY_BYTES)
    counter = counter or secrets.token_bytes(_COUNTER_BYTES // 2) + bytes(_COUNTER_BYTES // 2)
    cipher = _cipher(key, counter).encryptor()
    return SealedBytes(bytes(cipher.update(content) + cipher.finalize()), key, counter)


def sealed_fields(made: SealedBytes, address: str) -> dict[str, object]:
    """What a message says of an encrypted file."""
    key = urlsafe_b64encode(made.key).decode().rstrip("=")
    told = {"kty": "oct", "alg": "A256CTR", "ext": True, "key_ops": ["encrypt", "decrypt"], "k": key}
    hashed = b64encode(sha256(made.content).digest()).decode().rstrip("=")
    counter = b64encode(made.counter).decode().rstrip("=")
    return {"v": "v2", "url": address, "key": told, "iv": counter, "hashes": {"sha256": hashed}}


async def opened_pieces(sealed: EncryptedFile, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
    """The bytes of a file, decrypted, once all of them came and have its hash. Raises FileRefused, and as `pieces`."""
    content = bytearray()
    async with aclosing(pieces):
        async for piece in pieces:
            content += piece
            if len(content) > _BYTES_MAX:
                raise FileRefused(f"it is larger than {_BYTES_MAX // 1_000_000} MB")
    plain = await asyncio.to_thread(_opened, sealed, bytes(content))
    for at in range(0, len(plain), _PIECE_BYTES):
        yield plain[at : at + _PIECE_BYTES]


def _opened(sealed: EncryptedFile, content: bytes) -> bytes:
    if not compare_digest(sha256(content).digest(), sealed.digest):
        raise FileRefused("it is not the file of the message: its hash differs")
    try:
        cipher = _cipher(sealed.key, sealed.counter).decryptor()
    except ImportError:
        raise FileRefused(f"it is encrypted: {installation('matrix-e2ee')}") from None
    return bytes(cipher.update(content) + cipher.finalize())


def _cipher(key: bytes, counter: bytes) -> Any:
    ciphers: Any = importlib.import_module(_CIPHERS)
    algorithms: Any = importlib.import_module(f"{_CIPHERS}.algorithms")
    modes: Any = importlib.import_module(f"{_CIPHERS}.modes")
    return ciphers.Cipher(algorithms.AES(key), modes.CTR(counter))


def _bytes(text: str) -> bytes:
    """What stands in Base64 of either alphabet, without its padding; raises ValueError."""
    text = text.rstrip("=").replace("+", "-").replace("/", "_")
    return urlsafe_b64decode(f"{text}{'=' * (-len(text) % 4)}")
