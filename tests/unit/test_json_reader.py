"""The JSON reader: it reads what `json.loads` reads, refuses what cannot become fields, and takes linear time."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from time import thread_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text import json_reader
from keepsaid.text.json_reader import DEPTH_MAX, VALUES_MAX, Abandoned, Unreadable, read_json

NUMBERS = st.integers(-(10**290), 10**290) | st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"])) | st.text('ab\\"/\n\t\0é灯🕯\u2028', max_size=300)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner),
    max_leaves=60,
)


def read_slowly(raw: bytes) -> Any:
    """A document as the reader for large ones reads it, whatever its size."""
    return json_reader._Reader(raw, lambda: True).document()


def outcome(read: Any, raw: bytes) -> str:
    try:
        return repr(read(raw))
    except Unreadable:
        return "unreadable"


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_every_value_is_read_as_it_was_written(value: Any, ascii_only: bool, indent: int | None) -> None:
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert read_json(raw) == read_slowly(raw) == value


@given(st.binary(max_size=60) | st.text('{}[]",:\\u0123d8ef.-+etruefalsn \n', max_size=40).map(str.encode))
def test_small_and_large_documents_are_read_by_the_same_rules(raw: bytes) -> None:
    assert outcome(read_json, raw) == outcome(read_slowly, raw)


REFUSED = [
    (b'{"a": NaN}', "NaN is not a number"),
    (b"[-Infinity]", "-Infinity is not a number"),
    (b"[1e400]", "too large"),
    (b"[-1e400]", "too large"),
    (b"[%s]" % (b"9" * 301), "more than 300 characters"),
    (b"[0.%s]" % (b"1" * 300), "more than 300 characters"),
    (b'{"a": {"b": 1, "b": 2}}', "'b' stands twice"),
    (b'{"\\u0061": 1, "a": 2}', "'a' stands twice"),
    (b"[" * 513 + b"]" * 513, "nested too deeply"),
    (b'"\xff"', "not UTF-8 [(]byte 1[)]"),
    (b'"' + b"x" * 70_000 + b'\xff"', "not UTF-8 [(]byte 70001[)]"),
    (b"\xff", "not UTF-8 [(]byte 0[)]"),
    (b'"' + b"x" * 70_000, "not closed"),
    (b'"' + b"x" * 70_000 + b'\n"', "control character"),
    (b'["' + b"x" * 70_000 + b'\\x"]', "invalid escape"),
    (b" " * 70_000, "value is missing"),
    (b"[1] " + b" " * 70_000 + b"2", "goes on after its end"),
    (b"[" + b" " * 70_000 + b"01]", "',' is missing"),
    (b"[1," + b" " * 70_000 + b"]", "value is missing"),
    (b"{" + b" " * 70_000 + b"1: 2}", "name in double quotes"),
]


@pytest.mark.parametrize(("raw", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_what_cannot_become_fields_is_refused_with_the_reason(raw: bytes, why: str) -> None:
    with pytest.raises(Unreadable, match=why) as caught:
        read_slowly(raw)
    assert len(str(caught.value)) < 200
    with pytest.raises(Unreadable):
        read_json(raw)


def test_lone_surrogates_become_question_marks_and_pairs_characters() -> None:
    for raw in (b'["\\ud800", "\\udc00x", "\xed\xa0\x80", "\\ud83d\\ude00", "\\ud83dx\\ude00"]',):
        for at in range(0, 70_000, 9_973):
            long = b'["' + b"\\n" * at + b'", ' + raw[1:]
            assert read_json(long)[1:] == ["\ufffd", "\ufffdx", "\ufffd" * 1, "\U0001f600", "\ufffdx\ufffd"]


@pytest.mark.parametrize("one", ["é", "灯", "🕯"])
def test_a_long_text_is_read_whole_wherever_its_pieces_end(one: str) -> None:
    for shift in range(5):
        text = "x" * shift + one * 60_000 + "\n" + one * 200
        for ascii_only in (True, False):
            assert read_json(json.dumps([text], ensure_ascii=ascii_only).encode()) == [text]


def test_as_many_values_and_levels_as_allowed_are_read() -> None:
    assert len(read_json(b"[" + b"0," * (VALUES_MAX - 2) + b"0]")) == VALUES_MAX - 1
    with pytest.raises(Unreadable, match="more than 200,000 values"):
        read_json(b"[" + b"0," * (VALUES_MAX - 1) + b"0]")
    for deep in (DEPTH_MAX, 40):
        value = read_json(b"[" * deep + b"]" * deep)
        for _ in range(deep - 1):
            (value,) = value
        assert value == []


def test_a_reader_that_nobody_waits_for_stops() -> None:
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(1)
        return len(asked) < 3

    with pytest.raises(Abandoned):
        read_json(b"[" + b"0," * 100_000 + b"0]", wanted)
    assert len(asked) == 3


HOSTILE: dict[str, Callable[[int], bytes]] = {
    "members": lambda n: b"{" + b",".join(b'"%d":0' % i for i in range(n // 10)) + b"}",
    "one name twice": lambda n: b"{" + b",".join(b'"%d":0' % min(i, n // 10 - 2) for i in range(n // 10)) + b"}",
    "nested": lambda n: b"[" * n,
    "objects": lambda n: b'[{"a":' * n,
    "digits": lambda n: b"[" + b"1" * n,
    "fraction": lambda n: b"[1." + b"1" * n,
    "spaces": lambda n: b"[" + b" \n" * (n // 2),
    "open text": lambda n: b'["' + b"x" * n,
    "escapes": lambda n: b'["' + b"\\n" * (n // 2),
    "escapes between": lambda n: b'["' + b"\\na" * (n // 3),
    "quotes": lambda n: b'["' + b'\\"' * (n // 2),
    "surrogates": lambda n: b'["' + b"\\ud800" * (n // 6),
    "halves": lambda n: b'["' + b"\\ud83d\\u0061" * (n // 12),
    "bytes": lambda n: b'["' + b"\xed\xa0\x80" * (n // 3),
    "continuations": lambda n: b'["' + b"\x80" * n,
    "commas": lambda n: b"[" + b"," * n,
    "empty": lambda n: b"[" + b"{}," * (n // 3),
    "backslashes": lambda n: b'["' + b"\\\\" * (n // 2),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_reading_takes_time_in_proportion_to_size(name: str) -> None:
    def seconds(size: int) -> float:
        took = []
        for _ in range(3):
            raw, began = HOSTILE[name](size), thread_time()
            outcome(read_json, raw)
            took.append(thread_time() - began)
        return min(took)

    small, large = seconds(80_000), seconds(480_000)
    assert large < 15 * max(small, 0.002), (small, large)


def test_numbers_stay_what_they_were() -> None:
    told = read_json(b"[0, -0, 1.5e3, -1E-400, 1e308, %s]" % (b"9" * 300))
    assert told == [0, 0, 1500.0, 0.0, 1e308, 10**300 - 1]
    assert math.isfinite(sum(map(float, told)))
