"""Links lead somewhere, every page can be reached, and tests that are named exist."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, Page, all_pages, documents, slug_of
from tests.tidy.source import expect_none

_OUTSIDE = ("http://", "https://", "mailto:")
_TEST = re.compile(r"`(test_\w+)`")
_TEST_AT = re.compile(r"`((?:tests|src)/[\w/]+\.py)(?:::(\w+))?`")
_DEFINED = re.compile(r"^ *(?:async )?(?:def|class) (test_\w+|\w+Contract|\w+Machine)", re.MULTILINE)


def broken_links(page: Page) -> Iterator[str]:
    """Links of a page that lead nowhere."""
    for number, target in page.links:
        if target.startswith(_OUTSIDE):
            continue
        place, _, anchor = target.partition("#")
        file = (page.path.parent / place).resolve() if place else page.path
        where = f"{page.name}:{number}: {target}"
        if not file.exists():
            yield f"{where}: there is no such file"
        elif anchor and anchor not in Page(file).anchors:
            yield f"{where}: {file.name} has no such heading"


def linked_from(page: Page) -> Iterator[Path]:
    """Files that a page links; a folder stands for the pages in it."""
    for _, target in page.links:
        if not target.startswith(_OUTSIDE):
            file = (page.path.parent / target.partition("#")[0]).resolve()
            yield from file.glob("*.md") if file.is_dir() else (file,)


@cache
def defined() -> dict[str, set[str]]:
    """Tests, contracts and machines, by the files that define them."""
    files = (*(ROOT / "tests").rglob("*.py"), *(ROOT / "src/keepsaid/testing").rglob("*.py"))
    return {file.relative_to(ROOT).as_posix(): set(_DEFINED.findall(file.read_text("utf-8"))) for file in files}


def missing_tests(page: Page) -> Iterator[str]:
    """Tests that a page names and nobody wrote."""
    known = defined()
    everywhere = set[str]().union(*known.values())
    for number, line in page.prose:
        for name in _TEST.findall(line):
            if name not in everywhere:
                yield f"{page.name}:{number}: there is no test {name}"
        for file, name in _TEST_AT.findall(line):
            if not (ROOT / file).exists() or (name and name not in known.get(file, set())):
                yield f"{page.name}:{number}: there is no {file}{'::' if name else ''}{name}"


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    expect_none(broken_links(page))


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_tests_that_are_named_exist(page: Page) -> None:
    expect_none(missing_tests(page))


def test_every_page_can_be_reached() -> None:
    pages = {page.path: page for page in documents()}
    reached, left = set[Path](), [ROOT / "README.md"]
    while left:
        path = left.pop()
        if path in pages and path not in reached:
            reached.add(path)
            left += linked_from(pages[path])
    assert sorted(pages[path].name for path in set(pages) - reached) == []


# The rules can fail


def test_rule_broken_links(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# A title, twice: it's `x`\n\n# A title, twice: it's `x`\n[a](page.md#a-title-twice-its-x-1) [b](#no)\n"
        "[c](none.md) `[d](none.md)` [e](https://example.org/none) [f](page.md)\n"
        "`code\nover lines` [g\nover lines](nowhere.md)\n",
        "utf-8",
    )
    assert list(broken_links(Page(page))) == [
        "page.md:4: #no: page.md has no such heading",
        "page.md:5: none.md: there is no such file",
        "page.md:8: nowhere.md: there is no such file",
    ]


def test_rule_slugs() -> None:
    assert slug_of("1. Kept: what `put` returns") == "1-kept-what-put-returns"


def test_rule_missing_tests(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    here = "tests/docs/test_links.py"
    page.write_text(f"`test_rule_slugs` `test_of_nothing` `{here}::test_rule_slugs` `{here}::test_none`\n", "utf-8")
    assert list(missing_tests(Page(page))) == [
        "page.md:1: there is no test test_of_nothing",
        f"page.md:1: there is no {here}::test_none",
    ]
