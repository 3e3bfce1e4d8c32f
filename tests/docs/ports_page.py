"""The ports in one page, made from the Protocols of `keepsaid.ports` and the classes that have their methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from tests.docs.markdown import ROOT, lines_of

PACKAGE = ROOT / "src" / "keepsaid"

HEAD = """\
# Reference of ports

Every Protocol of `keepsaid.ports`, made from the code: its methods, what it is, and the classes of the package that
have all of its methods. How to write an adapter: [ports](ports.md).
"""

_NAMED_MAX = 4

Members = Mapping[str, tuple[str, set[str], Sequence[str]]]
"""Of each class its module, its own members, and its bases."""


def page() -> str:
    """The whole page."""
    return lines_of("\n".join([HEAD, *_modules()]))


def _modules() -> Iterator[str]:
    classes = dict(_classes())
    for path in sorted((PACKAGE / "ports").glob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        found = [node for node in tree.body if isinstance(node, ast.ClassDef) and _is_protocol(node)]
        if not found:
            continue
        yield f"## {path.stem}\n\n{ast.get_docstring(tree)}\n"
        yield "| port | methods | what it is | implemented by |\n|---|---|---|---|"
        for node in found:
            summary = (ast.get_docstring(node) or "").split("\n\n")[0].replace("\n", " ")
            methods = ", ".join(f"`{name}`" for name in _methods(node)) or "those of its parts"
            having = list(_having(node.name, classes))
            named = ", ".join(having[:_NAMED_MAX]) + (
                f" and {len(having) - _NAMED_MAX} more" * (len(having) > _NAMED_MAX)
            )
            yield f"| `{node.name}` | {methods} | {summary} | {named or '-'} |"
        yield ""


def _is_protocol(node: ast.ClassDef) -> bool:
    return any("Protocol" in ast.unparse(base) for base in node.bases)


def _methods(node: ast.ClassDef) -> Sequence[str]:
    named = (one.name for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
    return [name for name in named if not name.startswith("_")]


def _classes() -> Iterator[tuple[str, tuple[str, set[str], Sequence[str]]]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        module = path.relative_to(PACKAGE).with_suffix("").as_posix()
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
                yield node.name, (module, set(_own(node)), bases)


def _own(node: ast.ClassDef) -> Iterator[str]:
    yield from _methods(node)
    for one in node.body:
        targets = one.targets if isinstance(one, ast.Assign) else [one.target] if isinstance(one, ast.AnnAssign) else []
        yield from (target.id for target in targets if isinstance(target, ast.Name))
    for inner in ast.walk(node):
        if isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store) and ast.unparse(inner.value) == "self":
            yield inner.attr


def _members(name: str, classes: Members) -> set[str]:
    _, own, bases = classes.get(name, ("", set(), ()))
    return own.union(*(_members(base, classes) for base in bases))


def _having(port: str, classes: Members) -> Iterator[str]:
    needed = _members(port, classes)
    for name, (module, _, _) in classes.items():
        if needed and not module.startswith(("ports/", "testing/")) and needed <= _members(name, classes):
            yield f"`{name}` ({module})"
