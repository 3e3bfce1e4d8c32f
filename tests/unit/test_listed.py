"""A list of search hits: matches before messages that stand next to a match, current memories before past ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from keepsaid.domain.memory import Hit, Kind, Memory, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.services.memories import listed

_NOW = 1_780_000_000_000


def told(*texts: str, past: tuple[str, ...] = ()) -> tuple[Hit, ...]:
    """Hits in this order, found by their words or those of their neighbours; some are past."""
    return tuple(
        Hit(
            Memory(
                number,
                NewMemory(f"m{number}", Kind.FACT, text, "global", Trust.OWNER, said_at=1),
                "superseded" if text in past else "active",
                1,
                valid_to=_NOW - 1 if text in past else None,
            ),
            "text",
            number,
            1.0 / number,
        )
        for number, text in enumerate(texts, start=1)
    )


def texts(query: str, found: tuple[Hit, ...]) -> list[str]:
    """The texts in the order of the list."""
    return [hit.memory.text for hit in listed(query, found, _NOW)]


def test_a_match_comes_before_what_stands_next_to_a_match() -> None:
    found = told("my dog is called Rex", "hello again", "Ann's home is Porto")
    assert texts("where does Ann live", found) == ["Ann's home is Porto", "my dog is called Rex", "hello again"]


def test_what_only_stands_next_to_a_match_is_marked() -> None:
    found = told("my dog is called Rex", "Ann's home is Porto")
    assert [hit.neighbour for hit in listed("where does Ann live", found, _NOW)] == [False, True]


def test_current_memories_come_before_past_ones_in_both_groups() -> None:
    past = "the boiler is serviced in May", "good morning"
    found = told(past[1], past[0], "hello again", "the boiler is serviced in June", past=past)
    assert texts("when is the boiler serviced", found) == [
        "the boiler is serviced in June",
        "the boiler is serviced in May",
        "hello again",
        "good morning",
    ]


@pytest.mark.parametrize(("query", "text"), [("boilers", "the boiler hums"), ("東京の天気", "明日の東京")])
def test_another_form_of_a_word_matches(query: str, text: str) -> None:
    assert texts(query, told("something else", text)) == [text, "something else"]


@pytest.mark.parametrize("query", ["who", "what was said last Monday?", ""])
def test_the_order_of_recall_stays_where_words_do_not_decide(query: str) -> None:
    assert texts(query, told("something else", "a Monday in May")) == ["something else", "a Monday in May"]


def test_what_was_found_by_its_meaning_is_a_match() -> None:
    near, apart = told("she moved to Porto", "hello again")
    assert texts("where does Ann live", (apart, replace(near, leg="vector"))) == ["she moved to Porto", "hello again"]
