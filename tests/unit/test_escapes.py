"""What a terminal is shown of outside text: no control, no override, no invisible character; ordinary writing stays."""

from __future__ import annotations

import json
import time
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.interfaces.cli.console import one_line
from keepsaid.interfaces.cli.escapes import VisibleStream, json_line, visible

HOSTILE = {
    "escape sequence": "a\x1b[2J",
    "title": "\x1b]0;x\x07",
    "one-byte CSI": "\x9b2J",
    "delete": "a\x7f",
    "carriage return": "safe\rfalse",
    "backspace": "ab\b\bcd",
    "bidi override": "\u202egnp.exe",
    "bidi isolate": "\u2066x\u2069",
    "direction mark": "a\u200fb\u200eb\u061cc",
    "zero-width space": "pass\u200bword",
    "word joiner": "pass\u2060word",
    "byte order mark": "\ufeffa",
    "soft hyphen": "pass\u00adword",
    "joiner in latin": "a\u200db\u200cc",
    "line separator": "a\u2028b\u2029c",
    "tags": "a\U000e0041\U000e0042",
    "tags after a flag": "\U0001f3f4\U000e0041\U000e007f",
    "selectors in a row": "\u2764\ufe0f\ufe0f\U000e0101",
    "hangul filler": "a\u3164b\uffa0",
    "invisible operators": "a\u2062b",
    "interlinear annotation": "a\ufff9b",
    "lone surrogate": "a\ud83db",
}
ORDINARY = {
    "tab and line feed": "a\tb\nc",
    "a couple": "\U0001f469\u200d\u2764\ufe0f\u200d\U0001f468",
    "skin tone": "\U0001f469\U0001f3fd\u200d\U0001f4bb",
    "rainbow": "\U0001f3f3\ufe0f\u200d\U0001f308",
    "keycap": "1\ufe0f\u20e3",
    "wavy dash": "\u3030\ufe0f",
    "flag of Scotland": "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    "Persian": "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645",
    "Hindi": "\u0915\u094d\u200d\u0937",
    "Khmer": "\u1780\u1793\u200b\u1781",
    "Mongolian": "\u182d\u180b",
    "name in kanji": "\u845b\U000e0100\u57ce",
    "Hebrew": "\u05e9\u05dc\u05d5\u05dd",
    "accents": "a\u0301 é ü ß",
}


def _is_hidden(letter: str) -> bool:
    """Judged by the character's class, not by the table under test."""
    return letter not in "\t\n" and unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp")


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hidden_character_is_shown_as_an_escape(name: str) -> None:
    text = HOSTILE[name]
    shown = visible(text)
    assert "\\u{" in shown
    assert not any(map(_is_hidden, shown))
    assert visible(shown) == shown


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_writing_is_shown_as_it_is(name: str) -> None:
    assert visible(ORDINARY[name]) == ORDINARY[name]


def test_line_ends_of_other_systems_are_line_feeds() -> None:
    assert visible("a\r\nb\rc") == "a\nb\\u{d}c"
    assert one_line("a\x1b\r\nb\u2028c") == "a\\u{1b} b\\u{2028}c"


@pytest.mark.parametrize("name", [*HOSTILE, *ORDINARY])
def test_json_holds_no_hidden_character_and_gives_the_text_back(name: str) -> None:
    text = {**HOSTILE, **ORDINARY}[name]
    line = json_line({"text": text, text: [text]})
    assert not any(map(_is_hidden, line))
    assert json.loads(line) == {"text": text, text: [text]}


LETTERS = st.text(
    st.sampled_from([*{letter for text in (*HOSTILE.values(), *ORDINARY.values()) for letter in text}])
    | st.characters(),
    max_size=60,
)


@given(LETTERS, st.lists(st.integers(0, 60)))
def test_pieces_are_shown_as_the_whole_would_be(text: str, cuts: list[int]) -> None:
    """Wherever a model's answer is cut: inside an escape sequence, an emoji or a line end."""
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    pieces = [text[start:end] for start, end in pairwise(places)]
    stream = VisibleStream()
    assert "".join([*map(stream.feed, pieces), stream.end()]) == visible(text)


@given(LETTERS)
def test_no_control_is_ever_shown(text: str) -> None:
    shown = visible(text)
    assert not any(
        unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") and letter not in "\t\n" for letter in shown
    )
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c\u2060\ufeff")
    assert json.loads(json_line({"a": text})) == {"a": text}


def _seconds(text: str) -> float:
    started = time.thread_time()
    visible(text)
    stream = VisibleStream()
    for place in range(0, len(text), 5):
        stream.feed(text[place : place + 5])
    json_line({"text": text})
    return time.thread_time() - started


@pytest.mark.parametrize("piece", ["\u202e", "\u200d", "\U0001f3f4\U000e0067", "\u2764\ufe0f\u200d", "\r", "a"])
def test_time_grows_with_the_length_alone(piece: str) -> None:
    short, long = (min(_seconds((piece * chars)[:chars]) for _ in range(3)) for chars in (5_000, 20_000))
    assert long <= max(8 * short, 0.02)
