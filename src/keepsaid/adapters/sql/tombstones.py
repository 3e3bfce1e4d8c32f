"""Tombstones: keyed hashes of what was forgotten, and checksums of rows."""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any
from zlib import crc32

from keepsaid.adapters.sql.tombstone_file import TombstoneFile
from keepsaid.config.home import write_file
from keepsaid.domain.message import Inbound

_SEAL_BYTES = 8
_FORM = "\0".join(["%s"] * 13)


def seal(inbound: Inbound, received_at: int) -> int:
    """A checksum over all that a row holds beside the payload, which the content hash covers."""
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    who = (origin.sender, origin.name, origin.direct, origin.trust.value)
    which = (marks.external_id, marks.provider_id, marks.reply_to, inbound.topic, inbound.reply_url)
    return crc32((_FORM % (*who, *which, inbound.priority, received_at, content.event, content.text)).encode())


def is_intact(inbound: Inbound, received_at: int, content_hash: bytes, sealed: int) -> bool:
    """Whether a row still matches its content hash and its seal."""
    return sealed == seal(inbound, received_at) and content_hash == inbound.content_hash


def seal_of(*values: Any) -> int:
    """The checksum of a row's values: 8 bytes of BLAKE2b, as a signed integer. Text and its bytes have the same."""
    # written out, as it runs for each value of each memory that is read
    parts = [
        value if value.__class__ is bytes else b"\xfe" if value is None else str(value).encode() for value in values
    ]
    digest = blake2b(b"\xff".join(parts), digest_size=_SEAL_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


KEY_NAME = "forgotten.key"
"""The key, beside the operational store; made with the first forgetting of a home."""

HASHES_NAME = "forgotten.hashes"
"""The tombstones, beside the key; no backup contains it, so that none puts an older one in its place."""

_NOWHERE = Path(":memory:")
_KEY_BYTES = 32
_HASH_BYTES = 16


class TombstoneKeyring:
    """Makes tombstones: hashes with the key of one home, which is created at the first forgetting."""

    def __init__(self, key_file: Path | None) -> None:
        self._file = key_file
        self._key: bytes | None = None
        self.kept = TombstoneFile(None if key_file is None else key_file.with_name(HASHES_NAME))

    def key(self, *, make: bool = False) -> bytes | None:
        """The key; with `make` one that is on disk from now on."""
        if self._key is None and self._file is not None:
            try:
                self._key = self._file.read_bytes() or None
            except FileNotFoundError:
                self._key = None
        if self._key is None and make:
            self._key = secrets.token_bytes(_KEY_BYTES) if self._file is None else _made(self._file)
        return self._key

    def adopt(self, key: bytes) -> bool:
        """Make tombstones with a key of another home; False, and nothing is changed, where there is one already."""
        there = self.key()
        if there is None and len(key) == _KEY_BYTES and self._file is not None:
            self._key = there = _made(self._file, key)
        return there == key

    def compute_tombstones(self, digests: Iterable[bytes]) -> list[bytes]:
        """The tombstones of these digests; none without a key, before the first forgetting."""
        key = self.key()
        return [] if key is None else [_hashed(key, one) for one in digests]

    def make_tombstones(self, digests: Iterable[bytes]) -> list[bytes]:
        """The tombstones of these digests; creates the key if there is none."""
        key = self.key(make=True)
        assert key is not None, "a key that is to be made is there"
        return [_hashed(key, one) for one in digests]


def open_keyring(store: Path) -> TombstoneKeyring:
    """The keyring of the home whose operational store this is; a store in memory has a key in no file."""
    return TombstoneKeyring(None) if store == _NOWHERE else TombstoneKeyring(store.with_name(KEY_NAME))


def _hashed(key: bytes, digest: bytes) -> bytes:
    return blake2b(digest, key=key, digest_size=_HASH_BYTES).digest()


def _made(file: Path, key: bytes = b"") -> bytes:
    """A key on disk, a new one or this, whole or not at all: tombstones without their key say nothing."""
    key = key or secrets.token_bytes(_KEY_BYTES)
    write_file(file, key)
    return key
