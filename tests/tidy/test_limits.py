"""Nothing grows without end: sizes of modules, functions, classes, signatures, README and the public surface."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType

from tests.tidy.source import ALL, ROOT, Function, Source, apply, expect_none

import keepsaid

MODULE_LINES = 400
FUNCTION_LINES = 60
PUBLIC_METHODS = 12
PARAMETERS = 5
PARAMETERS_OF_INIT = 7
README_LINES = 150
EXPORTS = 25


def length(source: Source) -> int:
    return len(source.text.splitlines())


def long_modules(source: Source) -> Iterator[str]:
    if length(source) > MODULE_LINES:
        yield source.at(MODULE_LINES + 1, f"module of {length(source)} lines (at most {MODULE_LINES})")


def long_functions(source: Source) -> Iterator[str]:
    for function in source.functions:
        lines = (function.end_lineno or function.lineno) - function.lineno + 1
        if lines > FUNCTION_LINES:
            yield source.at(function.lineno, f"{function.name} has {lines} lines (at most {FUNCTION_LINES})")


def wide_classes(source: Source) -> Iterator[str]:
    for node in source.classes:
        names = {item.name for item in node.body if isinstance(item, Function)}
        public = [name for name in names if not name.startswith("_")]
        if len(public) > PUBLIC_METHODS:
            yield source.at(node.lineno, f"{node.name} has {len(public)} public methods (at most {PUBLIC_METHODS})")


def parameters(function: Function) -> int:
    named = function.args
    first = (named.posonlyargs + named.args)[:1]
    bound = len([one for one in first if one.arg in ("self", "cls")])
    rest = [one for one in (named.vararg, named.kwarg) if one is not None]
    return len(named.posonlyargs) + len(named.args) + len(named.kwonlyargs) + len(rest) - bound


def wide_signatures(source: Source) -> Iterator[str]:
    for function in source.functions:
        limit = PARAMETERS_OF_INIT if function.name == "__init__" else PARAMETERS
        count = parameters(function)
        if count > limit:
            yield source.at(function.lineno, f"{function.name} takes {count} parameters (at most {limit})")


def long_readme(text: str) -> Iterator[str]:
    lines = len(text.splitlines())
    if lines > README_LINES:
        yield f"README.md:{README_LINES + 1}: {lines} lines (at most {README_LINES})"


def surface(namespace: Mapping[str, object]) -> set[str]:
    """Names a module offers: its public names, less submodules and `from __future__`."""
    return {
        name
        for name, thing in namespace.items()
        if not name.startswith("_") and not isinstance(thing, ModuleType) and type(thing).__module__ != "__future__"
    }


def wrong_exports(module: ModuleType) -> Iterator[str]:
    place = f"src/{module.__name__}/__init__.py:1"
    listed = set(getattr(module, "__all__", ()))
    if len(listed) > EXPORTS:
        yield f"{place}: __all__ has {len(listed)} names (at most {EXPORTS})"
    for name in sorted(listed):
        if not hasattr(module, name):
            yield f"{place}: __all__ lists {name}, which the module has not"
    for name in sorted(surface(vars(module)) - listed):
        yield f"{place}: {name} is public but not in __all__"


def test_modules() -> None:
    apply(long_modules, *ALL)


def test_functions() -> None:
    apply(long_functions, *ALL)


def test_classes() -> None:
    apply(wide_classes, *ALL)


def test_signatures() -> None:
    apply(wide_signatures, *ALL)


def test_readme() -> None:
    readme = ROOT / "README.md"
    expect_none(long_readme(readme.read_text("utf-8") if readme.exists() else ""))


def test_exports() -> None:
    expect_none(wrong_exports(keepsaid))


def test_rule_long_modules() -> None:
    assert list(long_modules(Source("src/a.py", "x = 1\n" * 400))) == []
    assert list(long_modules(Source("src/a.py", "x = 1\n" * 401))) == [
        "src/a.py:401: module of 401 lines (at most 400)"
    ]


def test_rule_long_functions() -> None:
    body = "    x = 1\n"
    assert list(long_functions(Source("a.py", "@cache\n@cache\ndef f():\n" + body * 59))) == []
    assert list(long_functions(Source("a.py", "@cache\nasync def f():\n" + body * 60))) == [
        "a.py:2: f has 61 lines (at most 60)"
    ]


def test_rule_wide_classes() -> None:
    def text(count: int) -> str:
        return "class A:\n    def _hidden(self): ...\n" + "".join(
            f"    def m{number}(self): ...\n" for number in range(count)
        )

    assert list(wide_classes(Source("a.py", text(12)))) == []
    assert list(wide_classes(Source("a.py", text(13)))) == ["a.py:1: A has 13 public methods (at most 12)"]


def test_rule_wide_signatures() -> None:
    fine = (
        "def f(self, a, /, b, *c, d, **e): ...\n"
        "class A:\n"
        "    def __init__(self, a, b, c, d, e, f, g): ...\n"
        "    @classmethod\n"
        "    def make(cls, a, b, c, d, e): ...\n"
    )
    bad = "def f(a, b, c, *d, e, **f): ...\nclass A:\n    def __init__(self, a, b, c, d, e, f, g, h): ...\n"
    assert list(wide_signatures(Source("a.py", fine))) == []
    assert list(wide_signatures(Source("a.py", bad))) == [
        "a.py:1: f takes 6 parameters (at most 5)",
        "a.py:3: __init__ takes 8 parameters (at most 7)",
    ]


def test_rule_long_readme() -> None:
    assert list(long_readme("line\n" * 150)) == []
    assert list(long_readme("line\n" * 151)) == ["README.md:151: 151 lines (at most 150)"]


def test_rule_wrong_exports() -> None:
    module = ModuleType("sample")
    vars(module).update({"kept": 1, "loose": 2, "_private": 3, "sub": ModuleType("sub"), "note": annotations})
    vars(module)["__all__"] = ["kept", "gone"]
    assert list(wrong_exports(module)) == [
        "src/sample/__init__.py:1: __all__ lists gone, which the module has not",
        "src/sample/__init__.py:1: loose is public but not in __all__",
    ]
    names = {f"name{number}": number for number in range(26)}
    crowd = ModuleType("crowd")
    vars(crowd).update(names)
    vars(crowd)["__all__"] = list(names)
    assert list(wrong_exports(crowd)) == ["src/crowd/__init__.py:1: __all__ has 26 names (at most 25)"]
