from __future__ import annotations

import pytest
from tests.unit.memory_cast import memory

from keepsaid.domain.memory import Kind
from keepsaid.memory.block import date, folded, label, line
from keepsaid.text.languages import STOPWORDS
from keepsaid.text.topics import topic
from keepsaid.text.words import fold, place, root, spelled


@pytest.mark.parametrize(
    ("at", "day"),
    [
        (0, ""),
        (-1, ""),
        (1, "1970-01-01"),
        (1_795_219_199_999, "2026-11-20"),
        (1_795_219_200_000, "2026-11-21"),
        (253_402_300_799_999, "9999-12-31"),
        (253_402_300_800_000, ""),
        (1 << 62, ""),
    ],
)
def test_the_day_of_a_time(at: int, day: str) -> None:
    assert date(at) == day


def test_labels() -> None:
    assert label(Kind.EPISODE) == "[Episode]"
    assert label(Kind.THREAD_SUMMARY) == "[Thread summary]"


def test_a_long_text_is_cut_around_the_place() -> None:
    text = "a" * 500 + "HERE" + "b" * 500
    shown = line(memory(1, text), 200, at=500)
    assert "…" + "a" * 80 + "HERE" in shown
    assert shown.endswith("b…")
    assert line(memory(1, text), 2_000, at=500).endswith(text)
    assert line(memory(1, text), 200).endswith("a…")


def test_brackets_that_mean_nothing_to_us_stay() -> None:
    assert folded("a[0] [link](x) [[Episode]] [Thread-Summary]") == "a[0] [link](x) [(Episode)] (Thread-Summary)"


def test_a_long_name_is_cut() -> None:
    assert len(line(memory(1, "x", speaker="n" * 500), 100)) < 100


def test_who_stated_a_fact_is_named_once() -> None:
    stated = line(memory(1, "ann: I sail on Sundays", kind=Kind.FACT, speaker="ann"), 100)
    assert stated.count("ann") == 1
    assert stated.endswith(": I sail on Sundays")
    assert line(memory(1, "anna: I sail", kind=Kind.FACT, speaker="ann"), 100).endswith(": anna: I sail")


def test_words_know_their_places() -> None:
    text = "Zoë's 2 CAFÉS"
    assert spelled(text) == ["Zoë", "s", "2", "CAFÉS"]
    assert [place(text, n) for n in range(4)] == [0, 4, 6, 8]
    assert list(map(root, spelled(text))) == ["zoe", "s", "2", "cafe"]


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Good morning!", set()),
        ("Morning everyone", set()),
        ("hey, thanks a lot, see you tomorrow", set()),
        ("What's up? You're welcome!", set()),
        ("what do I do in the morning when it rains", {"morn", "rain"}),
        ("Thanks! When is the dentist's appointment?", {"dentist", "appoint"}),
        ("ok", set()),
        ("42", {"42"}),
        ("погода завтра", {"погода", "завтра"}),
    ],
)
def test_what_a_text_is_about(text: str, stems: set[str]) -> None:
    assert topic(text) == stems


def test_stopwords_are_folded_words() -> None:
    assert all(spelled(word) == [word] == [fold(word)] for word in STOPWORDS)
