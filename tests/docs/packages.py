"""The packages of the program in the order of who may import whom, and what their modules say in their first words."""

from __future__ import annotations

import ast
from pathlib import Path

from tests.docs.markdown import ROOT

PACKAGE = ROOT / "src" / "keepsaid"
TESTKIT = ROOT / "packages" / "testkit" / "src" / "keepsaid_testkit"

PARTS = (
    "errors.py",
    "values.py",
    "text",
    "domain",
    "config",
    "ports",
    "pipeline",
    "memory",
    "events",
    "adapters",
    "engine",
    "extensions",
    "services",
    "app",
    "testing",
    "interfaces",
    "frameworks",
    "__init__.py",
    "__main__.py",
)
"""The parts of the package, the lowest first."""


def unplaced() -> set[str]:
    """Parts of the package that are not in `PARTS`."""
    return {one.name for one in PACKAGE.iterdir() if _is_code(one)} - set(PARTS)


def _is_code(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def undescribed() -> list[str]:
    """Modules of the package and the testkit whose docstring is missing."""
    files = [*PACKAGE.rglob("*.py"), *TESTKIT.rglob("*.py")]
    return [path.as_posix() for path in files if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
