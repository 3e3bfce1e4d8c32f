"""A reply as a mail: plain text and HTML, in the thread of what it answers, made once with its Message-ID."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import cache
from typing import TYPE_CHECKING

from keepsaid.adapters.channels.abilities import EMAIL
from keepsaid.adapters.channels.email.account import EmailAccount, address_in
from keepsaid.adapters.channels.email.attached import WITHOUT_WORDS, before_files, grouped, marked, new_mail
from keepsaid.adapters.channels.email.headers import clean
from keepsaid.adapters.channels.email.threads import MailThread
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.domain.turn_files import TurnFile
from keepsaid.text.styled import PartLimits, StyledText, split
from keepsaid.values import frozen

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_HTML_CHARS_MAX = 100_000
_BRACKETS_MAX = 2_000
_NESTED_MAX = 20
_ANSWER = ("re:", "aw:", "sv:", "antw:", "rv:")
_SUBJECT_CHARS_MAX, _NAME_CHARS_MAX, _LOCAL_CHARS_MAX, _DOMAIN_CHARS_MAX = 250, 100, 64, 255
"""Limits of headers: the library takes quadratic time to write them. Those of addresses are of RFC 5321."""

_NO_SUBJECT = "your message"


def mails_of(reply: StoredReply, account: EmailAccount, thread: MailThread | None) -> list[str]:
    """The mails that a reply is sent in, as ASCII text with CRLF; the Message-ID of each is that of its part.

    Files go with the last mail that has text, as many as it takes, and the others in further ones: `attached` reads
    these forms.
    """
    words = clean(reply.draft.text).replace("\r\n", "\n").replace("\r", "\n")
    texts = [part.text for part in split(StyledText(words), PartLimits(EMAIL.chars_max, 1, lambda _: 1))]
    said, groups = [text for text in texts if text.strip()], grouped(reply.files)
    if not said:
        said = [WITHOUT_WORDS if groups else "(no words)"]
    before, last = said[:-1], MailContent(len(said) - 1, said[-1], groups[0] if groups else ())
    further = [MailContent(n, WITHOUT_WORDS, group) for n, group in enumerate(groups[1:], start=len(said))]
    contents = [*(MailContent(n, text) for n, text in enumerate(before)), last, *further]
    return [_mail(reply, account, thread, content) for content in contents]


def message_id(part: ReplyPart, account: EmailAccount) -> str:
    """The Message-ID of a part, without angle brackets."""
    return f"{part.key}@{account.domain}"


@frozen
class MailContent:
    """What a mail brings: which of its reply's it is, counted from 0, its text and its files."""

    n: int
    text: str
    files: Sequence[TurnFile] = ()


def _mail(reply: StoredReply, account: EmailAccount, thread: MailThread | None, content: MailContent) -> str:
    from email.headerregistry import Address  # noqa: PLC0415 - 0.5 MB that only mails need

    text, part = content.text, ReplyPart(reply.id, content.n, "")
    mail = new_mail()
    mail["From"] = Address(" ".join(clean(account.name[:_NAME_CHARS_MAX]).split()), *_halves(account.address))
    mail["To"] = Address("", *_halves(address_in(reply.lane.conversation)))
    mail["Subject"] = _subject(thread)
    mail["Date"] = format_datetime(datetime.fromtimestamp(reply.created_at / 1_000, UTC))
    mail["Auto-Submitted"] = "auto-replied"
    mail["X-Auto-Response-Suppress"] = "All"
    mail.set_content(text, cte="quoted-printable")
    if len(text) <= _HTML_CHARS_MAX:
        mail.add_alternative(html_of(text), subtype="html", cte="quoted-printable")
    ids = "".join(_id_headers(message_id(part, account), reply.draft.reply_to, thread))
    if content.files:
        return marked(content.files) + ids + before_files(mail, part.key)
    return ids + mail.as_bytes().decode("ascii", "replace")


def _id_headers(own: str, answered: str | None, thread: MailThread | None) -> Iterator[str]:
    """The headers that hold ids, one id a line: the library would write long ones as encoded words."""
    yield f"Message-ID: <{own}>\r\n"
    known = [*thread.ids] if thread is not None else []
    spelled = thread.spelled(answered) if thread is not None and answered else answered
    if spelled and _is_plain(spelled):
        yield f"In-Reply-To: <{spelled}>\r\n"
    if thread is not None and thread.root not in known:
        known.insert(0, thread.spelled(thread.root))
    if spelled:
        known = [one for one in known if one != spelled] + [spelled]
    if plain := [one for one in known if _is_plain(one)]:
        yield "References: " + "\r\n ".join(f"<{one}>" for one in dict.fromkeys(plain)) + "\r\n"


def _is_plain(number: str) -> bool:
    """Whether an id can stand in a header as it is."""
    return number.isascii() and number.isprintable() and not set(number) & set("<> ")


def _halves(address: str) -> Sequence[str]:
    local, _, domain = address.rpartition("@")
    return local[:_LOCAL_CHARS_MAX], domain[:_DOMAIN_CHARS_MAX]


def _subject(thread: MailThread | None) -> str:
    """The subject of an answer; one that says so already is not marked twice."""
    subject = " ".join(clean(thread.subject if thread is not None else "").split())[:_SUBJECT_CHARS_MAX] or _NO_SUBJECT
    return subject if subject.lower().startswith(_ANSWER) else f"Re: {subject}"


@cache
def _renderer() -> MarkdownIt:
    """A renderer of CommonMark with tables and struck text, without HTML and without images, which would be loaded."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 40 ms that only mails need

    options = {"html": False, "maxNesting": _NESTED_MAX}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable("image")


def html_of(text: str) -> str:
    """Markdown as a document in HTML; a text with thousands of brackets as it was typed."""
    is_tangled = text.count("[") > _BRACKETS_MAX
    body = f"<pre>{html.escape(text)}</pre>" if is_tangled else str(_renderer().render(text))
    return f'<!DOCTYPE html>\n<html><head><meta charset="utf-8"></head><body>\n{body}</body></html>\n'
