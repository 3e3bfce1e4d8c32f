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
_FILE = re.compile(r"`([\w./-]+/[\w-]+\.(?:py|sql|toml))`")
_FILE_OF_TREE = re.compile(r"[\w]+\.(?:py|sql|toml)\b")
_DEFINED = re.compile(r"^ *(?:async )?def (test_\w+)", re.MULTILINE)


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
def defined() -> frozenset[str]:
    """The tests that there are, those of the contracts too."""
    files = (*(ROOT / "tests").rglob("*.py"), *(ROOT / "packages").rglob("*.py"))
    return frozenset(name for file in files for name in _DEFINED.findall(file.read_text("utf-8")))


def missing_tests(page: Page) -> Iterator[str]:
    """Tests that a page names and nobody wrote."""
    known = defined()
    for number, line in page.prose:
        yield from (
            f"{page.name}:{number}: there is no test {name}" for name in _TEST.findall(line) if name not in known
        )


def missing_files(page: Page) -> Iterator[str]:
    """Source files that a page names, by path or in a drawing of the tree, and that are not there."""
    for number, line in page.prose:
        for name in _FILE.findall(line):
            if not any((root / name).exists() for root in (ROOT, ROOT / "src/keepsaid", ROOT / "packages/testkit/src")):
                yield f"{page.name}:{number}: there is no {name}"
    for block in page.blocks:
        if any(line.endswith("keepsaid/") for line in block.lines):
            drawn = set(_FILE_OF_TREE.findall(block.text))
            yield from (f"{page.name}:{block.line}: there is no {name}" for name in sorted(drawn - file_names()))


@cache
def file_names() -> frozenset[str]:
    """Names of the files of the package."""
    return frozenset(file.name for file in (ROOT / "src/keepsaid").rglob("*") if file.is_file())


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_links_lead_somewhere(page: Page) -> None:
    expect_none(broken_links(page))


@pytest.mark.parametrize("page", all_pages(), ids=lambda page: page.name)
def test_tests_and_files_that_are_named_exist(page: Page) -> None:
    expect_none((*missing_tests(page), *missing_files(page)))


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


def test_rule_missing_tests_and_files(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    text = "`test_rule_slugs` `test_of_nothing`\n`domain/states.py` `tests/docs/generate.py` `domain/none.py`\n"
    tree = "```text\nsrc/keepsaid/\n  states.py  no.py\n```\n```text\nno.py\n```\n"
    page.write_text(text + tree, "utf-8")
    assert list(missing_tests(Page(page))) == ["page.md:1: there is no test test_of_nothing"]
    assert list(missing_files(Page(page))) == [
        "page.md:2: there is no domain/none.py",
        "page.md:4: there is no no.py",
    ]
