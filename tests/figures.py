"""Figures: what a long test counted, one JSON line each, so that they can be written down."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from time import monotonic
from typing import Any

Figures = Callable[..., None]
"""Takes what was counted, by name; called before the test judges it."""


class Sheet:
    """The lines of one run, kept in a file as well if there is one."""

    def __init__(self, file: Path | None) -> None:
        self.lines: list[str] = []
        self._file = file

    def figures(self, test: str) -> Figures:
        """Writes the line of a test that begins now."""
        began = monotonic()

        def write(**counted: Any) -> None:
            self.lines.append(json.dumps({"test": test, "seconds": round(monotonic() - began, 1), **counted}))
            if self._file is not None:
                with self._file.open("a", encoding="utf-8") as file:
                    file.write(self.lines[-1] + "\n")

        return write
