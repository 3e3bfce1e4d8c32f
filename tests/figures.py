"""Figures: what a long test counted, one JSON line each, so that they can be written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

_PROPERTY = "figures"

Figures = Callable[..., None]
"""Takes what was counted, by name; called before the test judges it."""


def figures_of(test: pytest.Item) -> Figures:
    """Writes the line of a test that begins now; it goes with the report, as the test may run in another process."""
    began = monotonic()

    def write(**counted: Any) -> None:
        seconds = round(monotonic() - began, 1)
        test.user_properties.append((_PROPERTY, json.dumps({"test": test.name, "seconds": seconds, **counted})))

    return write


class Sheet:
    """The lines of one run, kept in a file as well if there is one."""

    def __init__(self, file: Path | None) -> None:
        self.lines: list[str] = []
        self._file = file

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take what a test counted, as soon as it is over."""
        if report.when != "call":
            return
        lines = [str(line) for name, line in report.user_properties if name == _PROPERTY]
        self.lines += lines
        if self._file is not None and lines:
            with self._file.open("a", encoding="utf-8") as file:
                file.writelines(f"{line}\n" for line in lines)
