"""Seals: checksums of rows, which tell whether what is read is what was written.

SQLite's own integrity check does not see a bit that flipped inside a value (spec/reliability.md, 0.7).
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any
from zlib import crc32

from keepsaid.domain.message import Inbound

_SEAL_BYTES = 8
_FORM = "\0".join(["%s"] * 13)


def seal(inbound: Inbound, received_at: int) -> int:
    """A checksum over all that a row holds beside the payload, which the content hash covers."""
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    who = (origin.sender, origin.name, origin.direct, origin.trust.value)
    which = (marks.external_id, marks.provider_id, marks.reply_to, inbound.topic, inbound.reply_url)
    return crc32((_FORM % (*who, *which, inbound.priority, received_at, content.event, content.text)).encode())


def whole(inbound: Inbound, received_at: int, content_hash: bytes, sealed: int) -> bool:
    """Whether a row still holds what its hash and seal were made of."""
    return sealed == seal(inbound, received_at) and content_hash == inbound.content_hash


def seal_of(*values: Any) -> int:
    """The checksum of a row's values: 8 bytes of BLAKE2b, as a signed integer. Text and its bytes have the same."""
    digest = blake2b(b"\xff".join(map(_bytes, values)), digest_size=_SEAL_BYTES).digest()
    return int.from_bytes(digest, "big", signed=True)


def _bytes(value: Any) -> bytes:
    if isinstance(value, bytes):
        return value
    if value is None:
        return b"\xfe"
    return value.encode() if isinstance(value, str) else repr(value).encode()
