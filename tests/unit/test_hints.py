"""Hints lead somewhere: each command that an error names exists, and is not the command that printed it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.docs.errors_page import kinds
from tests.tidy.source import expect_none

from keepsaid.errors import KeepsaidError
from keepsaid.interfaces.cli.commands import tree
from keepsaid.interfaces.cli.program import run, shared

ROOT = Path(__file__).resolve().parents[2]
SOURCES = tuple(sorted((*(ROOT / "src").rglob("*.py"), *(ROOT / "packages").rglob("src/**/*.py"))))

_COMMAND = re.compile(r"(?<![\w/.-])keepsaid((?: (?!\()[^\s,;`]+)+)")
"""A command line in a hint: up to a comma or another sign that ends it."""

_HINTS = re.compile(r"hint|_hint|fix|_fix", re.IGNORECASE)
"""Names of arguments, attributes and constants that hold hints."""

_CALLS = {"refused": 1, "_refused": 1, "say": 0, "DoctorFinding": 2, "Concern": 1, "need": 2, "id_of": 2, "name_of": 2}
"""Functions and classes that take a hint, and its place among the arguments."""

_FILLED = "FILLED"
"""Stands in place of what an f-string fills in."""


@cache
def program() -> Any:
    return tree([], shared)


def text_of(node: ast.AST) -> str | None:
    """The text of a literal, with what is filled in replaced by a word."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        parts = (text_of(part) for part in node.values)
        return "".join(_FILLED if part is None else part for part in parts)
    return None


def literals(node: ast.AST | None) -> Iterator[str]:
    """Every text that an expression may have: of a condition, both."""
    if node is None:
        return
    if (text := text_of(node)) is not None:
        yield text
    elif isinstance(node, ast.IfExp | ast.BinOp | ast.BoolOp | ast.Tuple):
        for inner in ast.iter_child_nodes(node):
            yield from literals(inner)


def hints_in(module: ast.AST, *, said: bool = True) -> Iterator[tuple[int, str]]:
    """Every hint in a module, with its line; `said` includes what `say` prints."""
    for node in ast.walk(module):
        found: list[ast.expr | None] = []
        if isinstance(node, ast.keyword):
            found = [node.value] if _HINTS.fullmatch(node.arg or "") else []
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found = [node.value] if any(map(_is_hint, targets)) else []
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            place = _CALLS.get(name, len(node.args)) if said or name != "say" else len(node.args)
            found = list(node.args[place : place + 1])
        for one in found:
            yield from ((getattr(one, "lineno", 0), text) for text in literals(one))


def _is_hint(target: ast.AST) -> bool:
    return any(_HINTS.fullmatch(getattr(one, "id", getattr(one, "attr", ""))) for one in ast.walk(target))


@cache
def collected() -> tuple[tuple[str, str], ...]:
    """Every hint of the source, with its place, and those of the classes of errors."""
    found = [
        (f"{file.relative_to(ROOT)}:{line}", text)
        for file in SOURCES
        for line, text in hints_in(ast.parse(file.read_text("utf-8")))
    ]
    return (*found, *((kind.__name__, kind("what").hint) for kind in kinds()))


def commands_in(text: str) -> Iterator[list[str]]:
    """The command lines that a hint names, without the name of the program."""
    for match in _COMMAND.finditer(text):
        yield match.group(1).split()


def fault_of(words: list[str]) -> str:
    """Why a command line cannot be run; empty if it can."""
    known, rest = program(), list(words)
    options = {name for parameter in known.params for name in parameter.opts}
    path: list[str] = []
    while rest:
        word = rest.pop(0).rstrip(".:)'\"")
        if word in ("--home", "--version"):
            rest = rest[1:] if word == "--home" else rest
        elif word in getattr(known, "commands", {}):
            path.append(word)
            known = known.commands[word]
        elif word.startswith("-"):
            options |= {name for parameter in known.params for name in (*parameter.opts, *parameter.secondary_opts)}
            if word.partition("=")[0] not in options | {"--help", "-h"}:
                return f"keepsaid {' '.join(path)} has no option {word}"
        elif hasattr(known, "commands"):
            return "" if word in (_FILLED, "COMMAND") else f"there is no command keepsaid {' '.join([*path, word])}"
    unfinished = hasattr(known, "commands") and "--help" not in words and "--version" not in words
    return f"keepsaid {' '.join(path)} needs a command below it" if unfinished else ""


def test_every_command_of_a_hint_exists() -> None:
    lines = [(place, words) for place, text in collected() for words in commands_in(text)]
    assert len(lines) > 100
    expect_none(f"{place}: {fault}" for place, words in lines if (fault := fault_of(words)))


@pytest.mark.parametrize(
    ("words", "fault"),
    [
        ("status", ""),
        ("memory search --help", ""),
        ("data restore BACKUP --to DIR", ""),
        ("--home DIR status", ""),
        ("memory", "needs a command below it"),
        ("memory serch x", "there is no command keepsaid memory serch"),
        ("nonsense", "there is no command keepsaid nonsense"),
        ("config show --nonsense", "has no option --nonsense"),
    ],
)
def test_a_command_line_is_checked(words: str, fault: str) -> None:
    assert fault in fault_of(words.split())
    assert bool(fault) == bool(fault_of(words.split()))


def test_hints_are_found_in_all_their_forms() -> None:
    source = (
        "raise E('w', hint=f'a {b}')\nhint = 'c' if d else 'e'\nclass E:\n    hint = 'f'\nrefused('g', 'h')\nsay('i')\n"
    )
    assert {text for _, text in hints_in(ast.parse(source))} == {f"a {_FILLED}", "c", "e", "f", "h", "i"}
    assert list(commands_in("put it back, or keepsaid data restore X --to DIR; or: keepsaid serve, then ask")) == [
        ["data", "restore", "X", "--to", "DIR"],
        ["serve"],
    ]


def functions_of_commands() -> Iterator[tuple[str, str, str]]:
    """Of each command: module, function and words."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
        callback = getattr(command, "callback", None)
        if callback is not None and path and not hasattr(command, "commands"):
            yield callback.__module__, callback.__name__, " ".join(path)
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, (*path, name))

    yield from walk(program(), ())


def test_no_command_suggests_itself() -> None:
    """An error in the function of a command may name the command with other arguments, but not as it is."""
    known = {(module, function): words for module, function, words in functions_of_commands()}
    assert len(known) > 50
    circular = []
    for file in SOURCES:
        if "/cli/" not in file.as_posix():
            continue
        module = ".".join(file.relative_to(ROOT / "src").with_suffix("").parts) if "packages" not in file.parts else ""
        for node in ast.parse(file.read_text("utf-8")).body:
            words = known.get((module, getattr(node, "name", "")))
            lines = [line for _, text in hints_in(node, said=False) for line in commands_in(text)]
            circular += [f"{file.name}: keepsaid {words}" for line in lines if words and " ".join(line) == words]
    expect_none(iter(circular))


@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ("", ("serve", "--host", "0.0.0.0", "--port", "0")),
        ("", ("init", "--model", "gpt", "--non-interactive")),
        ("server: {host: 0.0.0.0}", ("config", "validate")),
        ("models: {chat: gpt}", ("config", "validate")),
        ("models: {chat: gpt}", ("doctor", "--offline")),
        ("buffer: {window_ms: fast}", ("config", "validate")),
        ("buffer: {window_ms: fast}", ("config", "show")),
        ("buffer: {window_ms: fast}", ("config", "get", "buffer.window_ms")),
        ("buffer: {window_ms: fast}", ("config", "set", "agent", "x")),
        ("buffer: {window_ms: fast}", ("status",)),
        ("buffer: {window_ms: ${NO_SUCH_VARIABLE}}", ("config", "validate")),
        ("agent: [", ("config", "validate")),
        ("agent: [", ("config", "set", "agent", "x")),
        ("agent: [", ("doctor", "--offline")),
    ],
)
def test_the_hint_for_a_wrong_setting_is_another_command_that_exists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, arguments: tuple[str, ...]
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").write_text(text, "utf-8")
    assert run(["--home", str(tmp_path), *arguments]) in (1, 2, 4, 6)
    said = "".join(capsys.readouterr())
    hint = next(line for line in said.splitlines() if line.strip().startswith(("try ", "fix: ")))
    named = list(commands_in(hint))
    assert named or "unset" in hint
    assert [fault_of(words) for words in named] == [""] * len(named)
    same = [words for words in named if words[: len(arguments)] == list(arguments)[: len(words)]]
    assert same == []
    assert "config validate" not in hint


_FROM_INDEX = re.compile(r"pip install (?:-\S+ |--\S+ )*[\"']?keepsaid(?!/)")


def test_nothing_names_a_package_that_no_index_has() -> None:
    pages = [ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md"), *SOURCES]
    found = [str(page.relative_to(ROOT)) for page in pages if _FROM_INDEX.search(page.read_text("utf-8"))]
    expect_none(found)


def test_an_error_of_every_kind_has_a_hint() -> None:
    assert [kind.__name__ for kind in kinds() if not kind("what").hint or not kind("what").safe] == []
    assert KeepsaidError("what").hint == "keepsaid doctor"
