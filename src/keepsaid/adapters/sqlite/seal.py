"""The seal of a message row: with the content hash it tells whether what is read is what was written.

SQLite's own integrity check does not see a bit that flipped inside a value (spec/reliability.md, 0.7).
"""

from __future__ import annotations

from zlib import crc32

from keepsaid.domain.message import Inbound

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
