from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.tokens import estimate_tokens

MB = 1_000_000
PIECE = re.compile(r"[A-Za-z]+|[0-9]{1,3}|[^\W\d_]|\s*\n\s*|[^\w\s]|_")


def by_pieces(text: str) -> int:
    """The rule in one expression: a token a piece, a sixth a letter of long words, 0.85 for other scripts."""
    total = 0.0
    for piece in PIECE.findall(text):
        english = piece[0].isascii() and piece[0].isalpha()
        total += max(1.0, len(piece) / 6) if english else 1.0 if piece[0].isascii() else 0.85
    return int(total + 0.5)


@given(text=st.text(max_size=60) | st.text(alphabet="abcdefgh 12.,_\n\t\x1c[]", max_size=60))
def test_both_ways_to_count_follow_the_rule(text: str) -> None:
    assert abs(estimate_tokens(text) - by_pieces(text)) <= 1
    assert abs(estimate_tokens(f"{text}é") - by_pieces(f"{text}é")) <= 1


@pytest.mark.parametrize("text", ["one extraordinary word\n", "12 34\n\n(a_b)! ", "日本 ok\n", "x" * 40])
def test_a_long_text_costs_as_its_parts_do(text: str) -> None:
    many = 100_000 // len(text)
    assert estimate_tokens(text * many) == pytest.approx(estimate_tokens(text) * many, rel=0.1)


@pytest.mark.parametrize("text", ["the extraordinary cat! 42\n", " ", "\n", "x", "日", "0"])
def test_a_megabyte_is_estimated_in_milliseconds(text: str) -> None:
    whole = text * (MB // len(text))
    fastest = 1.0
    for n in range(5):
        began = time.perf_counter()
        estimate_tokens(f"{whole}{n}")
        fastest = min(fastest, time.perf_counter() - began)
    assert fastest < 0.02, "some 1 ms, with room for a busy machine"
