"""Traces as they are stored: any JSON there is, read as it was written."""

from __future__ import annotations

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from keepsaid.adapters.sql.operations.outbox import trace_bytes
from keepsaid.domain.prompt import Json

PLAIN = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(st.characters(codec="utf-8"))
TRACES = st.recursive(
    PLAIN, lambda of: st.lists(of) | st.dictionaries(st.text(st.characters(codec="utf-8")), of), max_leaves=10
)


@settings(max_examples=40)
@given(TRACES)
def test_a_trace_is_read_as_it_was_written(trace: Json) -> None:
    assert json.loads(trace_bytes(trace)) == trace


def test_half_a_surrogate_pair_is_no_obstacle() -> None:
    assert json.loads(trace_bytes({"said": "a\ud800b", "at": 1})) == {"said": "a\ud800b", "at": 1}
