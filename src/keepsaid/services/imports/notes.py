"""Divides notes in Markdown into their statements: a list item, or a paragraph, under its headings."""

from __future__ import annotations

import re
from collections.abc import Iterator

from keepsaid.domain.memory import Kind
from keepsaid.services.imports.drafts import Draft, kind_of_words
from keepsaid.text.normal import digest
from keepsaid.values import frozen

_HEADING = re.compile(r"#{1,6}[ \t]+(\S.*)|\*\*([^*]+)\*\*:?")
_ITEM = re.compile(r"[ \t]{0,12}(?:[-*+]|\d{1,4}[.)])[ \t]+(\S.*)")
_BOX = re.compile(r"\[[ xX]\][ \t]+")
_FENCES = ("```", "~~~")
_OTHERS = (*_FENCES, "|", "<!--", "---", "***", "===")
_HEADING_CHARS, _REF_CHARS = 200, 160
_FEW_WORDS = 3
"""A statement of so few words or less is given with its heading: `City: Oslo`."""


@frozen
class NoteStatement:
    """A statement of a note, and the heading over it, "" for none."""

    text: str
    heading: str = ""


def statements(text: str) -> Iterator[NoteStatement]:
    """The list items and paragraphs of a note in order; code, comments, tables and rules are left out."""
    heading, lines, fence = "", list[str](), ""
    for raw in [*text.splitlines(), ""]:
        line = raw.strip()
        item, title = _ITEM.fullmatch(raw.rstrip()), _HEADING.fullmatch(line)
        is_other = bool(fence) or not line or line.startswith(_OTHERS)
        if lines and (is_other or item or title):
            yield NoteStatement(" ".join(lines), heading)
            lines = []
        if fence or line.startswith(_FENCES):
            fence = line[:3] if not fence else "" if line.startswith(fence) else fence
        elif title:
            heading = (title[1] or title[2])[:_HEADING_CHARS].rstrip("# \t")
        elif item:
            lines = [_BOX.sub("", item[1], count=1)]
        elif not is_other:
            lines.append(line.removeprefix("> "))


def facts(ref: str, text: str, file: str, said_at: int | None, kind: Kind | None = None) -> Iterator[Draft]:
    """The statements of a note as drafts, named by their words, so that a line may move within its file.

    Without a `kind` the heading says it. `said_at` is milliseconds UTC.
    """
    for one in statements(text):
        words = (
            one.text
            if len(one.text.split(None, _FEW_WORDS)) > _FEW_WORDS or not one.heading
            else f"{one.heading}: {one.text}"
        )
        yield fact(ref, words, file, said_at, (kind or kind_of_words(one.heading), one.heading))


def fact(ref: str, text: str, file: str, said_at: int | None, known: tuple[Kind, str] = (Kind.FACT, "")) -> Draft:
    """A statement as a draft, named by its words; `known` is its kind, and the heading over it."""
    about = {"heading": known[1]} if known[1] else {}
    name = f"{ref[-_REF_CHARS:]}#{digest(ref[-_REF_CHARS:], text).hex()}"
    return Draft(name, text, file, kind=known[0], said_at=said_at or None, about=about)
