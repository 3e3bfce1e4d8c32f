"""A broad `except` stands only at a named guard, and says why.

The form is `except Exception as error:  # noqa: BLE001  # guard: NAME - reason`, on one line.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest
from tests.tidy.source import ALL, Source, apply, under

GUARDS = {
    "engine loop": ("engine", "pipeline/routing"),
    "store writer": ("adapters",),
    "extension": ("extensions",),
    "outbox": ("pipeline/outbox",),
    "channel loop": ("adapters/channels", "engine"),
    "recall leg": ("memory/recall",),
    "model adapter": ("adapters/models",),
    "tool call": ("pipeline/turn",),
    "HTTP boundary": ("interfaces/http",),
    "CLI entry": ("interfaces/cli", "__main__"),
}
BROAD = {"Exception", "BaseException"}
START = re.compile(r"#\s*guard:")
MARKER = re.compile(r"#\s*guard: (?P<name>[^#]+?) - [^#]*\w")


def is_broad(expression: ast.expr) -> bool:
    return any(
        (isinstance(node, ast.Name) and node.id in BROAD) or (isinstance(node, ast.Attribute) and node.attr in BROAD)
        for node in ast.walk(expression)
    )


def is_suppress(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name == "suppress" and any(is_broad(argument) for argument in call.args)


def broad_lines(source: Source) -> Iterator[int]:
    for node in source.nodes:
        if isinstance(node, ast.ExceptHandler) and (node.type is None or is_broad(node.type)):
            yield node.lineno
        if isinstance(node, ast.Call) and is_suppress(node):
            yield node.lineno


def fault(source: Source, comment: str) -> str:
    """What is wrong with the comment beside a broad except; empty when nothing is."""
    if not source.within:
        return "broad except; tests and benches name what they expect"
    marker = MARKER.search(comment)
    if marker is None:
        return "broad except without `# guard: NAME - reason` on its line"
    name = marker["name"]
    if name not in GUARDS:
        return f"no guard is named {name!r}; the guards are: {', '.join(GUARDS)}"
    if not under(source.within, GUARDS[name]):
        return f"guard {name!r} belongs to {' or '.join(GUARDS[name])}"
    return ""


def bad_guards(source: Source) -> Iterator[str]:
    comments = dict(source.comments)
    broad = set(broad_lines(source))
    for line in sorted(broad):
        message = fault(source, comments.get(line, ""))
        if message:
            yield source.at(line, message)
    for line, comment in source.comments:
        if START.search(comment) and line not in broad:
            yield source.at(line, "guard marker without a broad except on its line")


def test_guards() -> None:
    apply(bad_guards, *ALL)


def test_there_are_ten() -> None:
    assert len(GUARDS) == 10


def guarded(path: str, line: str) -> list[str]:
    return list(bad_guards(Source(path, f"try:\n    pass\n{line}\n    pass\n")))


@pytest.mark.parametrize(
    ("path", "line"),
    [
        ("engine/loops.py", "except Exception as error:  # noqa: BLE001  # guard: engine loop - one must not stop all"),
        ("pipeline/routing.py", "except Exception:  # guard: engine loop - one must not stop all  # noqa: BLE001"),
        ("adapters/sqlite/writer.py", "except BaseException:  # guard: store writer - roll back, then raise"),
        ("pipeline/outbox.py", "except (ValueError, Exception):  # guard: outbox - the rest still leaves"),
        ("memory/recall.py", "except Exception:  # guard: recall leg - it is left out and named"),
        ("__main__.py", "except:  # guard: CLI entry - people get a sentence, not a traceback"),
        ("domain/a.py", "except (ValueError, KeyError):"),
    ],
)  # fmt: skip
def test_rule_allows(path: str, line: str) -> None:
    assert guarded(f"src/keepsaid/{path}", line) == []


@pytest.mark.parametrize(
    ("path", "line", "message"),
    [
        ("engine/a.py", "except Exception:  # noqa: BLE001", "broad except without"),
        ("engine/a.py", "except:", "broad except without"),
        ("engine/a.py", "except (ValueError, BaseException):", "broad except without"),
        ("engine/a.py", "except builtins.Exception:", "broad except without"),
        ("engine/a.py", "except* Exception:", "broad except without"),
        ("engine/a.py", "except Exception:  # guard: engine loop", "broad except without"),
        ("engine/a.py", "except Exception:  # guard: engine loop -  # noqa: BLE001", "broad except without"),
        ("engine/a.py", "except Exception:  # guard: everything - it might fail", "no guard is named 'everything'"),
        ("domain/a.py", "except Exception:  # guard: engine loop - wrong place", "guard 'engine loop' belongs to"),
        ("engines/a.py", "except Exception:  # guard: engine loop - near miss", "guard 'engine loop' belongs to"),
        ("engine/a.py", "except ValueError:  # guard: engine loop - not broad", "guard marker without"),
    ],
)  # fmt: skip
def test_rule_forbids(path: str, line: str, message: str) -> None:
    [finding] = guarded(f"src/keepsaid/{path}", line)
    assert finding.startswith(f"src/keepsaid/{path}:3: {message}")


def test_rule_sees_suppress() -> None:
    text = "with contextlib.suppress(KeyError, Exception):{comment}\n    pass\n"
    path = "src/keepsaid/adapters/models/a.py"
    assert list(bad_guards(Source(path, text.format(comment="")))) == [
        f"{path}:1: broad except without `# guard: NAME - reason` on its line"
    ]
    assert list(bad_guards(Source(path, text.format(comment="  # guard: model adapter - closing")))) == []
    assert list(bad_guards(Source(path, "with suppress(KeyError):\n    pass\n"))) == []


def test_rule_forbids_all_in_tests() -> None:
    marked = "except Exception:  # guard: engine loop - tests have none"
    assert guarded("tests/a.py", marked) == ["tests/a.py:3: broad except; tests and benches name what they expect"]
