from __future__ import annotations

import json
import time
from itertools import groupby
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text.tokens import RATIO_MAX, Calibration, estimate_tokens

MB = 1_000_000
TEXTS = Path(__file__).parent / "tokens"
TRUE: dict[str, int] = json.loads((TEXTS / "o200k.json").read_text("utf-8"))
"""What OpenAI's tokenizer o200k makes of each text beside the table; the texts were written for it."""


def estimated(name: str) -> int:
    return estimate_tokens((TEXTS / name).read_text("utf-8"))


def test_chat_and_code_are_estimated_within_five_percent() -> None:
    kinds = {kind: list(names) for kind, names in groupby(sorted(TRUE), key=lambda name: name.split("_")[0])}
    for kind in ("chat", "code"):
        true = sum(TRUE[name] for name in kinds[kind])
        assert sum(map(estimated, kinds[kind])) == pytest.approx(true, rel=0.05), kind


def test_no_text_is_estimated_a_fifth_too_low() -> None:
    assert {file.name for file in TEXTS.glob("*.txt")} == set(TRUE)
    assert [name for name, true in TRUE.items() if estimated(name) < 0.8 * true] == []
    assert [name for name, true in TRUE.items() if estimated(name) > 1.2 * true] == []


@given(text=st.text(max_size=200))
def test_every_text_has_a_cost_and_the_same_one_every_time(text: str) -> None:
    assert estimate_tokens(text) == estimate_tokens(text) >= (0 if not text else 1)


def test_a_factor_follows_what_is_reported() -> None:
    heard = Calibration("openai/x")
    assert heard.factor == 1.0
    for _ in range(3):
        heard = heard.with_sample(1_000, 1_200)
    assert heard.factor == 1.2
    for _ in range(2_000):
        heard = heard.with_sample(1_000, 900)
    assert heard.factor == pytest.approx(0.9, abs=0.001), "what was reported long ago counts less and less"


@pytest.mark.parametrize("reported", [0, -5, 100, 100_000])
def test_a_report_out_of_proportion_changes_nothing(reported: int) -> None:
    known = Calibration("openai/x", 1_000, 1_100)
    assert known.with_sample(1_000, reported) == known


@given(reports=st.lists(st.tuples(st.integers(0, 200_000), st.integers(0, 200_000)), max_size=20))
def test_a_factor_stays_in_bounds(reports: list[tuple[int, int]]) -> None:
    heard = Calibration("m")
    for one in reports:
        heard = heard.with_sample(*one)
    assert 1 / RATIO_MAX - 0.001 <= heard.factor <= RATIO_MAX


@pytest.mark.parametrize("text", ["one extraordinary word\n", "12 34\n\n(a_b)! ", "日本 ok\n", "x" * 2_000])
def test_a_long_text_costs_as_its_parts_do(text: str) -> None:
    many = 100_000 // len(text)
    assert estimate_tokens(text * many) == pytest.approx(estimate_tokens(text) * many, rel=0.1)


@pytest.mark.parametrize("text", ["the extraordinary cat! 42\n", " ", "\n", "x", "日", "0"])
def test_a_megabyte_is_estimated_in_milliseconds(text: str) -> None:
    whole = text * (MB // len(text))
    fastest = 1.0
    for n in range(5):
        began = time.thread_time()
        estimate_tokens(f"{whole}{n}")
        fastest = min(fastest, time.thread_time() - began)
    assert fastest < 0.02, "some 1 ms of processor time"
