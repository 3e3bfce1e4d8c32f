"""Markdown as the contents of messages of Matrix: plain text, and the HTML that clients show instead.

Source: Matrix specification v1.16, "m.room.message msgtypes", for the tags; spec channels, C22.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from keepsaid.adapters.channels.abilities import MATRIX
from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.text.styled import PartLimits, Style, StyledText, StyleSpan, split
from keepsaid.values import frozen

BYTES_MAX = MATRIX.chars_max
"""The plain text and the HTML of one event."""

_SPANS_MAX = 400
_URL_CHARS_MAX = 1_000
_LINKED = ("http://", "https://", "mailto:")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,20}")
_RANKS: Mapping[Style, int] = {Style.QUOTE: 0, Style.LINK: 1, Style.CODE: 3, Style.BLOCK: 3}
_TAGS: Mapping[Style, str] = {Style.BOLD: "strong", Style.ITALIC: "em", Style.STRIKE: "del", Style.CODE: "code"}
_WIDE: Mapping[str, int] = {"&": 6, "<": 5, ">": 5, '"': 9, "'": 7, "\\": 4, "\n": 7}
"""The bytes of a character in both texts, as JSON writes the one and HTML and JSON the other."""


@frozen
class MatrixText:
    """The text of a message: `html` is empty where nothing in it has a style."""

    body: str
    html: str = ""


def matrix_texts(markdown: str) -> list[MatrixText]:
    """The texts of the messages for a text in Markdown, at least one; joined, the plain ones are the whole text."""
    texts = [*_fitted(read_markdown(_storable(markdown)), BYTES_MAX)]
    return texts if any(one.body.strip() for one in texts) else [MatrixText("(no words)")]


def html_of(text: str) -> str:
    """A plain text as HTML in which nothing has a meaning."""
    return escape(text).replace("\n", "<br>")


def _storable(text: str) -> str:
    """A text without half characters, which JSON in UTF-8 cannot have."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _fitted(styled: StyledText, size: int) -> Iterator[MatrixText]:
    """Cut a text into messages; one that its tags make too long is cut again, by as much as it is too long."""
    for piece in split(styled, PartLimits(size, _SPANS_MAX, _unit)):
        html = _between(piece, 0, len(piece.text), _nested(piece.spans)) if piece.spans else ""
        length = _bytes_of(piece.text) + _bytes_of(html)
        held = sum(map(_unit, piece.text))
        if length <= BYTES_MAX:
            yield MatrixText(piece.text, html)
        elif len(piece.text) > 1 and held > 1:
            yield from _fitted(piece, max(1, min(size - 1, held - 1, held * BYTES_MAX // length)))
        else:
            yield MatrixText(piece.text)


def _unit(character: str) -> int:
    """The bytes of a character in the plain text and in the HTML."""
    code = ord(character)
    if code < 0x80:
        return 12 if code < 0x20 and character not in "\n\t" else _WIDE.get(character, 2)
    return 4 if code < 0x800 else 6 if code < 0x10000 else 8


def _bytes_of(text: str) -> int:
    """The bytes of a text in an event; each control character takes six."""
    marks = text.count('"') + text.count("\\") + text.count("\n")
    return len(text.encode("utf-8")) + marks + 5 * sum(character < " " and character != "\n" for character in text)


def _nested(spans: Sequence[StyleSpan]) -> Sequence[StyleSpan]:
    """Spans in the order of their starts, outer ones first."""
    return sorted(spans, key=lambda span: (span.start, -span.end, _RANKS.get(span.style, 2)))


def _between(piece: StyledText, start: int, end: int, spans: Sequence[StyleSpan]) -> str:
    """The HTML of a text from `start` to `end` with the spans that begin there, outer ones first."""
    out: list[str] = []
    at, n = start, 0
    after_block = False
    while n < len(spans):
        span = spans[n]._replace(end=min(spans[n].end, end))
        n += 1
        if span.start < at or span.end <= span.start:
            continue
        is_block = span.style in (Style.BLOCK, Style.QUOTE)
        out.append(_plain(piece.text[at : span.start], after_block=after_block, before_block=is_block))
        first = n
        while n < len(spans) and spans[n].start < span.end:
            n += 1
        out.append(_styled(piece, span, spans[first:n]))
        at, after_block = span.end, is_block
    out.append(_plain(piece.text[at:end], after_block=after_block, before_block=False))
    return "".join(out)


def _plain(text: str, *, after_block: bool, before_block: bool) -> str:
    """A text without styles; a block begins and ends a line by itself."""
    text = text.lstrip("\n") if after_block else text
    return html_of(text.rstrip("\n") if before_block else text)


def _styled(piece: StyledText, span: StyleSpan, inner: Sequence[StyleSpan]) -> str:
    """A span with its tags, and the spans in it."""
    words = piece.text[span.start : span.end]
    if span.style is Style.BLOCK:
        name = f' class="language-{span.detail}"' if _LANGUAGE.fullmatch(span.detail) else ""
        return f"<pre><code{name}>{escape(words)}</code></pre>"
    if span.style is Style.CODE:
        return f"<code>{html_of(words)}</code>"
    within = _between(piece, span.start, span.end, inner)
    if span.style is Style.QUOTE:
        return f"<blockquote>{within}</blockquote>"
    if span.style is Style.LINK:
        return _link(words, within, span.detail)
    tag = _TAGS[span.style]
    return f"<{tag}>{within}</{tag}>"


def _link(words: str, within: str, url: str) -> str:
    """A link; an address of another kind is shown and leads nowhere."""
    if not url or len(url) > _URL_CHARS_MAX:
        return within
    if not url.startswith(_LINKED):
        return within if url == words else f"{within} ({html_of(url)})"
    return f'<a href="{escape(url)}">{within}</a>'
