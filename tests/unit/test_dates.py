"""Dates in twelve languages read right or not at all, and sentences that are not dates read as None."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from keepsaid.text.date_words import LANGUAGES, date_tables
from keepsaid.text.dates import read_moment

WEDNESDAY = datetime(2026, 3, 4, 10, tzinfo=ZoneInfo("Europe/Berlin"))
FOLDER = Path(__file__).parent
RIGHT_MIN = 290
SENTENCES_MIN = 10


def lines(name: str) -> list[list[str]]:
    """The lines of a file, each divided at its tabs."""
    return [line.split("\t") for line in (FOLDER / name).read_text("utf-8").splitlines()]


def read(text: str, now: datetime = WEDNESDAY) -> str | None:
    """The moment without its offset."""
    said = read_moment(text, now)
    return said[:16] if said else None


def test_dates_of_twelve_languages_are_read_right_or_not_at_all() -> None:
    answers = lines("dates.tsv")
    assert {language for language, _, _ in answers} == set(LANGUAGES)
    missed = [(language, text, expected, read(text)) for language, text, expected in answers if read(text) != expected]
    assert [one for one in missed if one[3] is not None] == []
    assert len(answers) - len(missed) >= RIGHT_MIN, missed


def test_sentences_that_are_not_dates_are_not_read() -> None:
    sentences = lines("not_dates.tsv")
    counts = [sum(language == one for one, _ in sentences) for language in LANGUAGES]
    assert min(counts) >= SENTENCES_MIN
    assert [(text, read(text)) for _, text in sentences if read(text) is not None] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_table_names_every_weekday_month_and_hour(language: str) -> None:
    [table] = [one for one in date_tables() if one.language == language]
    tokens = {token for found in table.phrases.values() for _, named in found for token in named}
    values = {kind: {token.number for token in tokens if token.kind == kind} for kind in "WNOMDi"}
    assert values["W"] == set(range(7))
    assert values["D"] >= {0, 1, 2}
    assert values["N"] | values["O"] | values["i"] >= set(range(1, 13))
    assert values["M"] == set(range(1, 13)) or language in {"zh", "ja", "ko"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("next Friday", None),
        ("next Tuesday", "2026-03-10"),
        ("Friday the 13th of March", "2026-03-13"),
        ("Friday 14 March", None),
        ("today at 9", None),
        ("tonight at midnight", "2026-03-05T00:00"),
        ("Friday at midnight", None),
        ("at ten to five", "2026-03-04T16:50"),
        ("9 to 5", None),
        ("in 1 hour 30 minutes", "2026-03-04T11:30"),
        ("on the twenty-first of May", "2026-05-21"),
        ("vingt et un juin", "2026-06-21"),
        ("Freitagabend um 8", "2026-03-06T20:00"),
        ("manana a las 5 de la tarde", "2026-03-05T17:00"),
        ("5 in the morning and evening", None),
        ("в час дня", "2026-03-04T13:00"),
        ("삼월 이십일일", "2026-03-21"),
        ("１５時", "2026-03-04T15:00"),
        ("05/06/2026", None),
        ("mañana friday", None),
        ("in 9999 years", None),
        ("Mittwoch in einer Woche", None),
        ("再来週の月曜日", "2026-03-16"),
        ("tonight at 8 in the evening", "2026-03-04T20:00"),
        ("31 January" * 20, None),
    ],
)
def test_answers_with_a_trap_are_read_right_or_not_at_all(text: str, value: str | None) -> None:
    assert read(text) == value


def test_hours_from_now_are_counted_over_a_change_of_the_clock() -> None:
    before = datetime(2026, 3, 29, 1, 30, tzinfo=ZoneInfo("Europe/Berlin"))
    assert read_moment("in 2 hours", before) == "2026-03-29T04:30+02:00"


def test_a_month_later_is_its_last_day_where_it_is_shorter() -> None:
    assert read("in a month", datetime(2026, 1, 31, 10, tzinfo=WEDNESDAY.tzinfo)) == "2026-02-28"
