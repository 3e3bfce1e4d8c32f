"""Answers are read whole or not at all, and the same text always reads the same."""

from __future__ import annotations

from datetime import UTC, datetime
from time import thread_time
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.slot import TEXT_CHARS_MAX, DatedText, Expected, Question, read_answer

SATURDAY = int(datetime(2026, 11, 21, 19, 0, tzinfo=UTC).timestamp() * 1000)
BERLIN = ZoneInfo("Europe/Berlin")
COLOURS = ("red", "green", "dark red")


def reads(expected: Expected, text: str, options: tuple[str, ...] = ()) -> str | None:
    """How a text said on a Saturday evening in Berlin reads."""
    return read_answer(Question("?", expected, options), DatedText(text, SATURDAY, BERLIN))


@pytest.mark.parametrize(
    ("value", "texts"),
    [
        ("true", "yes|Yes please!|OK.|sure, go ahead|👍|Ja, gerne|да|好的|sí|oui|はい"),
        ("false", "no|No thanks|nope|Nein, danke!|нет|不|non|👎"),
        (None, "no idea|no problem|yes no|yes and what about Monday?|maybe|never mind|hello||/reset"),
    ],
)
def test_yes_and_no(value: str | None, texts: str) -> None:
    assert {text: reads(Expected.BOOLEAN, text) for text in texts.split("|")} == dict.fromkeys(texts.split("|"), value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("42", "42"),
        ("about 3", "3"),
        ("3 people", "3"),
        ("$20", "20"),
        ("-4", "-4"),
        ("1,200", "1200"),
        ("12,5", "12.5"),
        ("1.200,50", "1200.50"),
        ("1 000 000", "1000000"),
        ("seven!", "7"),
        ("zwei", "2"),
        ("zwölfeinhalb" * 3, None),
        ("in 5 minutes", None),
        ("call me at 5", None),
        ("1.2.3", None),
        ("hello", None),
        ("5?", None),
    ],
)
def test_numbers(text: str, value: str | None) -> None:
    assert reads(Expected.NUMBER, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2026-12-01", "2026-12-01"),
        ("2026-12-01 17:00", "2026-12-01T17:00+01:00"),
        ("2026-12-01T17:00Z", "2026-12-01T17:00+00:00"),
        ("tomorrow", "2026-11-22"),
        ("Tomorrow at 5", "2026-11-22T17:00+01:00"),
        ("morgen um 15 Uhr", "2026-11-22T15:00+01:00"),
        ("demain à 14h30", "2026-11-22T14:30+01:00"),
        ("5pm", "2026-11-22T17:00+01:00"),
        ("at 21:30", "2026-11-21T21:30+01:00"),
        ("friday", "2026-11-27"),
        ("Saturday", "2026-11-28"),
        ("next monday at 9am", "2026-11-23T09:00+01:00"),
        ("noon", "2026-11-22T12:00+01:00"),
        ("in 2 hours", "2026-11-21T22:00+01:00"),
        ("in 3 days", "2026-11-24"),
        ("24.11.", "2026-11-24"),
        ("1.2.", "2027-02-01"),
        ("24/11/2026", "2026-11-24"),
        ("dec 24th", "2026-12-24"),
        ("December 24, 2027 at 8 pm", "2027-12-24T20:00+01:00"),
        ("5/6", None),
        ("31.02.", None),
        ("30 Feb", None),
        ("5", None),
        ("25:00", None),
        ("what about friday?", None),
        ("friday is when I fly", None),
        ("hello", None),
    ],
)
def test_days_and_times(text: str, value: str | None) -> None:
    assert reads(Expected.DATE_TIME, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("52.52, 13.40", "52.52,13.4"),
        ("geo:52.5,13.4", "52.5,13.4"),
        ("13.40E 52.52S", "-52.52,13.4"),
        ("in Berlin", "Berlin"),
        ("I'm in new york.", "new york"),
        ("near Frankfurt am Main", "Frankfurt am Main"),
        ("San Francisco, CA", "San Francisco, CA"),
        ("東京", "東京"),
        ("200, 300", None),
        ("in a minute", None),
        ("in what sense?", None),
        ("Thanks", None),
        ("Yes", None),
        ("let me think", None),
    ],
)
def test_places(text: str, value: str | None) -> None:
    assert reads(Expected.LOCATION, text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("red", "red"),
        ("Dark Red!", "dark red"),
        ("the green one", "green"),
        ("2", "green"),
        ("option 3", "dark red"),
        ("the first", "red"),
        ("0", None),
        ("4", None),
        ("green or red", None),
        ("not red", None),
        ("is red nice?", None),
        ("redder", None),
    ],
)
def test_options(text: str, value: str | None) -> None:
    assert reads(Expected.SELECTION, text, COLOURS) == value


def test_an_option_that_is_a_number_is_meant_by_its_text() -> None:
    assert reads(Expected.SELECTION, "2", ("4", "2")) == "2"


def test_any_words_are_a_text_but_a_question_a_command_or_a_book() -> None:
    assert reads(Expected.TEXT, " my name is Ann ") == "my name is Ann"
    refused = ("what is the weather?", "/reset", "  ", "x" * (TEXT_CHARS_MAX + 1))
    assert [reads(Expected.TEXT, text) for text in refused] == [None] * 4


@given(text=st.text(max_size=60), expected=st.sampled_from(Expected))
def test_every_text_reads_the_same_twice_and_breaks_nothing(text: str, expected: Expected) -> None:
    assert reads(expected, text, COLOURS) == reads(expected, text, COLOURS)


@given(at=st.integers(0, 4_102_444_800_000), zone=st.sampled_from(["UTC", "Asia/Kathmandu", "America/New_York"]))
def test_tomorrow_is_the_day_after_the_one_it_is_there(at: int, zone: str) -> None:
    heard = DatedText("tomorrow", at, ZoneInfo(zone))
    value = read_answer(Question("?", Expected.DATE_TIME), heard)
    assert value is not None
    assert (datetime.fromisoformat(value).date() - heard.now.date()).days == 1


@pytest.mark.parametrize("expected", [Expected.LOCATION, Expected.NUMBER, Expected.DATE_TIME])
def test_an_answer_of_two_thousand_spaces_is_read_in_little_time(expected: Expected) -> None:
    def took(spaces: int) -> float:
        began = thread_time()
        for text in (f"1{' ' * spaces}x", f"52 N{' ' * spaces}x", f"about{' ' * spaces}5{' ' * spaces}kg, x"):
            read_answer(Question("?", expected), DatedText(text, 0))
        return thread_time() - began

    assert min(took(900) for _ in range(3)) < 6 * min(took(225) for _ in range(3)) + 0.01
