"""Markdown, as models write it, read once into styled text; every medium makes its own form of that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING

from keepsaid.text.styled import Style, StyledText, StyleSpan

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_INLINE = {"strong": Style.BOLD, "em": Style.ITALIC, "s": Style.STRIKE}
_RULE, _BULLET = "———", "•"
_INDENT = "  "
_NESTED_MAX = 20
"""Lists and quotes within each other; deeper ones are read as text."""

_BRACKETS_MAX = 2_000


@cache
def _parser() -> MarkdownIt:
    """The parser of CommonMark with tables and struck text, without HTML."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - 40 ms that only channels with styles need

    options = {"html": False, "maxNesting": _NESTED_MAX}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def read_markdown(text: str) -> StyledText:
    """Read a text with its styles: a heading is bold, a list has bullets or numbers, a table stays as it was typed.

    A text with thousands of brackets has no styles: the parser tries each of them as a link.
    """
    if text.count("[") > _BRACKETS_MAX:
        return StyledText(text)
    reader = _Reader(text)
    for token in _parser().parse(text):
        reader.take(token)
    return reader.result()


class _Reader:
    """Writes the words of tokens and remembers where styles begin and end."""

    def __init__(self, source: str) -> None:
        self._lines = source.split("\n")
        self._out: list[str] = []
        self._length = 0
        self._spans: list[StyleSpan] = []
        self._open: list[tuple[Style, int, str]] = []
        self._numbers: list[int | None] = []
        self._marker = ""
        self._gap = 0
        self._in_table = False

    def result(self) -> StyledText:
        while self._open:
            self._close()
        return StyledText("".join(self._out), tuple(sorted(span for span in self._spans if span.end > span.start)))

    def take(self, token: Token) -> None:
        """Take a token of a block."""
        if token.type == "table_open":
            self._in_table = True
            self.block("\n".join(self._source(token)), "")
        elif token.type == "table_close":
            self._in_table = False
        elif not self._in_table:
            _BLOCKS.get(token.type, _nothing)(self, token)

    def begin_style(self, style: Style) -> None:
        self.begin_block()
        self._open.append((style, self._length, ""))

    def end_style(self) -> None:
        self._close()
        self._gap = 2

    def begin_list(self, first: int | None) -> None:
        self._numbers.append(first)

    def end_list(self) -> None:
        self._numbers.pop()
        self.end_paragraph()

    def end_paragraph(self) -> None:
        self._gap = 1 if self._numbers else 2

    def rule(self) -> None:
        self.begin_block()
        self._write(_RULE)
        self._gap = 2

    def words(self, tokens: Sequence[Token]) -> None:
        for token in tokens:
            self._inline(token)

    def _inline(self, token: Token) -> None:
        name, _, side = token.type.rpartition("_")
        if name in _INLINE and side == "open":
            self._open.append((_INLINE[name], self._length, ""))
        elif token.type == "link_open":
            self._open.append((Style.LINK, self._length, str(token.attrGet("href") or "")))
        elif side == "close":
            self._close()
        elif token.type == "code_inline":
            self._style(token.content, Style.CODE)
        elif token.type == "image":
            self._style(token.content or str(token.attrGet("src")), Style.LINK, str(token.attrGet("src") or ""))
        elif token.type in ("softbreak", "hardbreak"):
            self._write("\n" + _INDENT * max(0, len(self._numbers) - 1))
        else:
            self._write(token.content)

    def begin_item(self) -> None:
        """Begin an item of a list: its mark is written with its first words."""
        self.begin_block()
        number = self._numbers[-1]
        mark = _BULLET if number is None else f"{number}."
        if number is not None:
            self._numbers[-1] = number + 1
        self._write(f"{_INDENT * (len(self._numbers) - 1)}{mark} ")
        self._gap = 0

    def begin_block(self) -> None:
        """Leave as many line breaks as the block before it asks for."""
        if self._length:
            self._write("\n" * self._gap)
        self._gap = 0

    def block(self, text: str, language: str) -> None:
        self.begin_block()
        self._style(text, Style.BLOCK, language)
        self._gap = 2

    def _style(self, text: str, style: Style, detail: str = "") -> None:
        self._spans.append(StyleSpan(self._length, self._length + len(text), style, detail))
        self._write(text)

    def _write(self, text: str) -> None:
        self._out.append(text)
        self._length += len(text)

    def _close(self) -> None:
        """End the style that began last."""
        style, start, detail = self._open.pop()
        self._spans.append(StyleSpan(start, self._length, style, detail))

    def _source(self, token: Token) -> Sequence[str]:
        """The lines of a block as they were typed."""
        first, last = token.map or (0, 0)
        return self._lines[first:last]


def _nothing(_reader: _Reader, _token: Token) -> None:
    """Other tokens only stand around these."""


_BLOCKS: Mapping[str, Callable[[_Reader, Token], None]] = {
    "heading_open": lambda reader, _: reader.begin_style(Style.BOLD),
    "heading_close": lambda reader, _: reader.end_style(),
    "blockquote_open": lambda reader, _: reader.begin_style(Style.QUOTE),
    "blockquote_close": lambda reader, _: reader.end_style(),
    "bullet_list_open": lambda reader, _: reader.begin_list(None),
    "bullet_list_close": lambda reader, _: reader.end_list(),
    "ordered_list_open": lambda reader, token: reader.begin_list(int(token.attrGet("start") or 1)),
    "ordered_list_close": lambda reader, _: reader.end_list(),
    "list_item_open": lambda reader, _: reader.begin_item(),
    "paragraph_open": lambda reader, _: reader.begin_block(),
    "paragraph_close": lambda reader, _: reader.end_paragraph(),
    "fence": lambda reader, token: reader.block(token.content.removesuffix("\n"), token.info.split(" ")[0]),
    "code_block": lambda reader, token: reader.block(token.content.removesuffix("\n"), ""),
    "hr": lambda reader, _: reader.rule(),
    "inline": lambda reader, token: reader.words(token.children or ()),
}
"""What is done with a token of a block, by its type."""
