"""HTML as plain text: words, line breaks, list marks and quotes. Nothing is rendered, loaded or run.

The reader has its own scanner, in linear time on any text: `html.parser` is quadratic on comments that never end. As in
the HTML standard, a tag or a comment without an end reaches to the end of the text.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Mapping

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,30})")
_QUOTE_OR_END = re.compile(r"[\"'>]")
_HREF = re.compile(r"\shref\s{0,9}=\s{0,9}[\"']?(https?://[^\s\"'>]{1,200})(?=[\s\"'>])", re.IGNORECASE)
_HREF_CHARS_MAX = 2_000
_LONG_NUMBER = re.compile(r"&(#[xX]?)(?=[0-9a-fA-F]{9})")

_HIDDEN = ("script", "style", "head", "title", "template", "noscript", "textarea", "svg", "iframe", "object")
_ENDS: Mapping[str, re.Pattern[str]] = {name: re.compile(rf"</{name}(?=[\s>/])", re.IGNORECASE) for name in _HIDDEN}
_PARAGRAPHS = frozenset(("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "table", "blockquote", "pre", "hr"))
_LINES = frozenset(("div", "tr", "li", "br", "section", "article", "header", "footer", "address", "dt", "dd", "form"))
_QUOTES_MAX = 20


def text_of_html(source: str) -> str:
    """The words of a document; lines that it quotes begin with `> `."""
    page = _Page()
    for kind, value in _tokens(source):
        if kind == "text":
            page.words(value)
        else:
            page.tag(value, is_end=kind == "end")
    return page.result()


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    """Runs of text, and tags from their `<` to their `>`; hidden elements are left out with all that is in them."""
    at = 0
    while at < len(source):
        opened = source.find("<", at)
        if opened < 0:
            yield "text", source[at:]
            return
        if opened > at:
            yield "text", source[at:opened]
        if source.startswith("<!--", opened):
            at = _after(source, "-->", opened + 4)
            continue
        if source.startswith(("<!", "<?"), opened):
            at = _after(source, ">", opened)
            continue
        found = _TAG.match(source, opened)
        if found is None:
            yield "text", "<"
            at = opened + 1
            continue
        at = _tag_end(source, found.end())
        name, is_end = found.group(2).lower(), bool(found.group(1))
        yield "end" if is_end else "start", source[opened : min(at, opened + _HREF_CHARS_MAX)]
        if name in _ENDS and not is_end and not source.startswith("/>", at - 2):
            closing = _ENDS[name].search(source, at)
            at = closing.start() if closing else len(source)


def _after(source: str, mark: str, start: int) -> int:
    """The place after a mark; the end of the text where there is none."""
    found = source.find(mark, start)
    return len(source) if found < 0 else found + len(mark)


def _tag_end(source: str, start: int) -> int:
    """The place after the `>` of a tag; a `>` in quotes does not end it."""
    at = start
    while (found := _QUOTE_OR_END.search(source, at)) is not None:
        if found.group() == ">":
            return found.end()
        at = _after(source, found.group(), found.end())
    return len(source)


class _Page:
    """Writes lines: spaces are folded, and blocks begin on lines of their own."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._line: list[str] = []
        self._quotes = 0
        self._preformatted = 0
        self._links: list[tuple[str, int]] = []

    def words(self, text: str) -> None:
        if self._preformatted:
            first, *others = _unescaped(text).split("\n")
            self._line.append(first)
            for line in others:
                self._break()
                self._line.append(line)
            return
        words = " ".join(_unescaped(text).replace("\xa0", " ").split())
        begins, ends = text[:1].isspace(), text[-1:].isspace()
        if (begins or not words) and self._line and not self._line[-1].endswith(" "):
            self._line.append(" ")
        if words:
            self._line.append(words)
            if ends:
                self._line.append(" ")

    def tag(self, tag: str, *, is_end: bool) -> None:
        found = _TAG.match(tag)
        name = found.group(2).lower() if found else ""
        if name == "a":
            self._link(tag, is_end=is_end)
        elif name in _PARAGRAPHS:
            self._paragraph(name, is_end=is_end)
        elif name in _LINES:
            if name == "br" or self._line:
                self._break()
            if name == "li" and not is_end:
                self._line.append("• ")
        elif name in ("td", "th") and not is_end and self._line:
            self._line.append(" ")

    def result(self) -> str:
        self._break()
        out: list[str] = []
        for line in self._lines:
            if line.strip("> ") or (out and out[-1].strip("> ")):
                out.append(line)
        return "\n".join(out).strip("\n")

    def _paragraph(self, name: str, *, is_end: bool) -> None:
        if self._line:
            self._break()
        step, before = -1 if is_end else 1, self._quotes
        if name == "blockquote":
            self._quotes = min(max(0, self._quotes + step), _QUOTES_MAX)
        elif name == "pre":
            self._preformatted = max(0, self._preformatted + step)
        self._lines.append(("> " * min(before, self._quotes)).rstrip())

    def _link(self, tag: str, *, is_end: bool) -> None:
        """Write the address of a link after its words, unless they are the address."""
        if not is_end:
            found = _HREF.search(tag)
            self._links = [(html.unescape(found.group(1)), len(self._line))] if found else []
        elif self._links:
            href, start = self._links.pop()
            shown = "".join(self._line[start:]).strip() if start <= len(self._line) else ""
            if shown and shown.rstrip("/") not in href:
                self._line.append(f" ({href})")

    def _break(self) -> None:
        text = "".join(self._line)
        prefix = "> " * self._quotes
        self._lines.append(f"{prefix}{text}".rstrip())
        self._line = []


def _unescaped(text: str) -> str:
    """A text with its entities read; a number of nine digits and more is left as it is written."""
    return html.unescape(_LONG_NUMBER.sub(r"&amp;\1", text))
