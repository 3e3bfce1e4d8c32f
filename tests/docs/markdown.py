"""Markdown as the tests of the documentation read and write it: blocks, links, headings, tables."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^ {0,3}(```+)\s*(.*)$")
_LINK = re.compile(r"\[[^\]]*\]\(([^()\s]+)\)")
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^(#{1,6}) +(.+?) *$")
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: what stands behind its fence, its first line in the file, its lines."""

    info: str
    line: int
    lines: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines as one text."""
        return "".join(f"{line}\n" for line in self.lines)


@dataclass(frozen=True, slots=True)
class Page:
    """A Markdown file."""

    path: Path

    @property
    def name(self) -> str:
        """Its path in the repository, or its name when it stands elsewhere."""
        return self.path.relative_to(ROOT).as_posix() if self.path.is_relative_to(ROOT) else self.path.name

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Its fenced blocks, in order."""
        return _read(self.path)[0]

    @property
    def prose(self) -> tuple[tuple[int, str], ...]:
        """Its lines outside of blocks, with their numbers."""
        return _read(self.path)[1]

    @property
    def links(self) -> Iterator[tuple[int, str]]:
        """Targets of links, with the number of their line; what is set as code is none."""
        text, first = "\n".join(line for _, line in self.prose), [number for number, _ in self.prose]
        for found in _LINK.finditer(_CODE.sub(_blank, text)):
            yield first[text.count("\n", 0, found.start(1))], found.group(1)

    @property
    def anchors(self) -> frozenset[str]:
        """The names its headings can be linked by."""
        seen: Counter[str] = Counter()
        found = set()
        for _, line in self.prose:
            heading = _HEADING.match(line)
            if heading:
                slug = slug_of(heading.group(2))
                found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
                seen[slug] += 1
        return frozenset(found)


@cache
def _read(path: Path) -> tuple[tuple[Block, ...], tuple[tuple[int, str], ...]]:
    blocks, prose = [], []
    fence, info, start, inside = "", "", 0, list[str]()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), start=1):
        found = _FENCE.match(line)
        if fence:
            if found and found.group(1) == fence and not found.group(2):
                blocks.append(Block(info, start, tuple(inside)))
                fence, inside = "", []
            else:
                inside.append(line)
        elif found:
            fence, info, start = found.group(1), found.group(2).strip(), number + 1
        else:
            prose.append((number, line))
    assert not fence, f"{path}:{start}: a block that never ends"
    return tuple(blocks), tuple(prose)


def _blank(code: re.Match[str]) -> str:
    """As many letters, and the line ends where they were."""
    return re.sub(r"[^\n]", "x", code.group())


def slug_of(heading: str) -> str:
    """The name of a heading in links."""
    return _NOT_IN_SLUG.sub("", heading.lower()).replace(" ", "-")


def documents() -> tuple[Page, ...]:
    """README and every page under docs."""
    return tuple(Page(path) for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))))


def all_pages() -> tuple[Page, ...]:
    """Every Markdown file people read: the documents and those at the root."""
    return (*documents(), *(Page(path) for path in sorted(ROOT.glob("*.md")) if path.name != "README.md"))


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table, with an empty line after it."""
    ruled = [headings, ["---"] * len(headings), *rows]
    return "".join(f"| {' | '.join(_cell(cell) for cell in row)} |\n" for row in ruled)


def _cell(text: str) -> str:
    return text.replace("|", "\\|") or " "


def lines_of(text: str) -> str:
    """The text with one line end at its end."""
    return f"{text.rstrip()}\n"
