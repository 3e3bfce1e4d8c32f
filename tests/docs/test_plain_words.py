"""The pages for users are in plain English: none of the phrases that a reader had to decode."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.generate import PAGES
from tests.docs.markdown import ROOT, Page
from tests.tidy.source import expect_none

PHRASES = re.compile(
    r"\b(?:anew|so many|came of|comes of|became of|stands? for|has \w+ stand for|let be|(?:is|was|are) told|is heard|"
    r"may hear|look(?:s|ed)? after|put(?:s|ting)? right|comes? to mind|(?<!there )is no (?!longer)\w+)\b",
    re.IGNORECASE,
)
"""Idiom of our own, where English has a plain word."""

_MOTTO = "comes to mind when needed"
_NAMES = re.compile(r"`[^`]*`|\]\([^)]*\)")
_WRITTEN = [
    Page(path)
    for path in (ROOT / "README.md", *sorted((ROOT / "docs/use").rglob("*.md")))
    if path.relative_to(ROOT).as_posix() not in PAGES
]


def idioms(page: Page) -> Iterator[str]:
    """The phrases in a page, outside of blocks, code and links."""
    for number, line in page.prose:
        for found in PHRASES.finditer(_NAMES.sub("", line.replace(_MOTTO, ""))):
            yield f"{page.name}:{number}: {found.group()!r}"


@pytest.mark.parametrize("page", _WRITTEN, ids=lambda page: page.name)
def test_no_page_for_users_has_an_idiom(page: Page) -> None:
    expect_none(idioms(page))


def test_idioms_are_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("It is made anew, as `anew` says.\n\n```text\nanew\n```\nThere is no longer a queue.\n", "utf-8")
    assert list(idioms(Page(page))) == ["page.md:1: 'anew'"]
