"""The map of the code: one line a module, in the order a message takes, made from the modules' own first words."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.docs.markdown import ROOT, lines_of

PACKAGE = ROOT / "src" / "keepsaid"
TESTKIT = ROOT / "packages" / "testkit" / "src" / "keepsaid_testkit"

HEAD = """\
# Map

Every module in one line, made from its own first words. The parts stand in the order of who may
import whom, the lowest first; inside the pipeline, in the order of a message's path.
"""

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
    "__init__.py",
    "__main__.py",
)
"""The parts of the package, in order; those that are not built yet are left out."""

STAGES = ("runner.py", "answering.py", "intake.py", "routing.py", "leasing.py", "prompt", "turn", "tools", "outbox.py")
"""The stages of the pipeline, in the order of the path."""


def page() -> str:
    """The whole page."""
    return lines_of("\n".join([HEAD, *_parts()]))


def unplaced() -> set[str]:
    """Parts of the package, and stages, that have no place in the order."""
    parts = {one.name for one in PACKAGE.iterdir() if _is_code(one)} - set(PARTS)
    return parts | {one.name for one in (PACKAGE / "pipeline").iterdir() if _is_code(one)} - {*STAGES, "__init__.py"}


def _is_code(path: Path) -> bool:
    return path.suffix == ".py" or (path / "__init__.py").is_file()


def _parts() -> Iterator[str]:
    loose: list[str] = []
    for name in PARTS:
        path = PACKAGE / name
        if path.suffix == ".py":
            loose.append(_line(path))
        elif path.is_dir():
            yield from _part(path)
    yield from _part(TESTKIT)
    yield "## Beside them\n"
    yield "\n".join(loose)


def _part(path: Path) -> Iterator[str]:
    yield f"## {path.name}\n"
    yield f"{_said(path / '__init__.py')}\n"
    lines = [_line(module) for module in _modules(path)]
    lines += [f"- `{folder}`: {text}" for folder, text in SQL_FOLDERS.items() if folder.startswith(f"{path.name}/")]
    yield "\n".join(lines) + "\n"


def _modules(part: Path) -> list[Path]:
    """The modules of a part, each after the package it is in."""
    found = [path for path in part.rglob("*.py") if path != part / "__init__.py"]
    return sorted(found, key=lambda path: (_place(path, part), _inside(path, part)))


SQL_FOLDERS = {
    "adapters/sql/statements/": "the named statements of commits and queries, a file a subject",
    "adapters/sqlite/schema/": "every table, as a new file has it at the number in the name; later migrations follow",
    "adapters/sqlite/migrations/": "a change of the schema is a file with the next number",
}
"""Folders of SQL, which is no module."""


def _place(path: Path, part: Path) -> int:
    first = path.relative_to(part).parts[0]
    return STAGES.index(first) if part.name == "pipeline" and first in STAGES else 0


def _inside(path: Path, part: Path) -> tuple[str, ...]:
    names = path.relative_to(part).with_suffix("").parts
    return tuple("" if name == "__init__" else name for name in names)


def _line(path: Path) -> str:
    root = TESTKIT.parent if path.is_relative_to(TESTKIT) else PACKAGE
    shown = path.relative_to(root).as_posix().removesuffix("__init__.py") or path.name
    return f"- `{shown}`: {_said(path)}"


def _said(path: Path) -> str:
    """The first paragraph of a module's docstring, on one line."""
    words = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
    return " ".join(words.partition("\n\n")[0].split())
