"""Files that go with replies on Nostr: encrypted under a key of their own, whose bytes are the same at every try.

The key stands in the message alone (NIP-17, kind 15). The encrypted bytes are not kept: they are made from those of the
file when it is uploaded, and have the hash that the message has.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import sha256

from keepsaid.adapters.channels.nostr.files import cipher_module
from keepsaid.domain.turn_files import TurnFile
from keepsaid.values import frozen

_KEY_BYTES, _NONCE_BYTES = 32, 12


@frozen
class SealedUpload:
    """A file by its number, how it is encrypted, and the SHA-256 of its encrypted bytes, in hexadecimal."""

    number: int
    name: str
    key: bytes = field(repr=False)
    nonce: bytes = field(repr=False)
    digest: str

    @property
    def stored(self) -> Mapping[str, object]:
        """What a part keeps of it."""
        secret = {"key": self.key.hex(), "nonce": self.nonce.hex()}
        return {"number": self.number, "name": self.name, "x": self.digest, **secret}

    def sealed(self, content: bytes) -> bytes:
        """The encrypted bytes of its content; the same each time. Call it in a thread.

        Raises FileRefused without the package that encrypts.
        """
        return bytes(cipher_module().AESGCM(self.key).encrypt(self.nonce, content, None))


@frozen
class NewUpload:
    """A file that is to be announced: how it is encrypted, where it is going to be, and its tags (NIP-17, NIP-94)."""

    file: SealedUpload
    urls: Sequence[str]
    tags: Sequence[Sequence[str]]


def sealed_upload(file: TurnFile, content: bytes, servers: Sequence[str]) -> NewUpload:
    """A file under a new key, at the first of some servers, or at the others. Call it in a thread.

    Raises FileRefused without the package that encrypts.
    """
    key, nonce = secrets.token_bytes(_KEY_BYTES), secrets.token_bytes(_NONCE_BYTES)
    blob = SealedUpload(file.number, file.name, key, nonce, "").sealed(content)
    digest = sha256(blob).hexdigest()
    urls = [f"{server}/{digest}" for server in servers]
    tags = {
        "file-type": file.kind or "application/octet-stream",
        "encryption-algorithm": "aes-gcm",
        "decryption-key": key.hex(),
        "decryption-nonce": nonce.hex(),
        "x": digest,
        "ox": sha256(content).hexdigest(),
        "size": str(len(blob)),
        "name": file.name,
    }
    others = [["fallback", url] for url in urls[1:]]
    return NewUpload(
        SealedUpload(file.number, file.name, key, nonce, digest), urls, [*map(list, tags.items()), *others]
    )


def read_sealed(given: Mapping[str, object]) -> SealedUpload:
    """The file of a part, as `stored` wrote it."""
    key, nonce = (bytes.fromhex(str(given[name])) for name in ("key", "nonce"))
    return SealedUpload(int(str(given["number"])), str(given["name"]), key, nonce, str(given["x"]))
