"""Text at the door: the form in which it is stored, and how long texts are cut."""

from __future__ import annotations

import unicodedata
from itertools import groupby, product

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text.normal import ends_of, normalise, span_in, span_text
from keepsaid.text.words import beginnings, fold, root, spelled

MARKS = "\u0300\u0316\u0345\u0344\u3099\u05b0"
"""Combining marks of several classes; one of them stands for two."""

PARTS = [
    *MARKS,
    "a",
    "e",
    "\u1fa7",
    "é",
    "\u1112",
    "\u1161",
    "\u11ab",
    "\uac00",
    "我",
    "\u034f",
    "…",
    "🙂",
    " ",
    "\n",
    "\0",
]


def longest_run_of_marks(text: str) -> int:
    """The most combining marks that follow one another in the canonical decomposition of a text."""
    classes = map(unicodedata.combining, unicodedata.normalize("NFD", text))
    return max((sum(1 for _ in run) for is_mark, run in groupby(classes, bool) if is_mark), default=0)


@given(st.lists(st.tuples(st.sampled_from(PARTS), st.integers(1, 45)), max_size=12))
def test_normalised_text_is_nfc_and_stream_safe(parts: list[tuple[str, int]]) -> None:
    text = normalise("".join(part * count for part, count in parts))
    assert unicodedata.is_normalized("NFC", text)
    assert longest_run_of_marks(text) <= 30
    assert normalise(text) == text


@given(st.text(st.sampled_from(PARTS[:-1]), max_size=60))
def test_text_with_few_marks_is_normalised_as_unicode_says(text: str) -> None:
    if longest_run_of_marks(text) <= 30:
        assert normalise(text) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize(
    "part", ["e\u0301", "한국어", "\u1112\u1161\u11ab", "我们", "e\u0301\u0316 ", "…\u0301", "a\u0301b"]
)
@pytest.mark.parametrize("shift", range(3))
def test_a_long_text_is_normalised_as_a_whole_whatever_slice_it_falls_in(part: str, shift: int) -> None:
    text = "é" * shift + part * 20_000
    assert normalise(text) == unicodedata.normalize("NFC", text)


def test_no_character_composes_across_the_end_of_a_slice() -> None:
    everything = map(chr, (*range(0xD800), *range(0xE000, 0x110000)))
    pairs = (unicodedata.decomposition(one).split() for one in everything)
    seconds = {chr(int(pair[1], 16)) for pair in pairs if len(pair) == 2 and not pair[0].startswith("<")}
    for second in (*seconds, "\u1161", "\u11a8"):
        text = "x" * 16_384 + second + "y" * 16_384
        assert normalise(text) == unicodedata.normalize("NFC", text), hex(ord(second))


@given(st.integers(1, 9_999_999))
def test_a_span_is_read_as_it_is_written(seconds: int) -> None:
    assert span_in(span_text(seconds * 1_000)) == seconds * 1_000


def test_what_cannot_be_stored_is_replaced() -> None:
    assert normalise("a\0b") == "a\ufffdb"
    assert normalise("é\0\ud800\udfffz") == "é\ufffd\ufffd\ufffdz"


@given(st.text(max_size=40), st.integers(1, 30))
def test_the_ends_of_a_text_fit_the_limit(text: str, limit: int) -> None:
    ends = ends_of(text, limit)
    assert len(ends) <= limit
    assert ends == text or (len(text) > limit and text.startswith(ends[: (limit - 1) // 2]))


def test_the_ends_of_a_long_text_are_its_beginning_and_its_end() -> None:
    assert ends_of("abcdefghij", 7) == "abc\nhij"


LETTERS = "aZéÉёЁйが한أếßΣςłøñçİ北"
"""Letters of many scripts, with and without accents."""


@given(st.text(st.sampled_from(LETTERS), min_size=1, max_size=40))
def test_a_folded_word_is_the_token_that_the_index_has_of_it(word: str) -> None:
    cut = apsw.Connection(":memory:").fts5_tokenizer("unicode61", [])
    tokens = cut(word.encode(), apsw.FTS5_TOKENIZE_DOCUMENT, None, include_offsets=False, include_colocated=False)
    assert [fold(word)] == list(tokens)


_ENDINGS = ["", "s", "es", "ies", "sses", "eed", "ed", "ing", "y", "ys", "ational", "izer", "logi", "bli", "ator"]
_ENDINGS += ["iveness", "biliti", "icate", "ical", "ful", "ness", "ement", "ion", "ive", "ize", "e", "ll", "é", "ство"]


def begins_as_told(word: str, stem: str) -> bool:
    told, size = beginnings([stem])
    return word[:size] in told or not word[:size].isascii()


@pytest.mark.parametrize("ending", _ENDINGS)
def test_a_word_begins_as_its_stem_tells(ending: str) -> None:
    for letters in product("abdeilosty", repeat=3):
        for word in ("".join(letters[:size]) + ending for size in (1, 2, 3)):
            assert begins_as_told(word, root(word)), word
            assert begins_as_told(word.title(), root(word.title())), word


@given(st.text())
def test_every_word_of_a_text_begins_as_its_stem_tells(text: str) -> None:
    assert all(begins_as_told(word, root(word)) for word in spelled(normalise(text)) if root(word))
