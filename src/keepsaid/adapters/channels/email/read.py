"""Reading a mail: its words, and what is attached, within limits; nothing of it is run, loaded or rendered."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from email.errors import MessageError
from email.message import EmailMessage, Message
from email.parser import BytesParser
from itertools import islice
from typing import Any, Final

from keepsaid.adapters.channels.email.headers import clean, subject_of
from keepsaid.adapters.channels.email.html_text import text_of_html
from keepsaid.adapters.channels.email.quoted import without_quoted_tail
from keepsaid.adapters.channels.media.fields import attached, lines, sized
from keepsaid.errors import InputError
from keepsaid.values import frozen

BYTES_MAX: Final = 25_000_000
"""A larger mail is not fetched."""

_PARTS_MAX, _DEPTH_MAX, _LINES_MAX = 100, 10, 500_000
_TEXT_CHARS_MAX, _NAME_CHARS_MAX = 200_000, 200
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
    from keepsaid.adapters.channels.email.policies import BOUNDED  # noqa: PLC0415 - 0.5 MB that only mails need

    made = 0

    def make(policy: Any = None) -> EmailMessage:
        nonlocal made
        made += 1
        if made > _PARTS_MAX + 1:
            raise InputError(f"the mail has more than {_PARTS_MAX} parts")
        return EmailMessage(policy)

    mail = BytesParser(make, policy=BOUNDED).parsebytes(raw)
    if not isinstance(mail, EmailMessage):
        raise InputError("the mail cannot be parsed")
    return mail


@frozen
class MailFile:
    """A part of a mail beside its text: its name, media type and bytes, and its place among all parts.

    `line` names it in the text of the mail; `size` is 0 for a mail within the mail.
    """

    name: str
    kind: str
    size: int
    place: int
    line: str


def read_mail(mail: EmailMessage) -> tuple[str, tuple[MailFile, ...]]:
    """The text of a mail and what is attached. Raises as `parse_mail`.

    The text is the subject, the words without their quoted tail, and a line for each attachment.
    """
    words, files = _read(mail)
    named = (one.line for one in files)
    return lines(subject_line(mail), without_quoted_tail(words)[:_TEXT_CHARS_MAX], *named), tuple(files)


def content_of(mail: EmailMessage, place: int) -> bytes:
    """The bytes of a part by its place. Raises as `parse_mail`, and LookupError without such a part."""
    part = next(islice(mail.walk(), place, None), None)
    if part is None:
        raise LookupError("the mail has no such part")
    inner = part.get_payload()
    if isinstance(inner, list):
        from keepsaid.adapters.channels.email.policies import AS_IT_CAME  # noqa: PLC0415 - as above

        return b"".join(one.as_bytes(policy=AS_IT_CAME) for one in inner[:1] if isinstance(one, Message))
    return _bytes_of(part)


def subject_line(mail: EmailMessage) -> str:
    """The subject as the first line of a text, for a mail that begins a thread; "" for an answer."""
    subject = subject_of(mail)
    is_answer = "in-reply-to" in mail or "references" in mail
    return f"Subject: {subject}" if subject and not is_answer else ""


def _read(mail: EmailMessage) -> tuple[str, list[MailFile]]:
    body: list[str] = []
    files: list[MailFile] = []
    places = {id(part): place for place, part in enumerate(mail.walk())}
    for part in _leaves(mail, 0):
        kind = part.get_content_type()
        if kind in _READERS and part.get_content_disposition() != "attachment":
            body.append(_READERS[kind](_decoded(part)))
        else:
            files.append(_file(part, places[id(part)]))
    return "\n".join(text for text in body if text.strip()), files


def _leaves(part: Message[Any, Any], depth: int) -> Iterator[EmailMessage]:
    """The parts that are shown or attached; of alternatives plain text, or HTML where the plain one has no words.

    The pictures of the other alternatives are attached too: some programs put them beside the HTML alone.
    """
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
        chosen = max(choices, key=_rank, default=[])
        yield from chosen
        others = (one for choice in choices if choice is not chosen for one in choice)
        yield from (one for one in others if one.get_content_maintype() == "image")
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
    content = _bytes_of(part)
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


def _bytes_of(part: Message[Any, Any]) -> bytes:
    """The content of a part, with its transfer encoding decoded."""
    payload = part.get_payload(decode=True)
    return payload if isinstance(payload, bytes) else b""


def _file(part: EmailMessage, place: int) -> MailFile:
    """An attachment."""
    kind = part.get_content_type()
    if kind == "message/rfc822":
        inner = part.get_payload()
        first = inner[0] if isinstance(inner, list) and inner else None
        subject = subject_of(first)[:_NAME_CHARS_MAX] if isinstance(first, EmailMessage) else ""
        return MailFile(subject or "mail", kind, 0, place, attached("mail", subject))
    size = len(_bytes_of(part))
    name = " ".join(clean(part.get_filename() or "").split())[:_NAME_CHARS_MAX]
    return MailFile(name or "file", kind, size, place, attached("file", name, kind, sized(size)))
