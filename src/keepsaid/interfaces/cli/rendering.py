"""Renders the messages of a chat on a terminal: Markdown in the width of the window, and an answer as it is written."""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, ClassVar

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.live import Live
from rich.markdown import Heading, Markdown
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from keepsaid.interfaces.cli.console import coloured
from keepsaid.interfaces.cli.escapes import VisibleStream, visible

_REFRESH_S = 0.125
_FENCES = ("```", "~~~")
_LABEL_WIDTH, _LABEL_MAX = 6, 10
"""Columns for a label such as `bot >`; the text begins behind them on every line. A longer label has its own line."""

THINKING = "thinking"
"""What the model does while it runs no tool."""


_AFTER_LIST = re.compile(r"(?m)^([ \t]{0,12}[-*+] [^\n]*)\n(?=[^\s*+\d-])")
"""A line that follows a list without an empty line: Markdown would make it a part of the last item."""


class _Heading(Heading):
    LEVEL_ALIGN: ClassVar = dict.fromkeys(Heading.LEVEL_ALIGN, "left")


class SafeMarkdown(Markdown):
    """Markdown whose line breaks stay, and whose text shows every hidden character, also one written as an entity."""

    elements: ClassVar = {**Markdown.elements, "heading_open": _Heading}

    def __init__(self, text: str) -> None:
        super().__init__(_AFTER_LIST.sub(r"\1\n\n", visible(text)), code_theme="ansi_dark", hyperlinks=False)
        for token in _tokens(self.parsed):
            if token.type == "softbreak":
                token.type = "hardbreak"
            token.content = visible(token.content)
            token.attrs = {name: visible(str(value)) for name, value in token.attrs.items()}


class _Trimmed:
    """What is rendered, without empty lines before and after it."""

    def __init__(self, inner: RenderableType) -> None:
        self._inner = inner

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = console.render_lines(self._inner, options, pad=False)
        filled = [n for n, line in enumerate(lines) if any(part.text.strip() for part in line)]
        for line in lines[filled[0] : filled[-1] + 1] if filled else ():
            yield from line
            yield Segment.line()


def _tokens(tokens: list[Any]) -> Iterator[Any]:
    for token in tokens:
        yield token
        yield from _tokens(token.children or [])


def terminal() -> Console:
    """The terminal as it is now: its width, and colour if that is wanted."""
    return Console(file=sys.stdout, force_terminal=True, no_color=not coloured(), highlight=False)


def print_message(label: str, text: str) -> None:
    """Print a whole message behind its label."""
    terminal().print(_row(label, text))


def _row(label: str, text: str) -> RenderableType:
    """A label, bold where styles are wanted, and the text beside it; a long label has a line of its own."""
    shown = Text(label, style="bold" if coloured() else "")
    if len(label) >= _LABEL_MAX:
        return Group(shown, _row("", text))
    row = Table.grid()
    row.add_column(width=max(_LABEL_WIDTH, len(label) + 1))
    row.add_column()
    row.add_row(shown, _Trimmed(SafeMarkdown(text)))
    return row


def end_of_blocks(text: str) -> int:
    """Where the last complete block of Markdown ends: behind the last empty line that is in no block of code."""
    end = at = 0
    is_code = False
    for line in text.splitlines(keepends=True):
        at += len(line)
        is_code ^= line.lstrip().startswith(_FENCES)
        if not is_code and not line.strip() and line.endswith("\n"):
            end = at
    return end


def late(at: str) -> str:
    """The label of a reply that nobody waited for, made at a time (RFC 3339): the time where the person is."""
    made, now = datetime.fromisoformat(at).astimezone(), datetime.now().astimezone()
    time = f"{made:%H:%M}" if made.date() == now.date() else f"{made:%Y-%m-%d %H:%M}"
    return f"bot, {time} >" if now - made < _LIVE else f"{EARLIER}, {time} >"


EARLIER = "earlier"
_LIVE = timedelta(minutes=1)
"""What was made within it was shown when it came, as the output of a schedule is in an open chat."""


class AnswerView:
    """Shows one answer while it is made: what is written so far, and what is done, for how many seconds.

    Complete blocks are printed for good; the block that is being written and the line below it are drawn again.
    """

    def __init__(self) -> None:
        self._stream = VisibleStream()
        self._rest = ""
        self._label = "bot >"
        self._doing = THINKING
        self._since = time.monotonic()
        self._live = Live(
            get_renderable=self._draw, console=terminal(), auto_refresh=False, transient=True,
            redirect_stdout=False, redirect_stderr=False,
        )  # fmt: skip
        self._live.start(refresh=True)
        self._drawing = asyncio.create_task(self._draw_often())

    def doing(self, what: str) -> None:
        """Show what is done now: the name of a tool, or THINKING."""
        self._doing, self._since = what, time.monotonic()

    def write(self, piece: str) -> None:
        """Add a piece of the answer."""
        self._rest += self._stream.feed(piece)
        end = end_of_blocks(self._rest)
        if end:
            block, self._rest = self._rest[:end], self._rest[end:]
            self._print(block)
            self._live.console.print()

    def message(self, label: str, text: str) -> None:
        """Print another message above the answer."""
        self._live.console.print(_row(label, text))

    def say(self, text: str) -> None:
        """Print a line about the answer."""
        self._live.console.print(Text(visible(text)))

    def end(self) -> None:
        """Print what is left, and draw no more."""
        self._drawing.cancel()
        self._live.stop()
        self._rest += self._stream.end()
        if self._rest.strip():
            self._print(self._rest)
        self._rest = ""

    def _print(self, text: str) -> None:
        self._live.console.print(_row(self._label, text))
        self._label = ""

    async def _draw_often(self) -> None:
        """Draw again and again; not in a thread of `Live`, which would draw between two lines that are printed here."""
        while True:
            self._live.refresh()
            await asyncio.sleep(_REFRESH_S)

    def _draw(self) -> RenderableType:
        seconds = int(time.monotonic() - self._since)
        line = Text(f"{self._doing} {seconds} s   Ctrl-C stops waiting", style="dim" if coloured() else "")
        return Group(_row(self._label, self._rest), line) if self._rest.strip() else line
