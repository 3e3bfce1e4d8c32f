"""Files of mails: read from the mail as the store keeps it, and not from the IMAP server again.

The whole mail is the payload of its message, on disk before anything of it is fetched. So a file needs no connection,
is there after its mail was moved, deleted or numbered again (UIDVALIDITY), and goes when its message is forgotten.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from hashlib import sha256

from keepsaid.adapters.channels.email.account import NAME
from keepsaid.adapters.channels.email.read import PARSE_ERRORS, MailFile, content_of, parse_mail
from keepsaid.domain.message import Attachment
from keepsaid.errors import FileRefused, InputError
from keepsaid.text.normal import normalise

StoredMail = Callable[[str, str, str], Awaitable[bytes | None]]
"""The payload of a message, by its channel, its account and its id there; None without one."""

_PIECE_BYTES = 262_144


def attachments_of(files: Sequence[MailFile], number: str, raw: bytes) -> tuple[Attachment, ...]:
    """What is attached to a mail, as it is fetched: by the id of its message, the hash of the mail, and its place."""
    if not files:
        return ()
    digest, known_as = sha256(raw).hexdigest(), normalise(number)
    return tuple(Attachment(one.name, one.kind, json.dumps([known_as, digest, one.place]), one.size) for one in files)


class MailFiles:
    """Reads parts of stored mails, one mail at a time: each may have 25 MB. Without `stored` there are none."""

    def __init__(self, stored: StoredMail | None = None) -> None:
        self._stored = stored
        self._reading = asyncio.Lock()

    async def pieces(self, account: str, ref: str) -> AsyncGenerator[bytes, None]:
        """The bytes of a part, decoded. Raises FileRefused, and StoreError."""
        try:
            number, digest, place = json.loads(ref)
        except (ValueError, TypeError):
            raise FileRefused("which part of which mail it is cannot be read") from None
        async with self._reading:
            raw = await self._stored(NAME, account, number) if self._stored is not None else None
            if raw is None:
                raise FileRefused("its mail is not kept any more")
            content = await asyncio.to_thread(_content, raw, digest, place)
            del raw
        for at in range(0, len(content), _PIECE_BYTES):
            yield content[at : at + _PIECE_BYTES]


def _content(raw: bytes, digest: str, place: int) -> bytes:
    """The bytes of a part of a mail. Raises FileRefused."""
    if sha256(raw).hexdigest() != digest:
        raise FileRefused("its mail is not the one that it came with")
    try:
        return content_of(parse_mail(raw), place)
    except (InputError, *PARSE_ERRORS) as error:
        raise FileRefused(f"it cannot be read from its mail ({type(error).__name__})") from error
