"""The tree as the tidy tests read it: sources, their comments, and findings that name file and line."""

from __future__ import annotations

import ast
import io
import subprocess
import tokenize
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "src/keepsaid/"
ALL = ("src", "packages", "tests", "bench")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file; `path` is relative to the root of the repository."""

    path: str
    text: str

    @property
    def within(self) -> str:
        """The path inside the package, or an empty text for files beside it."""
        return self.path.removeprefix(PACKAGE) if self.path.startswith(PACKAGE) else ""

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines; line n is at n - 1."""
        return tuple(self.text.split("\n"))

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the syntax tree."""
        return tuple(ast.walk(ast.parse(self.text, self.path)))

    @cached_property
    def comments(self) -> tuple[tuple[int, str], ...]:
        """Comments with their line numbers."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return tuple((token.start[0], token.string) for token in tokens if token.type == tokenize.COMMENT)

    @property
    def functions(self) -> Iterator[Function]:
        """Functions and methods, nested ones too."""
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        """Classes, nested ones too."""
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    def at(self, line: int, message: str) -> str:
        """A finding in this file."""
        return f"{self.path}:{line}: {message}"


Rule = Callable[[Source], Iterable[str]]


def under(place: str, roots: Iterable[str]) -> bool:
    """Whether a path is one of the roots, as a folder or as a module, or lies inside it."""
    return any(place == f"{root}.py" or place.startswith(f"{root}/") for root in roots)


@cache
def python_files(*roots: str) -> tuple[Source, ...]:
    """The Python files under some folders of the repository; a folder that is not there holds none."""
    paths = sorted(path for root in roots for path in (ROOT / root).rglob("*.py"))
    return tuple(Source(path.relative_to(ROOT).as_posix(), path.read_text("utf-8")) for path in paths)


@cache
def kept_files() -> tuple[Path, ...]:
    """The files git knows, and those it would add: what a commit may carry into the repository."""
    listing = subprocess.run(
        ["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    paths = (ROOT / name for name in sorted(set(listing.split("\0"))) if name)
    return tuple(path for path in paths if path.is_file() and not path.is_symlink())


def expect_none(findings: Iterable[str]) -> None:
    """Fail with the findings, one a line."""
    found = list(findings)
    if found:
        pytest.fail("\n".join(found), pytrace=False)


def apply(rule: Rule, *roots: str) -> None:
    """Fail with all that a rule finds under some folders."""
    expect_none(finding for source in python_files(*roots) for finding in rule(source))
