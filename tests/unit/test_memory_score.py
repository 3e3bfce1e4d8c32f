"""The exact score of pieces: few are counted one by one, many at once, and both ways say the same."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.adapters.sql.search.piece_index import of_few, of_many

_NUMBERS = st.sampled_from([1, 2, 3, 1 << 8, 1 << 16, 1 << 24, 1 + (1 << 8), 1 + (1 << 24)])
"""Some read like another where one ends and the next begins."""

_TERMS = st.lists(_NUMBERS, min_size=1, max_size=80)
_IDF = st.dictionaries(_NUMBERS, st.floats(0.01, 9), min_size=1)


@st.composite
def pieces(draw: st.DrawFn) -> tuple[int, int, bytes]:
    """Own terms, terms of its marks, and all terms packed."""
    terms = draw(_TERMS)
    own = draw(st.integers(0, len(terms)))
    return own, draw(st.integers(0, len(terms) - own)), array("I", terms).tobytes()


@given(_IDF, st.lists(pieces(), min_size=1, max_size=9))
def test_few_and_many_pieces_score_the_same(idf: dict[int, float], rows: list[tuple[int, int, bytes]]) -> None:
    assert of_few(idf, rows) == pytest.approx(of_many(idf, rows).tolist(), rel=1e-12)
