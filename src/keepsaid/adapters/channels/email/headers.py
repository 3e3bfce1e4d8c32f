"""Headers of a mail: read with a bound on their length, as the parsers of `email` are slow on long ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import EmailMessage, Message
from typing import Any

_RAW_CHARS_MAX = 40_000
_ID = re.compile(r"<([^<>\s]{1,250})>")
_FOLD = re.compile(r"[\r\n]+[ \t]?")


def clean(text: str) -> str:
    """A text that can be stored: without surrogates and NUL."""
    return text.replace("\0", "").encode("utf-8", "replace").decode("utf-8")


def raw_headers(mail: Message[Any, Any], name: str) -> Iterator[str]:
    """The values of all headers with a name in lower case, unfolded, as they came; 40,000 characters of each."""
    for found, value in mail.raw_items():
        if found.lower() == name:
            yield clean(_FOLD.sub(" ", str(value)[:_RAW_CHARS_MAX])).strip()


def raw_header(mail: Message[Any, Any], name: str) -> str:
    """The first header with a name in lower case; "" without one."""
    return next(raw_headers(mail, name), "")


def ids_in(value: str) -> list[str]:
    """The Message-IDs in a header, in their order, without angle brackets."""
    return _ID.findall(value)


def normal_id(number: str) -> str:
    """A Message-ID as it is compared: its domain in lower case."""
    local, at, domain = number.rpartition("@")
    return f"{local}{at}{domain.lower()}"


def addresses_in(mail: EmailMessage, name: str) -> list[tuple[str, str]]:
    """The addresses in all headers of a name, each in lower case and with the name before it."""
    found = (one for header in mail.get_all(name, []) for one in getattr(header, "addresses", ()))
    return [(f"{one.username}@{one.domain}".lower(), clean(one.display_name)) for one in found]


def is_one_address(mail: EmailMessage, name: str) -> bool:
    """Whether a mail has one header of a name, with one address that is not in a group."""
    headers = mail.get_all(name, [])
    groups = [group for header in headers for group in getattr(header, "groups", ())]
    return len(headers) == len(groups) == 1 and groups[0].display_name is None


def subject_of(mail: EmailMessage) -> str:
    """The subject on one line, decoded; "" without one."""
    return " ".join(clean(str(mail.get("subject", ""))).split())


_NO_REPLY_TO = ("bulk", "junk", "list")


def automatic(mail: EmailMessage) -> str:
    """Why a mail was sent by a program or to a list, so that no answer may go out; "" for mail of a person.

    Source: RFC 3834, and Exchange's X-Auto-Response-Suppress.
    """
    submitted = raw_header(mail, "auto-submitted").partition(";")[0].strip().lower()
    if submitted not in ("", "no"):
        return f"Auto-Submitted: {submitted[:40]}"
    for precedence in raw_headers(mail, "precedence"):
        if precedence.lower() in _NO_REPLY_TO:
            return f"Precedence: {precedence.lower()}"
    if "list-id" in mail:
        return "List-Id"
    if any(path.replace(" ", "") in ("<>", "") for path in raw_headers(mail, "return-path")):
        return "an empty Return-Path"
    suppress = raw_header(mail, "x-auto-response-suppress").lower()
    return "X-Auto-Response-Suppress" if suppress not in ("", "none") else ""
