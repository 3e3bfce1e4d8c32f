"""Faults of settings: every value that cannot be used, with its key, its place and what was expected instead."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from keepsaid.config.document import EDIT, ConfigDocument, Key
from keepsaid.config.fields import is_secret, locate, variable_name, variable_setting
from keepsaid.config.section import FORMER
from keepsaid.config.settings import ENV_PREFIX
from keepsaid.errors import ConfigError
from keepsaid.text.normal import cut, masked_addresses
from keepsaid.values import frozen

_OURS = "Value error, "
"""Prefix that pydantic puts before messages of our own validators."""

_EXPECTED: Mapping[str, str] = {
    "int_type": "an integer",
    "int_parsing": "an integer",
    "int_from_float": "an integer",
    "int_parsing_size": "an integer of fewer digits",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "string_type": "text",
    "model_type": "keys and values",
    "model_attributes_type": "keys and values",
    "dict_type": "keys and values",
    "tuple_type": "a list",
    "list_type": "a list",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than_equal": "at most {le}",
    "less_than": "less than {lt}",
    "string_too_short": "at least {min_length} characters",
    "string_too_long": "at most {max_length} characters",
    "string_pattern_mismatch": "text that matches {pattern}",
    "literal_error": "{expected}",
    "enum": "{expected}",
}
"""Our words for pydantic's types of errors."""

_SHOWN_MAX = 60


@frozen
class Fault:
    """One value that cannot be used. `variable` sets it, or `needs` is the variable that is not set."""

    key: Key
    what: str
    place: str
    variable: str = ""
    needs: str = ""

    def __str__(self) -> str:
        return f"{'.'.join(self.key)}: {self.what}  ({self.place})"


def refuse(faults: Iterable[Fault]) -> ConfigError:
    """Return the error that lists all faults, a line each, with the hint that helps with them."""
    found = sorted(dict.fromkeys(faults), key=_line)
    lines = [str(fault) for fault in found]
    what = lines[0] if len(lines) == 1 else "\n  ".join([f"{len(lines)} settings cannot be used", *lines])
    variable = next((fault.variable for fault in found if fault.variable), "")
    needed = next((fault.needs for fault in found if fault.needs), "")
    if variable:
        return ConfigError(what, hint=f"unset {variable}, or export {variable}=VALUE")
    return ConfigError(what, hint=f"export {needed}=VALUE, or: {EDIT}" if needed else EDIT)


def _line(fault: Fault) -> int:
    line = fault.place.rpartition(":")[2]
    return int(line) if line.isdigit() else 0


def faults_of(error: ValidationError, document: ConfigDocument, place: Callable[[Key], str]) -> Iterator[Fault]:
    """Yield the faults of settings; `place` says where a key that no variable sets comes from."""
    merged: dict[tuple[Key, str, str, bool], list[tuple[str, str]]] = {}
    for detail in error.errors(include_url=False):
        key, kind = locate(detail["loc"])
        variable = variable_setting(key)
        where = f"environment variable {variable}" if variable else place(_as_written(key, document))
        expected, got, is_name = _expectation(detail), "", detail["loc"][-1:] == ("[key]",)
        if is_name:
            expected, got = f"{expected} as the name", f'got "{key[-1]}"'
        elif detail["type"] != "missing":
            got = _got(kind, detail["input"] if variable else _written(key, document, detail))
        merged.setdefault((key, where, variable, is_name), []).append((expected, got))
    for (key, where, variable, _), told in merged.items():
        yield Fault(key, _sentence(told), where, variable)


def _sentence(told: list[tuple[str, str]]) -> str:
    """Join what the members of a union expected of the same value."""
    expected, got = dict.fromkeys(expected for expected, _ in told), told[0][1]
    if not all(one.startswith("expected ") for one in expected):
        said = next(iter(expected))
        shown = got.removeprefix("got ").strip('"')
        return f"{said}, {got}" if got.startswith('got "') and shown not in said else said
    words = " or ".join(one.removeprefix("expected ") for one in expected)
    return f"expected {words}" + (f", {got}" if got else "")


def _expectation(detail: ErrorDetails) -> str:
    kind, context = detail["type"], detail.get("ctx", {})
    if kind == "missing":
        return "this key is required and not set"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind].format_map({name: _plain(one) for name, one in context.items()})}"
    return detail["msg"].removeprefix(_OURS)


def _plain(value: object) -> str:
    return f"{value:.15g}" if isinstance(value, float) else str(value).replace("'", "")


def _got(kind: Any, value: Any) -> str:
    if isinstance(value, Mapping):
        return "got keys and values"
    if isinstance(value, list | tuple):
        return "got a list"
    if value is None:
        return "got nothing"
    if kind is None or is_secret(kind):
        return "got a value that is not shown"
    return f"got {cut(json.dumps(masked_addresses(value), ensure_ascii=False, default=str), _SHOWN_MAX)}"


def _written(key: Key, document: ConfigDocument, detail: ErrorDetails) -> Any:
    """Return the value as the file has it, with `${NAME}` in place of the variable's value."""
    try:
        return document.value(_as_written(key, document))
    except (LookupError, TypeError, ValueError):
        return detail["input"]


def _as_written(key: Key, document: ConfigDocument) -> Key:
    """Return the key under the name that the file uses, which may be that of an earlier release."""
    if not key or key in document.lines:
        return key
    former = (name for name, now in FORMER.get(key[0], {}).items() if key[-1] == now)
    return next((one for name in former if (one := (*key[:-1], name)) in document.lines), key)


def bad_variable(error: ValueError) -> ConfigError:
    """Return the error for an environment variable of a section or list that is not JSON."""
    field = re.search(r'field "(\w+)"', str(error))
    whole = variable_name((field.group(1),)) if field else ENV_PREFIX
    named = [name for name in sorted(os.environ) if name.upper() == whole or name.upper().startswith(f"{whole}__")]
    wrong = next((name for name in named if not _is_json(os.environ[name])), whole)
    what = f"environment variable {wrong}: expected JSON, because this setting is a list or holds keys and values"
    return ConfigError(what, hint=f"set one key at a time, e.g. {ENV_PREFIX}BUFFER__WINDOW_MS=0; or unset {wrong}")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True
