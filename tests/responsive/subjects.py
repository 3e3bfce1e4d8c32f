"""What reads text in the package: every compiled regular expression, and every function that a text can be given to.

They are found by walking the package, so that a new one is measured without being listed.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, NamedTuple

from tests.responsive.made_values import Maker, bound
from tests.responsive.recipes import EXEMPT, RECIPES

import keepsaid

WITHOUT_FUNCTIONS = {
    "keepsaid.testing": "it makes texts for tests and reads none from outside",
    "keepsaid.interfaces.cli": "its functions print, and open homes; a person waits for them, not the runtime",
    "keepsaid.config.fields": "it compares names of settings in the owner's file and environment",
    "keepsaid.config.edits": "it changes the owner's file; PyYAML takes quadratic time for brackets in brackets",
    "keepsaid.__main__": "it starts the program",
    "keepsaid.app": "it joins adapters, and reads files of the owner",
    "keepsaid.adapters.system": "it reads files of the owner",
}
"""Parts of the package whose functions are not called here; their regular expressions are measured."""


class Refused:
    """Lets a block refuse its text with whatever error, and notes the kind of error."""

    def __init__(self) -> None:
        self.kind: type[BaseException] | None = None

    def __enter__(self) -> Refused:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> bool:
        self.kind = kind
        return kind is not None and issubclass(kind, Exception)


_CONFUSED = (TypeError, AttributeError, AssertionError)
"""What a function raises that was called with arguments that make no sense to it."""

_METHODS = "match|fullmatch|search|finditer|findall|sub|subn|split"
_PROBE = "a text 2026-11-23"


class Subject(NamedTuple):
    """A function or regular expression that reads text.

    `given` takes a text, and whether sequences hold it in pieces, and returns the work to measure. `has_pieces` says
    whether the work differs between a whole text and one in pieces.
    """

    name: str
    given: Callable[[str, bool], Callable[[], Any]]
    has_pieces: bool = False


@cache
def modules() -> tuple[ModuleType, ...]:
    """Every module of the package but those that only tests import."""
    names = [found.name for found in pkgutil.walk_packages(keepsaid.__path__, "keepsaid.")]
    return tuple(
        importlib.import_module(name)
        for name in names
        if not name.startswith(("keepsaid.testing", "keepsaid.__main__"))
    )


def patterns_in(value: object, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    """The compiled patterns in a value, also inside tuples, lists, dicts and objects in them."""
    if isinstance(value, re.Pattern):
        yield value
    elif type(value).__name__ == "_LazyPattern":
        vars_of: dict[str, Any] = vars(value)
        yield re.compile(vars_of["_source"], vars_of["_flags"])
    elif depth < 4:
        inner: Any = ()
        if isinstance(value, dict):
            inner = value.values()
        elif isinstance(value, tuple | list | set | frozenset):
            inner = value
        elif type(value).__module__.startswith("keepsaid.") and hasattr(value, "__dict__"):
            inner = vars(value).values()
        for one in inner:
            yield from patterns_in(one, depth + 1)


@cache
def regexes() -> dict[str, Subject]:
    """Every pattern of every module, applied to a text in the ways in which the package applies it."""
    found: dict[str, Subject] = {}
    seen: set[re.Pattern[Any]] = set()
    for module in modules():
        for name, value in vars(module).items():
            for n, pattern in enumerate(patterns_in(value)):
                if pattern not in seen:
                    seen.add(pattern)
                    label = f"{module.__name__}.{name}[{n}]"
                    found[label] = Subject(label, _applying(pattern, applied(module.__name__, name)))
    return found


@cache
def applied(owner: str, name: str) -> frozenset[str]:
    """The methods that are called on the patterns under a name of a module; else those called on others beside it.

    A name that begins with an underscore is used in its module alone.
    """
    direct: set[str] = set()
    beside: set[str] = set()
    for module in modules():
        if module.__name__ != owner and name.startswith("_"):
            continue
        words, calls = _words_and_calls(module)
        if name in words:
            direct |= {method for called, method in calls if called == name}
            beside |= {method for _, method in calls}
    return frozenset(direct or beside or _METHODS.split("|"))


@cache
def _words_and_calls(module: ModuleType) -> tuple[frozenset[str], frozenset[tuple[str, str]]]:
    """The names in the source of a module, and the methods of patterns that it calls, each with its object's name."""
    text = inspect.getsource(module) if module.__file__ else ""
    calls = re.findall(rf"(\w*)\.({_METHODS})\(", text)
    calls += [(name, "finditer") for name in re.findall(r"\bmatches\((\w+)", text)]
    return frozenset(re.findall(r"\w+", text)), frozenset(calls)


def _applying(pattern: re.Pattern[Any], methods: frozenset[str]) -> Callable[[str, bool], Callable[[], Any]]:
    def given(text: str, _: bool) -> Callable[[], Any]:
        raw = text if isinstance(pattern.pattern, str) else text.encode("utf-8", "surrogatepass")

        def apply() -> None:
            if "match" in methods:
                pattern.match(raw)
            if "fullmatch" in methods:
                pattern.fullmatch(raw)
            if not methods <= {"match", "fullmatch"}:
                deque(pattern.finditer(raw), 0)

        return apply

    return given


@cache
def functions() -> dict[str, Subject]:
    """Every function and static method that a text can be given to, by its full name."""
    found = {name: Subject(name, given) for name, given in RECIPES.items()}
    for name, function in all_functions():
        if name not in found and name not in EXEMPT and is_callable(function):
            found[name] = Subject(name, _calling(function), has_pieces(function))
    return found


def all_functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The plain functions and static methods of the modules whose functions are called."""
    for module in modules():
        if module.__name__.startswith(tuple(WITHOUT_FUNCTIONS)):
            continue
        for name, value in vars(module).items():
            if getattr(value, "__module__", None) != module.__name__:
                continue
            if inspect.isclass(value):
                own = [(key, one.__func__) for key, one in vars(value).items() if isinstance(one, staticmethod)]
                yield from ((f"{module.__name__}.{name}.{key}", one) for key, one in own)
            elif _is_plain(value):
                yield f"{module.__name__}.{name}", value


def _is_plain(value: object) -> bool:
    function = inspect.unwrap(value) if callable(value) else value
    return inspect.isfunction(function) and not inspect.iscoroutinefunction(function)


def is_callable(function: Callable[..., Any]) -> bool:
    """Whether a call with made-up arguments, a text among them, makes sense to a function."""
    maker = Maker(_PROBE)
    with Refused() as made:
        work = bound(function, maker)
    if made.kind is not None or not maker.held:
        return False
    with Refused() as called:
        finished(work)
    return called.kind is None or not issubclass(called.kind, _CONFUSED)


def has_pieces(function: Callable[..., Any]) -> bool:
    """Whether a function takes a sequence of texts."""
    maker = Maker(_PROBE, in_pieces=True)
    bound(function, maker)
    return maker.in_pieces


def reads_text(function: Callable[..., Any]) -> bool:
    """Whether a parameter of a function is annotated as a text."""
    try:
        signature = inspect.signature(function, eval_str=True)
    except (NameError, TypeError, AttributeError):  # a name that only type checkers know
        return False
    return any(one.annotation in (str, bytes, str | None, bytes | None) for one in signature.parameters.values())


def _calling(function: Callable[..., Any]) -> Callable[[str, bool], Callable[[], Any]]:
    def given(text: str, in_pieces: bool) -> Callable[[], Any]:
        def called() -> None:
            with Refused():
                finished(bound(function, Maker(text, in_pieces=in_pieces)))

        return called

    return given


def finished(work: Callable[[], Any]) -> None:
    """Do the work; what it yields is taken."""
    result = work()
    if isinstance(result, Iterator):
        deque(result, 0)
