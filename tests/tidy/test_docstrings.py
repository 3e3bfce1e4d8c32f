"""What others call is explained where it is defined."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.tidy.source import ROOT, Function, Source, apply, expect_none, under

import keepsaid

EXPLAINED = ("domain", "ports", "interfaces/sdk", "testing")
REPEATED = {"overload", "setter", "deleter"}


def is_public(path: str) -> bool:
    names = [Path(part).stem for part in path.split("/")]
    return all(not name.startswith("_") or name in ("__init__", "__main__") for name in names)


def mute_modules(source: Source) -> Iterator[str]:
    if source.within and is_public(source.within) and ast.get_docstring(ast.parse(source.text)) is None:
        yield source.at(1, "public module without a docstring")


def repeats(function: Function) -> bool:
    """Whether the definition only repeats another one: an overload, or a property's setter or deleter."""
    names = (one.attr if isinstance(one, ast.Attribute) else getattr(one, "id", "") for one in function.decorator_list)
    return any(name in REPEATED for name in names)


def mute_members(source: Source, body: list[ast.stmt], owner: str) -> Iterator[str]:
    for node in body:
        if not isinstance(node, Function | ast.ClassDef) or node.name.startswith("_"):
            continue
        name = f"{owner}{node.name}"
        mute = ast.get_docstring(node) is None
        if mute and not (isinstance(node, Function) and repeats(node)):
            yield source.at(node.lineno, f"{name} has no docstring")
        if isinstance(node, ast.ClassDef):
            yield from mute_members(source, node.body, f"{name}.")


def mute_definitions(source: Source) -> Iterator[str]:
    if under(source.within, EXPLAINED) and is_public(source.within):
        yield from mute_members(source, ast.parse(source.text).body, "")


def place(thing: object) -> str:
    if not (inspect.isclass(thing) or inspect.isfunction(thing)):
        return "src/keepsaid/__init__.py:1"
    path = Path(inspect.getsourcefile(thing) or ROOT)
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    return f"{shown.as_posix()}:{inspect.getsourcelines(thing)[1]}"


def is_mute(thing: object) -> bool:
    """Whether nothing was written; what a dataclass writes by itself, its signature, is nothing."""
    written = vars(thing).get("__doc__") if inspect.isclass(thing) else thing.__doc__
    return not written or written.startswith(f"{getattr(thing, '__name__', '')}(")


def mute_exports(exports: Mapping[str, object]) -> Iterator[str]:
    for name, thing in exports.items():
        if not (inspect.isclass(thing) or inspect.isfunction(thing)):
            continue
        if is_mute(thing):
            yield f"{place(thing)}: {name} is exported and has no docstring"
        members = vars(thing).items() if inspect.isclass(thing) else ()
        for key, member in members:
            if inspect.isfunction(member) and not key.startswith("_") and is_mute(member):
                yield f"{place(member)}: {name}.{key} is exported and has no docstring"


def test_modules() -> None:
    apply(mute_modules, "src")


def test_definitions() -> None:
    apply(mute_definitions, "src")


def test_exports() -> None:
    names = getattr(keepsaid, "__all__", ())
    expect_none(mute_exports({name: getattr(keepsaid, name) for name in names if hasattr(keepsaid, name)}))


def test_rule_mute_modules() -> None:
    assert list(mute_modules(Source("src/keepsaid/domain/a.py", '"""Said."""\n'))) == []
    assert list(mute_modules(Source("src/keepsaid/_private.py", "x = 1\n"))) == []
    assert list(mute_modules(Source("tests/a.py", "x = 1\n"))) == []
    assert list(mute_modules(Source("src/keepsaid/engine/__init__.py", ""))) == [
        "src/keepsaid/engine/__init__.py:1: public module without a docstring"
    ]


def test_rule_mute_definitions() -> None:
    text = (
        "class A(Protocol):\n"
        "    async def ask(self) -> int: ...\n"
        '    def said(self) -> int:\n        """Said."""\n'
        "    def _hidden(self): ...\n"
        "    @said.setter\n    def said(self, value): ...\n"
        "@overload\ndef f(): ...\n"
        "def f():\n    def inner(): ...\n"
    )
    assert list(mute_definitions(Source("src/keepsaid/engine/a.py", text))) == []
    assert list(mute_definitions(Source("src/keepsaid/interfaces/sdk.py", text))) == [
        "src/keepsaid/interfaces/sdk.py:1: A has no docstring",
        "src/keepsaid/interfaces/sdk.py:2: A.ask has no docstring",
        "src/keepsaid/interfaces/sdk.py:10: f has no docstring",
    ]


def test_rule_mute_exports() -> None:
    class Mute:
        def ask(self) -> None: ...

    def said() -> None:
        """Said."""

    findings = list(mute_exports({"Mute": Mute, "said": said, "LIMIT": 3}))
    assert [finding.partition(": ")[2] for finding in findings] == [
        "Mute is exported and has no docstring",
        "Mute.ask is exported and has no docstring",
    ]
    assert all(finding.startswith("tests/tidy/test_docstrings.py:") for finding in findings)
