"""Names in texts: capitals are read as names only where they can be nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keepsaid.text.names import NAME_WORDS_MAX, names_in

CERTAIN = {
    "We met in Porto.": ["Porto"],
    "I live in New York City, near Central Park": ["New York City", "Central Park"],
    "yes, Dr. Ann Marsh said so": ["Ann Marsh"],
    "they saw Rio de Janeiro and the Cliffs of Moher": ["Rio de Janeiro", "Cliffs of Moher"],
    "I asked Anna’s Bob and O'Brien": ["Anna", "Bob", "O'Brien"],
    "she works for NASA": ["NASA"],
    "мы были в Москве вчера": ["Москве"],
    "on Monday in March I'm off, I'll call": [],
    "THIS IS ALL LOUD": [],
    "meet me at B52": [],
    "nothing here": [],
    "Wow, Thanks!": [],
    "from Fridays on": [],
}


@pytest.mark.parametrize("text", CERTAIN)
def test_capitals_within_a_sentence_are_names(text: str) -> None:
    assert [one.text for one in names_in(text) if one.certain] == CERTAIN[text]


def test_what_a_sentence_begins_with_is_uncertain() -> None:
    """Also behind a word that may belong to it or not; another place in the text makes it certain."""
    assert [tuple(one) for one in names_in("Porto is old")] == [("Porto", False)]
    assert [tuple(one) for one in names_in("Congrats Caroline!")] == [("Congrats Caroline", False), ("Caroline", False)]
    assert [tuple(one) for one in names_in("Porto is old. I like Porto.")] == [("Porto", True)]


def test_german_nouns_are_no_names_by_themselves() -> None:
    assert {one.certain for one in names_in("Wir haben das alte Haus in der Nähe von Hamburg gesehen")} == {False}


@given(st.text())
def test_any_text_has_short_names_that_stand_in_it(text: str) -> None:
    for name in names_in(text):
        assert 0 < len(name.text.split()) <= NAME_WORDS_MAX
        assert all(word in text for word in name.text.split())
