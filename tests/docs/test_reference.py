"""The pages that are made from code say what the code says."""

from __future__ import annotations

import pytest
from tests.docs.commands_page import parameters
from tests.docs.config_page import page as config_page
from tests.docs.errors_page import kinds
from tests.docs.generate import PAGES
from tests.docs.markdown import ROOT

from keepsaid.interfaces.cli.data import restore


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_what_the_code_makes_of_it(name: str) -> None:
    written = (ROOT / name).read_text("utf-8")
    assert written == PAGES[name](), f"run: python -m tests.docs.generate   (it writes {name})"


def test_every_code_is_one_error() -> None:
    codes = [kind.code for kind in kinds()]
    assert sorted(codes) == sorted(set(codes))


def test_a_command_is_read_as_it_is_typed() -> None:
    typed = {one.typed: one.usual for one in parameters(restore)}
    assert typed == {"BACKUP": "required", "--to PATH": "required"}


def test_a_setting_names_its_variable_and_bounds() -> None:
    row = next(line for line in config_page().splitlines() if line.startswith("| `buffer.window_ms`"))
    assert "| whole number, 0 to 600,000 | `500` |" in row
    assert "`KEEPSAID_BUFFER__WINDOW_MS`" in row
