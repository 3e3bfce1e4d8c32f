"""Readers of other programs' files, on mangled files: what cannot be read is refused, and nothing else fails."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.import_cast import BOAT, NOW, folder
from tests.unit.test_import_homes import AGENT, CLAUDE, HERMES, NOTE, OPENCLAW

from keepsaid.errors import InputError
from keepsaid.services.imports.drafts import ForeignFiles
from keepsaid.services.imports.files import open_files
from keepsaid.services.imports.formats import READERS, format_of

_MEM0 = {"results": [{"id": "a1", "memory": "Rows on Sundays", "user_id": "ana", "categories": ["hobby"]}]}
_HERMES_LINES = "".join(json.dumps(one) + "\n" for one in HERMES)

EXAMPLES: Mapping[str, Mapping[str, object]] = {
    "chatgpt": {"conversations.json": [BOAT, BOAT]},
    "claude": CLAUDE,
    "openclaw": OPENCLAW,
    "hermes": {"memories/USER.md": "Bakes on Sundays\n§\nTea", "sessions.jsonl": _HERMES_LINES},
    "mem0": {"mem0.json": _MEM0},
    "letta": {"sam.af": AGENT},
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


def _replaced(value: Any, draw: Callable[..., Any]) -> Any:
    """The value with something in it replaced, left out, or given twice."""
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 4)) == 0:
        return draw(_JSON)
    if isinstance(value, list):
        at = draw(st.integers(0, len(value) - 1))
        return [*value[:at], _replaced(value[at], draw), *value[at : at + draw(st.integers(0, 1))], *value[at + 1 :]]
    name = draw(st.sampled_from(sorted(value)))
    if draw(st.integers(0, 5)) == 0:
        return {key: one for key, one in value.items() if key != name}
    return {**value, name: _replaced(value[name], draw)}


def test_every_reader_has_an_example() -> None:
    assert EXAMPLES.keys() == READERS.keys()


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_mangled_values_never_crash_a_reader(name: str, data: st.DataObject) -> None:
    files = dict(EXAMPLES[name])
    chosen = data.draw(st.sampled_from(sorted(files)))
    content = files[chosen]
    if isinstance(content, str) and chosen.endswith(".jsonl"):
        values = [json.loads(line) if line.startswith("{") else line for line in content.splitlines()]
        files[chosen] = "".join(json.dumps(one) + "\n" for one in _as_list(_replaced(values, data.draw)))
    elif not isinstance(content, str):
        files[chosen] = _replaced(content, data.draw)
    _read(files, name)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", EXAMPLES)
@settings(max_examples=60, deadline=None)
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
