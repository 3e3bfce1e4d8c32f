"""The examples are the programs of the page about frameworks, whose blocks are run (tests/docs/test_blocks.py)."""

from __future__ import annotations

from tests.docs.markdown import ROOT, Page


def test_each_example_stands_on_the_page_that_is_run() -> None:
    page = Page(ROOT / "docs" / "use" / "reference" / "frameworks.md")
    shown = {block.text.strip() for block in page.blocks if block.info == "python"}
    examples = {path.name: path.read_text("utf-8").strip() for path in (ROOT / "examples").glob("*.py")}
    assert examples
    assert [name for name, text in examples.items() if text not in shown] == []


def test_an_example_is_short() -> None:
    for path in (ROOT / "examples").glob("*.py"):
        lines = [line for line in path.read_text("utf-8").splitlines() if line.strip()]
        assert len(lines) <= 40, path.name
