"""Files that go with mails: what a mail keeps of them is their numbers; their bytes are read at each try.

A mail with files is made once, up to where they follow. Its boundary has `=_`, which stands neither in text that is
quoted-printable nor in Base64 (RFC 2045, section 6.7), so that each try has the same content.
"""

from __future__ import annotations

import re
from binascii import b2a_base64
from collections.abc import Sequence
from email.message import EmailMessage
from typing import Final

from keepsaid.adapters.channels.abilities import EMAIL
from keepsaid.adapters.channels.email.headers import clean
from keepsaid.adapters.channels.uploads import GONE, Upload, UploadSource, not_sent, upload_of
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.turn_files import TurnFile
from keepsaid.values import frozen

WITHOUT_WORDS: Final = "The files of this answer:"
"""The text of a mail that has files alone."""

_MARK = "X-Keepsaid-Files:"
"""How the stored form of a mail with files begins; the line with their numbers is not sent."""

_LINE_BYTES = 57
"""Bytes of a file in a line of Base64, which has 76 characters (RFC 2045, section 6.8)."""

_NAME_CHARS_MAX = 200
_KIND = re.compile(r"([a-z0-9][a-z0-9!#$&^_.+-]{0,126})/([a-z0-9][a-z0-9!#$&^_.+-]{0,126})", re.ASCII)
_IN_BASE64_NEVER = ("multipart", "message")
"""Types of several parts have no encoding of their own (RFC 2045, section 6.4): such a file goes as bytes."""


@frozen
class MailBody:
    """A mail as it is stored: its bytes up to the files, and the numbers of these."""

    start: bytes
    boundary: bytes = b""
    files: tuple[int, ...] = ()


def grouped(files: Sequence[TurnFile]) -> list[list[TurnFile]]:
    """Files by the mail that brings them, in their order: of those in one mail, 15,000,000 bytes together at most."""
    groups: list[list[TurnFile]] = []
    for file in files:
        if groups and sum(one.size for one in groups[-1]) + file.size <= EMAIL.uploads:
            groups[-1].append(file)
        else:
            groups.append([file])
    return groups


def before_files(mail: EmailMessage, key: str) -> str:
    """A mail up to where its files follow; `key` is that of its part."""
    mail.make_mixed(boundary=f"=_{key}")
    whole = mail.as_bytes().decode("ascii", "replace")
    return whole[: whole.rindex(f"\r\n--=_{key}--")]


def marked(files: Sequence[TurnFile]) -> str:
    """The line before a mail that has files; none without them."""
    return f"{_MARK} {' '.join(str(one.number) for one in files)}\r\n" if files else ""


def read_body(body: str, key: str) -> MailBody:
    """The mail in a stored part."""
    mark, _, rest = body.partition("\r\n")
    if not mark.startswith(_MARK):
        return MailBody(body.encode("ascii", "replace"))
    numbers = tuple(map(int, mark.removeprefix(_MARK).split()))
    return MailBody(rest.encode("ascii", "replace"), f"=_{key}".encode(), numbers)


async def uploads_of(source: UploadSource, reply: StoredReply, mail: MailBody) -> list[Upload | str]:
    """The files of a mail, and words for each that is not kept any more. Raises StoreError."""
    names = {one.number: one.name for one in reply.files}
    found = [(number, await upload_of(source, reply, number)) for number in mail.files]
    return [not_sent(names.get(number, "a file"), GONE) if one is None else one for number, one in found]


def refused_files(reply: StoredReply, mail: MailBody, why: str) -> list[Upload | str]:
    """Words in the place of the files of a mail that its server does not take."""
    return [not_sent(one.name, why) for one in reply.files if one.number in mail.files]


def composed(mail: MailBody, files: Sequence[Upload | str]) -> bytes:
    """The whole mail, with its files or what is in their place. It takes a second for 15 MB: call it in a thread."""
    if not mail.files:
        return mail.start
    parts = [_note(one) if isinstance(one, str) else _attachment(one) for one in files]
    opening = b"\r\n--" + mail.boundary
    return opening.join((mail.start, *(b"\r\n" + one for one in parts), b"--\r\n"))


def new_mail() -> EmailMessage:
    """A mail, or a part of one, without headers, that is written as SMTP needs it."""
    from email.policy import SMTP  # noqa: PLC0415 - 0.5 MB that only mails need

    return EmailMessage(SMTP)


def _note(text: str) -> bytes:
    """A part that programs show below the text of the mail."""
    part = new_mail()
    part.set_content(clean(text), cte="quoted-printable", disposition="inline")
    return part.as_bytes().rstrip(b"\r\n")


def _attachment(file: Upload) -> bytes:
    """A part with a file, whatever it is, in Base64; its name as RFC 2231 has it where it is not ASCII."""
    part = new_mail()
    found = _KIND.fullmatch(file.kind.lower())
    main, sub = found.groups() if found and found[1] not in _IN_BASE64_NEVER else ("application", "octet-stream")
    params = {"charset": "utf-8"} if main == "text" and _is_utf8(file.content) else {}
    name = "".join(letter for letter in clean(file.name[:_NAME_CHARS_MAX]) if letter.isprintable())
    part.set_content(b"", main, sub, disposition="attachment", filename=name, params=params)
    lines = (file.content[at : at + _LINE_BYTES] for at in range(0, len(file.content), _LINE_BYTES))
    head = part.as_bytes().rstrip(b"\r\n") + b"\r\n\r\n"
    return head + b"\r\n".join(b2a_base64(line, newline=False) for line in lines)


def _is_utf8(content: bytes) -> bool:
    try:
        content.decode()
    except ValueError:
        return False
    return True
