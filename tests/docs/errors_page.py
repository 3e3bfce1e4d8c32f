"""The page of every error, made from the error tree and what the parts of the program add to it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

from tests.docs.markdown import lines_of, table

import keepsaid
import keepsaid_testkit
from keepsaid.errors import KeepsaidError
from keepsaid.interfaces.cli.program import exit_code
from keepsaid.interfaces.http.responses import problem

_HEAD = """\
# Errors

Every error says what happened, whether data is safe, and what to run. The command line prints

```text
error: there is no channel 'nope'; known: github, http, library, terminal  [KS-INP-CHANNEL]
  safe  Nothing was stored; what was stored before is untouched.
  try   keepsaid config show channels
```

and, with `--json`, the same as `{"error": {"code", "what", "safe", "hint"}}`; HTTP answers with
`application/problem+json` ([HTTP API](http.md#errors)); the library raises the class. Codes are
stable. `safe` and `hint` below are the defaults; the place of an error may give more precise ones.
Exit codes are those of the [command line](commands.md#exit-codes). An empty HTTP status means 500.
"""

_TREE = """\
## The tree

Catching a class catches all classes below it. The library raises those that the package exports:
`from keepsaid import KeepsaidError, KeyConflict`.
"""

_UNFORESEEN = 500
_SKIPPED = ("keepsaid.testing", "keepsaid.__main__", "keepsaid_testkit.simulator.__main__")


def page() -> str:
    """The whole page."""
    found = sorted(kinds(), key=lambda kind: kind.code)
    shown = [_HEAD, "## Every code\n"]
    shown.append(table(["code", "exit", "HTTP", "meaning", "safe", "hint"], [_row(kind) for kind in found]))
    doc = inspect.getdoc(import_module("keepsaid.errors")) or ""
    shown += [_TREE, f"```text\n{doc.partition('KeepsaidError')[1]}{doc.partition('KeepsaidError')[2].rstrip()}\n```\n"]
    return lines_of("\n".join(shown))


def kinds() -> Iterator[type[KeepsaidError]]:
    """Every error of the program, whichever part defines it."""
    for package in (keepsaid, keepsaid_testkit):
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            if not module.name.startswith(_SKIPPED):
                import_module(module.name)
    yield from _below(KeepsaidError)


def _below(kind: type[KeepsaidError]) -> Iterator[type[KeepsaidError]]:
    if kind.__module__.startswith(("keepsaid.", "keepsaid_testkit.")):
        yield kind
        for child in kind.__subclasses__():
            yield from _below(child)


def _row(kind: type[KeepsaidError]) -> list[str]:
    error = kind("what happened")
    meaning = " ".join((inspect.getdoc(kind) or "").partition("\n\n")[0].split())
    status = problem(error).status_code
    told = "" if status == _UNFORESEEN else str(status)
    hint = f"`{error.hint}`" if error.hint.startswith(("keepsaid ", "pip ")) else error.hint
    return [f"`{kind.code}`", str(exit_code(error)), told, meaning, error.safe, hint]
