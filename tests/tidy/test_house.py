"""The house: no circles of imports, each class name once, no module without substance, and the words of the field."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

from tests.tidy.source import PACKAGE, ROOT, Source, expect_none, python_files

MODULE_LINES_LEAST = 40
SHORT = re.compile(r"\(short: [^)]{10,}\)")
"""A module below the bound gives its reason in its first line: `... (short: two packages need it and nothing else)`."""

PRIVATE = frozenset((
    "again", "alone", "aside", "asked", "asking", "beside", "bell", "bury", "course", "craft", "crew", "deed", "deeds",
    "desk", "early", "errand", "errands", "given", "grave", "graves", "guest", "guests", "halt", "heard", "hearer",
    "hearers", "hearing", "house", "lately", "learnt", "lending", "lent", "lobby", "mind", "obedience", "obey",
    "obeyed", "offers", "outline", "passing", "rarity", "road", "sleepers", "spoken", "surroundings", "taught",
    "timely", "told", "tomb", "tombs", "trying", "unsaid", "untold", "wanted", "weather", "widening", "wish", "wishes",
    "wrong",
))  # fmt: skip
"""Words of ours where the field has one; `docs/use/reference/glossary.md` names each thing once."""

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def module_of(path: str) -> str:
    """The dotted name of a file of the package."""
    return re.sub(r"^(packages/\w+/)?src/", "", path).removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def imports(source: Source, modules: Iterable[str]) -> set[str]:
    """Every module of the package that a file imports, wherever in it: at the top, in a function, for types alone."""
    known, me = set(modules), module_of(source.path)
    found: set[str] = set()
    for node in source.nodes:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in known else node.module)
        elif isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
    return (found & known) - {me}


def circles(arrows: Mapping[str, set[str]]) -> list[list[str]]:
    """The circles of a graph: its strongly connected parts of more than one node (Tarjan 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    path: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        path.append(node)
        for other in sorted(arrows.get(node, ())):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in path:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            start = path.index(node)
            if len(path) - start > 1:
                found.append(sorted(path[start:]))
            del path[start:]

    for node in arrows:
        if node not in order:
            visit(node)
    return found


def is_crumb(source: Source) -> bool:
    """Whether a module is shorter than it may be without a reason; the file of a package is no module of its own."""
    if source.path.endswith("/__init__.py") or len(source.lines) > MODULE_LINES_LEAST:
        return False
    head = ast.get_docstring(ast.parse(source.text)) or ""
    return SHORT.search(head.split("\n", maxsplit=1)[0]) is None


def classes_of(sources: Iterable[Source]) -> dict[str, set[str]]:
    """Where each public class of the package is defined."""
    found: defaultdict[str, set[str]] = defaultdict(set)
    for source in sources:
        for node in source.classes:
            if not node.name.startswith("_"):
                found[node.name].add(source.path)
    return found


def private_words(source: Source) -> Iterator[str]:
    """The private words in the names of a file, its classes and its functions, tests apart."""
    path = source.path.removeprefix(PACKAGE)
    defined = (node.name for node in (*source.classes, *source.functions) if not node.name.startswith("test_"))
    for name in (path, *defined):
        if PRIVATE & {word.lower() for word in WORD.findall(name)}:
            yield path if name is path else f"{path}: {name}"


def compared(what: str, found: Iterable[str], owed: str) -> Iterator[str]:
    """What is not on a list yet, and what need not be on it any more: the lists of `tests/tidy/owed` only shrink."""
    file = ROOT / "tests" / "tidy" / "owed" / owed
    there, listed = set(found), set(file.read_text("utf-8").splitlines())
    yield from (f"{one}: {what}" for one in sorted(there - listed))
    yield from (f"{one}: mended; take it off {owed}" for one in sorted(listed - there))


def test_no_imports_go_in_a_circle() -> None:
    sources = python_files("src", "packages")
    modules = {module_of(source.path) for source in sources}
    found = circles({module_of(source.path): imports(source, modules) for source in sources})
    expect_none(" <-> ".join(circle) for circle in found)


def test_circles_are_found_also_behind_types_and_in_functions() -> None:
    one = Source("src/keepsaid/one.py", "if TYPE_CHECKING:\n    from keepsaid.two import A\n")
    two = Source("src/keepsaid/two.py", "def f():\n    from keepsaid import three\n")
    three = Source("src/keepsaid/three.py", "import keepsaid.one\n")
    modules = {module_of(source.path) for source in (one, two, three)}
    arrows = {module_of(source.path): imports(source, modules) for source in (one, two, three)}
    assert circles(arrows) == [["keepsaid.one", "keepsaid.three", "keepsaid.two"]]
    assert circles({**arrows, "keepsaid.three": set()}) == []


def test_a_class_name_stands_once() -> None:
    found = {name: paths for name, paths in classes_of(python_files("src", "packages")).items() if len(paths) > 1}
    expect_none(compared("a class of this name stands in several modules", found, "duplicate_classes.txt"))


def test_no_module_is_a_crumb() -> None:
    found = [source.path.removeprefix(PACKAGE) for source in python_files("src", "packages") if is_crumb(source)]
    reason = f"fewer than {MODULE_LINES_LEAST} lines: merge it, or give the reason in its first line"
    expect_none(compared(reason, found, "small_modules.txt"))


def test_a_short_module_may_give_its_reason() -> None:
    assert is_crumb(Source("src/keepsaid/one.py", '"""One."""\n'))
    assert not is_crumb(Source("src/keepsaid/one.py", '"""One (short: two packages need it and nothing else)."""\n'))


def test_names_are_of_the_field() -> None:
    found = {line for source in python_files("src", "packages") for line in private_words(source)}
    expect_none(compared("a private word; use the one of the glossary", found, "private_words.txt"))
