"""Reading a mail: its words, and what is attached, within limits; nothing of it is run, loaded or rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser
from typing import Any, Final

from keepsaid.adapters.channels.email.headers import BoundedPolicy, clean, subject_of
from keepsaid.adapters.channels.email.html_text import text_of_html
from keepsaid.adapters.channels.email.quoted import without_quoted_tail
from keepsaid.adapters.channels.media.fields import attached, lines, sized
from keepsaid.errors import InputError

BYTES_MAX: Final = 25_000_000
"""A larger mail is not fetched."""

_PARTS_MAX, _DEPTH_MAX, _LINES_MAX = 100, 10, 500_000
_TEXT_CHARS_MAX = 200_000
_HTML_CHARS_MAX = 2_000_000
_NO_TEXT_CODECS = frozenset(("idna", "punycode", "unicode_escape", "raw_unicode_escape", "undefined"))
"""Codecs that no mail is written in, some of which take quadratic time."""

PARSE_ERRORS: Final = (MessageError, ValueError, LookupError, AttributeError, TypeError, RecursionError, AssertionError)
"""What the parser of the standard library raises on malformed headers, at any step of reading."""


def parse_mail(raw: bytes) -> EmailMessage:
    """The parts of a mail. Raises InputError for one that is too large, and PARSE_ERRORS for one that is malformed."""
    if len(raw) > BYTES_MAX:
        raise InputError(f"the mail has {len(raw):,} bytes (at most {BYTES_MAX:,})")
    if raw.count(b"\n") > _LINES_MAX:
        raise InputError(f"the mail has more than {_LINES_MAX:,} lines")
    made = 0

    def make(policy: Any = None) -> EmailMessage:
        nonlocal made
        made += 1
        if made > _PARTS_MAX + 1:
            raise InputError(f"the mail has more than {_PARTS_MAX} parts")
        return EmailMessage(policy)

    mail = BytesParser(make, policy=BoundedPolicy()).parsebytes(raw)
    if not isinstance(mail, EmailMessage):
        raise InputError("the mail cannot be parsed")
    return mail


def text_of(mail: EmailMessage) -> str:
    """The subject, the words without their quoted tail, and a line for each attachment. Raises as `parse_mail`."""
    words, files = _read(mail)
    return lines(subject_line(mail), without_quoted_tail(words)[:_TEXT_CHARS_MAX], *files)


def subject_line(mail: EmailMessage) -> str:
    """The subject as the first line of a text, for a mail that begins a thread; "" for an answer."""
    subject = subject_of(mail)
    is_answer = "in-reply-to" in mail or "references" in mail
    return f"Subject: {subject}" if subject and not is_answer else ""


def _read(mail: EmailMessage) -> tuple[str, list[str]]:
    body: list[str] = []
    files: list[str] = []
    for part in _leaves(mail, 0):
        kind = part.get_content_type()
        if kind in _READERS and part.get_content_disposition() != "attachment":
            body.append(_READERS[kind](_decoded(part)))
        else:
            files.append(_named(part))
    return "\n".join(text for text in body if text.strip()), files


def _leaves(part: Message[Any, Any], depth: int) -> Iterator[EmailMessage]:
    """The parts that are shown or attached; of alternatives plain text, or HTML where the plain one has no words."""
    if depth > _DEPTH_MAX:
        raise InputError(f"the mail is nested more than {_DEPTH_MAX} deep")
    if not isinstance(part, EmailMessage):
        return
    if not part.is_multipart() or part.get_content_maintype() == "message":
        yield part
        return
    parts = part.get_payload()
    inner = [one for one in parts if isinstance(one, EmailMessage)] if isinstance(parts, list) else []
    if part.get_content_subtype() == "alternative":
        choices = [[*_leaves(one, depth + 1)] for one in inner]
        yield from max(choices, key=_rank, default=[])
        return
    for one in inner:
        yield from _leaves(one, depth + 1)


def _rank(choice: list[EmailMessage]) -> int:
    """How well an alternative can be read."""
    kinds = {part.get_content_type() for part in choice}
    if any(part.get_content_type() == "text/plain" and _decoded(part).strip() for part in choice):
        return 3
    return 2 if "text/html" in kinds else int("text/plain" in kinds)


def _decoded(part: EmailMessage) -> str:
    """The words of a part, by its charset; letters that cannot be read are replaced."""
    payload = part.get_payload(decode=True)
    content = payload if isinstance(payload, bytes) else b""
    charset = str(part.get_content_charset() or "utf-8").lower().replace("-", "_")
    if charset in _NO_TEXT_CODECS or charset == "us_ascii":
        charset = "utf-8"
    try:
        text = content.decode(charset, "replace")
    except (LookupError, ValueError):
        text = content.decode("utf-8", "replace")
    return clean(text).replace("\r\n", "\n")


_READERS: dict[str, Callable[[str], str]] = {
    "text/plain": lambda text: text,
    "text/html": lambda text: text_of_html(text[:_HTML_CHARS_MAX]),
}
"""How the words of a part are read, by its type."""


def _named(part: EmailMessage) -> str:
    """The line that names an attachment."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        return attached("mail", subject_of(first)[:200] if isinstance(first, EmailMessage) else "")
    payload = part.get_payload(decode=True)
    name = " ".join(clean(part.get_filename() or "").split())[:200]
    return attached("file", name, kind, sized(len(payload) if isinstance(payload, bytes) else None))
