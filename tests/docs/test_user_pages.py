"""The pages for users: a bound on their words, and a picture and an example for each concept."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.docs.markdown import ROOT, Page

from keepsaid.testing.model_script import Reaction, Script

USE = ROOT / "docs" / "use"
WORDS_MAX = 25_000


def words(page: Page) -> int:
    """The words of a page outside of blocks."""
    return sum(len(line.split()) for _, line in page.prose)


def test_the_pages_for_users_have_at_most_25_000_words() -> None:
    sizes = {
        page.name: words(page) for page in map(Page, USE.rglob("*.md")) if USE / "reference" not in page.path.parents
    }
    assert sum(sizes.values()) <= WORDS_MAX, sorted(sizes.items(), key=lambda item: -item[1])


def test_the_script_in_the_docs_is_read_and_has_every_kind_of_answer() -> None:
    [block] = [block for block in Page(USE / "how-to" / "models.md").blocks if '"reactions"' in block.text]
    script = Script.from_json(block.text)
    kinds = {one["kind"] for one in json.loads(script.to_json())["reactions"]}
    assert kinds == {kind.__name__.lower() for kind in Reaction.__subclasses__()}


CONCEPTS = sorted((USE / "concepts").glob("*.md"))


@pytest.mark.parametrize("path", CONCEPTS, ids=lambda path: path.name)
def test_a_concept_has_a_picture_and_an_example(path: Path) -> None:
    kinds = [block.info.split()[0] for block in Page(path).blocks]
    assert "mermaid" in kinds
    assert "console" in kinds


def test_words_in_blocks_do_not_count(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Three little words\n\n```text\nnot these\n```\n", "utf-8")
    assert words(Page(page)) == 4
