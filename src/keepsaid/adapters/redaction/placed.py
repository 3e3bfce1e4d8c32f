"""Placed: secrets that the syntax around them gives away: XML elements, key and value attributes, Kubernetes, curl."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.adapters.redaction.spoken import is_secret
from keepsaid.adapters.redaction.windows import matches
from keepsaid.adapters.redaction.words import CAMEL, KEYWORD
from keepsaid.domain.redaction import Mark

_ELEMENT = re.compile(
    r"<(?P<name>[A-Za-z][\w.:-]{1,60})(?:\s[^<>]{0,200})?>(?:\s{0,20}<!\[CDATA\[)?\s{0,40}(?P<value>[^<>\s\]]{4,4000})"
    r"(?:\]\]>)?\s{0,40}</"
)
_PAIR = re.compile(
    r"""(?:key|name|id)=["'](?P<name>[^"'<>\n]{2,80})["']\s{1,20}value=["'](?P<value>[^"'<>\n]{4,4000})["']"""
)
_KIND = re.compile(r"""(?m)^["' \t-]{0,20}kind["']?:[ \t]{1,4}["']?Secret\b""")
_SECTION = re.compile(r"(?P<indent>[ \t]{0,20})(?:data|stringData):[ \t]{0,4}$")
_ENTRY = re.compile(
    r"""(?P<indent>[ \t]{1,40})["']?[\w.-]{1,200}["']?:[ \t]{1,4}["']?(?P<value>[^\s"'|>][^\s"']{3,8000})"""
)
_LOGIN = re.compile(
    r"""(?:(?<=\s)-u|(?<=\s)--user|(?<=\s)--proxy-user)[ =]{0,2}["']?[^\s:"']{1,100}:(?P<value>[^\s"']{3,200})"""
)
_LOOK_BACK = 400


def placed_marks(text: str) -> Iterator[Mark]:
    """Every secret that stands where its syntax says that one does."""
    if "</" in text or "value=" in text:
        for pattern in (_ELEMENT, _PAIR):
            for found in matches(pattern, text):
                yield from _named(found)
    if "Secret" in text and _KIND.search(text):
        yield from _of_kubernetes(text)
    if "curl" in text:
        yield from _of_curl(text)


def _named(found: re.Match[str]) -> Iterator[Mark]:
    """The value, if its name is one for a secret and the value can be one."""
    keyword = KEYWORD.search(found["name"]) or CAMEL.search(found["name"])
    if keyword is None:
        return
    strong = keyword.lastgroup == "strong"
    if is_secret(found["value"], quoted=True, sure=strong, said=not strong):
        yield Mark(*found.span("value"), "password" if strong else "credential")


def _of_kubernetes(text: str) -> Iterator[Mark]:
    """Every value below `data` and `stringData` of a text that declares a Secret."""
    at, inside = 0, -1
    for line in text.splitlines(keepends=True):
        section, entry = _SECTION.match(line.rstrip("\r\n")), _ENTRY.match(line)
        if section is not None:
            inside = len(section["indent"])
        elif entry is not None and 0 <= inside < len(entry["indent"]):
            yield Mark(at + entry.start("value"), at + entry.end("value"), "credential")
        elif line.strip():
            inside = -1
        at += len(line)


def _of_curl(text: str) -> Iterator[Mark]:
    """The password of `curl -u user:password`."""
    for found in matches(_LOGIN, text):
        before = text[max(0, found.start() - _LOOK_BACK) : found.start()].rpartition("\n")[2]
        if "curl" in before and not found["value"].startswith(("$", "<", "{")):
            yield Mark(*found.span("value"), "password")
