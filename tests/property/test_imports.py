"""Readers of other programs' files, on mangled files: what cannot be read is refused, and nothing else fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.import_cast import BOAT, NOW, folder
from tests.unit.test_import_homes import AGENT, CLAUDE, HERMES, NOTE, OPENCLAW, PASSAGES

from keepsaid.errors import InputError
from keepsaid.services.imports.drafts import ForeignFiles
from keepsaid.services.imports.files import open_files
from keepsaid.services.imports.formats import READERS, format_of

Way = tuple[Any, ...]
"""Names and places that lead to a value inside of a value."""

_MEM0 = {"results": [{"id": "a1", "memory": "Rows on Sundays", "user_id": "ana", "categories": ["hobby"]}]}
_HERMES_LINES = "".join(json.dumps(one) + "\n" for one in HERMES)

EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "chatgpt": {"conversations.json": [BOAT, BOAT]},
    "claude": CLAUDE,
    "openclaw": OPENCLAW,
    "hermes": {"memories/USER.md": "Bakes on Sundays\n§\nTea", "sessions.jsonl": _HERMES_LINES},
    "mem0": {"mem0.json": _MEM0},
    "letta": {"sam.af": AGENT, "passages.json": PASSAGES},
    "basic-memory": {"coffee.md": NOTE},
}

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9) | st.just(10**400),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(max_size=5), inside, max_size=3),
    max_leaves=6,
)


def _read(files: Mapping[str, object], name: str) -> None:
    """Read files as an import does; only InputError may be raised."""
    with TemporaryDirectory() as place:
        path = folder(Path(place) / "given", files)
        for work in (lambda: format_of(path), lambda: _lines(path, name)):
            with suppress(InputError):
                work()


def _lines(path: Path, name: str) -> list[Any]:
    source = ForeignFiles(open_files(path), READERS[name], {"*": "owner"}, NOW)
    first, second = ([(line.number, line.why, line.record) for line in source.lines()] for _ in range(2))
    assert first == second
    return first


def _paths(value: Any, path: Way = ()) -> Iterator[Way]:
    """The way to each value inside of a value, and to itself."""
    yield path
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for name, one in inside:
        yield from _paths(one, (*path, name))


def _mangled(value: Any, draw: Callable[..., Any]) -> Any:
    """The value with two to five values anywhere in it replaced, or left out, or given twice."""
    for _ in range(draw(st.integers(2, 5))):
        path = draw(st.sampled_from(list(_paths(value))))
        value = _changed(value, path, draw)
    return value


def _changed(value: Any, path: Way, draw: Callable[..., Any]) -> Any:
    if not path:
        return draw(_JSON)
    name, *rest = path
    copy = dict(value) if isinstance(value, dict) else list(value)
    if rest:
        copy[name] = _changed(value[name], tuple(rest), draw)
        return copy
    deed = draw(st.sampled_from(["replace", "replace", "leave out", "repeat"]))
    if deed == "leave out":
        del copy[name]
    elif deed == "repeat" and isinstance(copy, list):
        copy.insert(name, value[name])
    else:
        copy[name] = draw(_JSON)
    return copy


def test_every_reader_has_an_example() -> None:
    assert EXAMPLES.keys() == READERS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mangled_values_never_crash_a_reader(name: str, data: st.DataObject) -> None:
    files = dict(EXAMPLES[name])
    chosen = data.draw(st.sampled_from(sorted(files)))
    content = files[chosen]
    if isinstance(content, str) and chosen.endswith(".jsonl"):
        values = [json.loads(line) if line.startswith("{") else line for line in content.splitlines()]
        files[chosen] = "".join(json.dumps(one) + "\n" for one in _as_list(_mangled(values, data.draw)))
    elif not isinstance(content, str):
        files[chosen] = _mangled(content, data.draw)
    _read(files, name)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_mangled_bytes_never_crash_a_reader(name: str, data: st.DataObject) -> None:
    files = dict(EXAMPLES[name])
    chosen = data.draw(st.sampled_from(sorted(files)))
    content = files[chosen]
    raw = content.encode() if isinstance(content, str) else json.dumps(content).encode()
    begin = data.draw(st.integers(0, len(raw)))
    end = data.draw(st.integers(begin, min(len(raw), begin + 40)) | st.just(len(raw)))
    files[chosen] = raw[:begin] + data.draw(st.binary(max_size=8)) + raw[end:]
    _read(files, name)
