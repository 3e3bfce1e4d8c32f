"""The arrows hold: who may import whom, inside the package and out of it."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.tidy.source import ROOT, Source, apply, under

SOURCES = ("src", "packages/testkit/src")
NAMED = ("keepsaid.app", "keepsaid.testing", "keepsaid.interfaces.cli", "keepsaid.pipeline.runner")
DATABASES = {"aiosqlite", "apsw", "asyncpg", "psycopg", "redis"}


def run(*command: str, cwd: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    script = Path(sys.executable).with_name(command[0])
    return subprocess.run(
        [str(script), *command[1:]],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(str(cwd / source) for source in SOURCES)},
    )


def file_of(root: Path, module: str) -> Path:
    """The file that holds a module, or would; parent packages are made where they are missing."""
    place = root / "src" / Path(*module.split("."))
    for parent in reversed(place.parents[: len(module.split(".")) - 1]):
        parent.mkdir(exist_ok=True, parents=True)
        (parent / "__init__.py").touch()
    if place.is_dir():
        (place / "__init__.py").touch()
        return place / "__init__.py"
    return place.with_suffix(".py")


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A copy of the package, with a stub for what the contracts name and nobody has written yet."""
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for source in SOURCES:
        shutil.copytree(ROOT / source, tmp_path / source, ignore=shutil.ignore_patterns("__pycache__"))
    for module in NAMED:
        file_of(tmp_path, module).touch()
    return tmp_path


def plant(house: Path, importer: str, imported: str) -> None:
    """Let one part of the package import another, in a module of its own where the part is a folder."""
    file_of(house, f"keepsaid.{imported}").touch()
    place = file_of(house, f"keepsaid.{importer}")
    planted = place.with_name("planted.py") if place.name == "__init__.py" else place
    with planted.open("a", encoding="utf-8") as file:
        file.write(f"\nimport keepsaid.{imported}\n")


def lint(house: Path) -> subprocess.CompletedProcess[str]:
    return run("lint-imports", "--no-logo", "--no-cache", cwd=house)


def stdlib_only(source: Source) -> Iterator[str]:
    """Values, the rules of text and the domain import the standard library and one another; one file has the stems."""
    if not under(source.within, ("domain", "text", "values")):
        return
    for line, module in imports(source):
        top = module.partition(".")[0]
        if (source.within, top) == ("text/stems.py", "snowballstemmer"):
            continue
        if top not in sys.stdlib_module_names and not module.startswith(
            ("keepsaid.domain", "keepsaid.text", "keepsaid.values")
        ):
            yield source.at(line, f"domain imports {module}; it may import the standard library and itself")


def stray_databases(source: Source) -> Iterator[str]:
    """Adapters know database modules, and what cuts the power under them, and what a judge reads; none sqlite3."""
    for line, module in imports(source):
        top = module.partition(".")[0]
        if top == "sqlite3":
            yield source.at(line, "sqlite3 is some system's SQLite; ours is apsw's")
        if top in DATABASES and not under(source.within, ("adapters", "testing/power", "testing/crash/evidence")):
            yield source.at(line, f"{module} is known to adapters alone")


def imports(source: Source) -> Iterator[tuple[int, str]]:
    for node in source.nodes:
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        if isinstance(node, ast.ImportFrom):
            yield node.lineno, "." * node.level + (node.module or "")


def test_the_tree_keeps_the_arrows(house: Path) -> None:
    result = lint(house)
    assert result.returncode == 0, result.stdout + result.stderr


def test_domain_knows_the_standard_library_only() -> None:
    apply(stdlib_only, "src")


def test_databases_are_known_to_adapters_only() -> None:
    apply(stray_databases, "src")


FORBIDDEN = (
    ("domain", "errors"),
    ("domain", "ports"),
    ("domain", "config"),
    ("errors", "config"),
    ("ports", "config"),
    ("ports", "pipeline.runner"),
    ("pipeline.runner", "memory"),
    ("pipeline.runner", "adapters.sqlite"),
    ("pipeline.turn", "pipeline.intake"),
    ("pipeline.intake", "pipeline.runner"),
    ("pipeline.prompt", "memory"),
    ("memory", "pipeline.runner"),
    ("memory", "engine"),
    ("engine", "adapters.sqlite"),
    ("engine", "app"),
    ("adapters.models", "adapters.sqlite"),
    ("adapters.channels", "pipeline.runner"),
    ("adapters.sqlite", "testing"),
    ("interfaces.http", "adapters.sqlite"),
    ("interfaces.http", "testing"),
    ("app", "interfaces.cli"),
    ("app", "testing"),
    ("testing", "interfaces.sdk"),
)
ALLOWED = (
    ("config", "errors"),
    ("ports", "errors"),
    ("memory", "config"),
    ("pipeline.runner", "pipeline.turn"),
    ("pipeline.turn", "ports"),
    ("engine", "memory"),
    ("adapters.sqlite", "config"),
    ("app", "adapters.sqlite"),
    ("testing", "adapters.sqlite"),
    ("testing", "app"),
    ("interfaces.cli", "testing"),
    ("interfaces.http", "app"),
    ("__main__", "interfaces.cli"),
)


def test_planted_violations_are_caught(house: Path) -> None:
    for importer, imported in FORBIDDEN:
        plant(house, importer, imported)
    result = lint(house)
    assert result.returncode == 1
    unseen = [
        (importer, imported)
        for importer, imported in FORBIDDEN
        if not re.search(rf"keepsaid\.{re.escape(importer)}[\w.]* -> keepsaid\.{re.escape(imported)}\b", result.stdout)
    ]
    assert not unseen, result.stdout + result.stderr


def test_a_package_without_a_layer_is_caught(house: Path) -> None:
    plant(house, "newcomer", "domain")
    result = lint(house)
    assert result.returncode == 1
    assert "keepsaid.newcomer" in result.stdout, result.stdout + result.stderr


def test_allowed_imports_are_not(house: Path) -> None:
    for importer, imported in ALLOWED:
        plant(house, importer, imported)
    result = lint(house)
    assert result.returncode == 0, result.stdout + result.stderr


OUTSIDE = [
    "import time\n",
    "import random\n",
    "import uuid\n",
    "import sqlite3\n",
    "from time import monotonic\n",
    "import os\n\nx = os.environ\n",
    "import os\n\nx = os.getenv('A')\n",
    "import datetime\n\nx = datetime.datetime.now(datetime.UTC)\n",
    "from datetime import date\n\nx = date.today()\n",
]  # fmt: skip


def ruff(place: str, text: str) -> str:
    command = "ruff", "check", "--quiet", "--select", "TID251", "--stdin-filename", f"src/keepsaid/{place}/a.py", "-"
    return run(*command, cwd=ROOT, text=text).stdout


@pytest.mark.parametrize("text", OUTSIDE)
def test_time_chance_and_surroundings_are_banned_inside(text: str) -> None:
    for place in ("domain", "pipeline/turn", "memory", "events"):
        assert "TID251" in ruff(place, text), place
    for place in ("adapters/sqlite", "engine", "interfaces/cli", "testing"):
        assert ruff(place, text) == "", place


def test_rule_stdlib_only() -> None:
    text = "import pydantic\nfrom keepsaid.errors import X\nimport json.decoder\nfrom keepsaid.domain.ids import read\n"
    assert list(stdlib_only(Source("src/keepsaid/ports/a.py", text))) == []
    assert list(stdlib_only(Source("src/keepsaid/domain/a.py", text))) == [
        "src/keepsaid/domain/a.py:1: domain imports pydantic; it may import the standard library and itself",
        "src/keepsaid/domain/a.py:2: domain imports keepsaid.errors; it may import the standard library and itself",
    ]


def test_rule_stray_databases() -> None:
    text = "import apsw\nfrom sqlite3 import connect\n"
    assert list(stray_databases(Source("src/keepsaid/adapters/sqlite/a.py", text))) == [
        "src/keepsaid/adapters/sqlite/a.py:2: sqlite3 is some system's SQLite; ours is apsw's"
    ]
    assert list(stray_databases(Source("src/keepsaid/app.py", text))) == [
        "src/keepsaid/app.py:1: apsw is known to adapters alone",
        "src/keepsaid/app.py:2: sqlite3 is some system's SQLite; ours is apsw's",
    ]
