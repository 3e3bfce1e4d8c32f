"""Styled text as Discord's Markdown, in parts of at most 2,000 characters, each complete by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from keepsaid.adapters.channels.abilities import DISCORD
from keepsaid.adapters.channels.markdown import read_markdown
from keepsaid.text.styled import PartLimits, Style, StyledText, StyleSpan, split, utf16_units

REPEATED: Final = "(may be a repeat)\n"
_CHARS_MAX = DISCORD.chars_max - len(REPEATED)
"""UTF-16 units of one message, with room for the line that marks a repeat."""

_SPANS_MAX = 200
_URL_CHARS_MAX = 500
"""The address of a longer link is left out."""

_MARKS = "\\*_~`|[]<>#"
_MARKED = re.compile(r"(https?://[^\s<>]+)|([\\*_~`|\[\]<])|(?m:^([ \t]*)(-?#|>|-(?= )|\+(?= )))")
"""An address, a character that has a meaning anywhere, or one that has a meaning at the start of a line."""

_LINKED = ("http://", "https://")
_RANKS: Mapping[Style, int] = {Style.QUOTE: 0, Style.LINK: 1, Style.CODE: 3, Style.BLOCK: 3}
_AROUND: Mapping[Style, str] = {Style.BOLD: "**", Style.ITALIC: "*", Style.STRIKE: "~~"}


def discord_parts(text: str) -> list[str]:
    """Render Markdown as the contents of messages, in order; at least one. Code fences are closed and reopened."""
    parts = [content for content in _fitted(read_markdown(text), _CHARS_MAX) if content]
    return parts or ["(no words)"]


def _fitted(styled: StyledText, units: int) -> Iterator[str]:
    """Render pieces of a text; one whose marks make it too long is cut again, by as much as it is too long."""
    for piece in split(styled, PartLimits(units, _SPANS_MAX, _unit)):
        content = _render(piece)
        length = units_of(content)
        if length <= _CHARS_MAX:
            yield content
        elif (size := sum(map(_unit, piece.text))) > 1:
            yield from _fitted(piece, max(1, min(units - 1, size * _CHARS_MAX // length)))
        else:
            yield escaped(piece.text)


def _unit(character: str) -> int:
    """The units of a character with the backslash before it, if it needs one."""
    return 2 if character in _MARKS else utf16_units(character)


def units_of(text: str) -> int:
    """The length of a text in UTF-16 units; Discord never counts more."""
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def _render(piece: StyledText) -> str:
    """A piece as Markdown. Discord removes white space at both ends, so it is removed here."""
    spans = [kept for span in piece.spans if (kept := _trimmed(piece.text, span)) is not None]
    spans.sort(key=lambda span: (span.start, -span.end, _RANKS.get(span.style, 2)))
    return _between(piece.text, 0, len(piece.text), spans).strip()


def _trimmed(text: str, span: StyleSpan) -> StyleSpan | None:
    """A span without white space at its ends, where marks would not work; None if nothing is left of it."""
    if span.style is Style.BLOCK:
        return span if text[span.start : span.end].strip("\n") else None
    words = text[span.start : span.end]
    start = span.start + len(words) - len(words.lstrip())
    end = span.end - len(words) + len(words.rstrip())
    return span._replace(start=start, end=end) if start < end else None


def _between(text: str, start: int, end: int, spans: Sequence[StyleSpan]) -> str:
    """Render the text from `start` to `end` with the spans that begin there, outer ones first."""
    out: list[str] = []
    at, n = start, 0
    while n < len(spans):
        span = spans[n]
        if span.end > end:
            span = span._replace(end=end)
        n += 1
        if span.start < at or span.end <= span.start:
            continue
        out.append(escaped(text[at : span.start], is_line_start=_begins_line(text, at)))
        first = n
        while n < len(spans) and spans[n].start < span.end:
            n += 1
        out.append(_styled(text, span, spans[first:n]))
        at = span.end
    out.append(escaped(text[at:end], is_line_start=_begins_line(text, at)))
    return "".join(out)


def _begins_line(text: str, at: int) -> bool:
    return at == 0 or text[at - 1] == "\n"


def _styled(text: str, span: StyleSpan, inner: Sequence[StyleSpan]) -> str:
    """A span with its marks, and the spans in it."""
    words = text[span.start : span.end]
    if span.style is Style.BLOCK:
        return _block(words, span.detail, newline_before=not _begins_line(text, span.start))
    if span.style is Style.CODE:
        return _code(words)
    within = _between(text, span.start, span.end, inner)
    if span.style is Style.QUOTE:
        return "\n".join(f"> {line}" for line in within.split("\n"))
    if span.style is Style.LINK:
        return _link(words, within, span.detail)
    mark = _AROUND[span.style]
    return f"{mark}{within}{mark}"


def _block(words: str, language: str, *, newline_before: bool) -> str:
    """A fenced block; Discord has no longer fence, so a fence within is broken by a space of no width."""
    name = language if re.fullmatch(r"[A-Za-z0-9_+#.-]{1,20}", language) else ""
    content = words.strip("\n").replace("```", "`\u200b`\u200b`")
    before, after = "\n" if newline_before else "", "\n" if words.endswith("\n") else ""
    return f"{before}```{name}\n{content}\n```{after}"


def _code(words: str) -> str:
    if "`" not in words:
        return f"`{words}`"
    broken = words.replace("``", "`\u200b`")
    return f"`` {broken} ``"


def _link(words: str, within: str, url: str) -> str:
    """A link; one whose text is its address is written as the address, as Discord shows no other."""
    if not url.startswith(_LINKED) or len(url) > _URL_CHARS_MAX or re.search(r"[\s()<>]", url):
        return f"{within} ({escaped(url)})" if len(url) <= _URL_CHARS_MAX and url and url != words else within
    return url if words == url else f"[{within}]({url})"


def escaped(text: str, *, is_line_start: bool = True) -> str:
    """A text whose characters mean nothing to Discord; addresses stay as they are."""

    def mark(found: re.Match[str]) -> str:
        url, anywhere, indent, first = found.groups()
        if url:
            return str(url)
        if anywhere:
            return f"\\{anywhere}"
        if found.start() == 0 and not is_line_start:
            return found.group()
        return f"{indent}\\{first}"

    return _MARKED.sub(mark, text)
