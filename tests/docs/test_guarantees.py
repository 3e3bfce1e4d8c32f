"""Tests that the documentation names as proof are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(ROOT.glob("docs/**/*.md"))
_TEST = re.compile(r"`(test_\w+)`")
_FILE = re.compile(r"`((?:tests|src|bench|packages)/[\w/]+\.\w+)`")


def written() -> frozenset[str]:
    """The names of all test functions, of the contracts too."""
    files = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("packages/**/*.py")]
    return frozenset(name for file in files for name in re.findall(r"def (test_\w+)\(", file.read_text("utf-8")))


def missing(page: str) -> list[str]:
    """What a page names that is not there."""
    files = [name for name in _FILE.findall(page) if not (ROOT / name).is_file()]
    return [*sorted(set(_TEST.findall(page)) - written()), *files]


def test_every_promise_names_a_proof() -> None:
    text = (ROOT / "docs/develop/guarantees.md").read_text("utf-8")
    promises = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    unproven = [one.splitlines()[0] for one in promises if not _TEST.search(one) and "simulation" not in one]
    assert (len(promises) > 9, unproven) == (True, [])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    assert missing(page.read_text("utf-8")) == []


def test_what_is_not_there_is_found() -> None:
    assert missing("`test_nobody_wrote_this` and `tests/unit/test_nowhere.py`") == [
        "test_nobody_wrote_this",
        "tests/unit/test_nowhere.py",
    ]
