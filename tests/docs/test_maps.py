"""The maps kept by hand name what is there: packages, files, classes, and each word of the glossary once."""

from __future__ import annotations

import ast
import re
from functools import cache

import pytest
from tests.docs.markdown import ROOT
from tests.docs.packages import PACKAGE, PARTS, TESTKIT, undescribed, unplaced

from keepsaid import errors
from keepsaid.domain.command import COMMANDS

GLOSSARY = "docs/use/reference/glossary.md"
MAPS = ("AGENTS.md", "docs/develop/architecture.md", GLOSSARY, "docs/develop/ports.md")
_CODE = re.compile(r"`([^`\n]+)`")
_CLASS = re.compile(r"[A-Z][a-z]+(?:[A-Z][a-z]+)+")
_FILE = re.compile(r"(?:[\w/]+/)?\w+\.py")
_FOREIGN = {"TestClaims", "TestIntake"}
"""Classes of examples on the pages."""


@cache
def classes() -> frozenset[str]:
    """The classes of the package and the testkit."""
    files = [*PACKAGE.rglob("*.py"), *TESTKIT.rglob("*.py")]
    trees = (ast.parse(path.read_text("utf-8")) for path in files)
    return frozenset(node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef))


@pytest.mark.parametrize("name", MAPS)
def test_every_class_that_a_map_names_is_there(name: str) -> None:
    named = {word for code in _CODE.findall((ROOT / name).read_text("utf-8")) for word in _CLASS.findall(code)}
    assert sorted(named - classes() - _FOREIGN) == []


@pytest.mark.parametrize("name", ["AGENTS.md", "docs/develop/architecture.md"])
def test_every_file_that_a_map_names_is_there(name: str) -> None:
    files = [path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*.py") if ".venv" not in path.parts]
    named = set(_FILE.findall((ROOT / name).read_text("utf-8")))
    assert [one for one in sorted(named) if not any(f"/{file}".endswith(f"/{one}") for file in files)] == []


def test_the_page_of_the_http_api_has_every_route_once_and_no_other() -> None:
    source = "".join(path.read_text("utf-8") for path in sorted((PACKAGE / "interfaces" / "http").glob("*.py")))
    routes = re.findall(r'OwnerRoute\("([A-Z]+)", "([^"]+)"', source)
    routes += [(method, path) for path, method in re.findall(r'\bRoute\("([^"]+)".*methods=\["([A-Z]+)"\]', source)]
    table = (ROOT / "docs/use/reference/http.md").read_text("utf-8").partition("## Who may call")[0]
    named = re.findall(
        r"`(GET|POST|PUT|DELETE) (/[^`]*)`", "\n".join(re.findall(r"^\| (`.*?) \|", table, re.MULTILINE))
    )
    assert sorted((verb, re.sub(r"\b(?:[A-Z]+|github)\b", "*", path)) for verb, path in named) == sorted(
        (verb, re.sub(r"\{\w+\}", "*", path)) for verb, path in routes
    )


def test_the_tree_of_errors_has_every_error_under_its_parent() -> None:
    drawn = re.findall(
        r"^([\u2502\u251c\u2514\u2500 ]*)([A-Z]\w+)", str(errors.__doc__).partition("\n\n")[2], re.MULTILINE
    )
    parents: list[str] = []
    tree = []
    for stem, name in drawn:
        parents[len(stem) // 4 :] = [name]
        tree.append((name, parents[-2] if len(parents) > 1 else "Exception"))
    classes = [one for one in vars(errors).values() if isinstance(one, type) and one.__module__ == errors.__name__]
    assert sorted(tree) == sorted((one.__name__, one.__bases__[0].__name__) for one in classes)


def test_the_page_of_commands_in_a_chat_has_every_command() -> None:
    page = (ROOT / "docs/use/how-to/lanes-and-commands.md").read_text("utf-8")
    rows = "\n".join(line for line in page.splitlines() if line.startswith("| `/"))
    assert [name for name in COMMANDS if f"`/{name}" not in rows] == []


@pytest.mark.parametrize("name", ["AGENTS.md", "docs/develop/architecture.md"])
def test_a_map_has_every_part_of_the_package(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    parts = [part if part.endswith(".py") else f"{part}/" for part in PARTS if not part.startswith("__")]
    assert [part for part in parts if part not in text] == []
    inner = {path.parent.name for path in (PACKAGE / "adapters").glob("*/__init__.py")}
    assert [one for one in sorted(inner) if f"{one}/" not in text] == []


def test_every_part_of_the_package_has_its_place_in_the_order() -> None:
    assert unplaced() == set()


def test_every_module_says_what_it_is() -> None:
    assert undescribed() == []


def words() -> list[str]:
    """The words of the glossary, in the order of the page."""
    return re.findall(r"^\| \*\*([^*]+)\*\* \|", (ROOT / GLOSSARY).read_text("utf-8"), re.MULTILINE)


def test_the_glossary_has_each_word_once_and_in_order() -> None:
    rows = [line for line in (ROOT / GLOSSARY).read_text("utf-8").splitlines() if line.startswith("| **")]
    assert len(words()) == len(rows), "one word a row"
    assert words() == sorted(set(words()))
