"""The rules that find explicit statements: what they take, and what they leave alone."""

from __future__ import annotations

import pytest

from keepsaid.domain.memory import Kind
from keepsaid.domain.statements import extract_statements


@pytest.mark.parametrize(
    ("said", "kind", "attribute", "value"),
    [
        ("I live in Oslo.", Kind.FACT, "lives in", "Oslo"),
        ("By the way, I now live in New York City!", Kind.FACT, "lives in", "New York City"),
        ("I live in Bosnia and Herzegovina", Kind.FACT, "lives in", "Bosnia and Herzegovina"),
        ("i live in Oslo and work from home", Kind.FACT, "lives in", "Oslo"),
        ("I just moved to Porto, but I miss Oslo.", Kind.FACT, "lives in", "Porto"),
        ("I work at Acme Corp", Kind.FACT, "works at", "Acme Corp"),
        ("Call me Bo", Kind.IDENTITY, "name", "Bo"),
        ("My name is Ann Olsen.", Kind.IDENTITY, "name", "Ann Olsen"),
        ("My favourite colour is green", Kind.PREFERENCE, "favourite colour", "green"),
        ("also, my sister's birthday is 12 May", Kind.FACT, "sister's birthday", "12 May"),
        ("my shoe size is 43 because I have big feet", Kind.FACT, "shoe size", "43"),
        ("Please remember that my dentist is Dr. Weber", Kind.FACT, "dentist", "Dr. Weber"),
        ("Remember: I live in Kyiv", Kind.FACT, "lives in", "Kyiv"),
        ("Remember that the boiler was serviced in March.", Kind.FACT, "", ""),
        ("don’t forget that Bo is allergic to nuts", Kind.FACT, "", ""),
        ("todo: call the plumber", Kind.TODO, "", ""),
        ("TO-DO: buy milk.", Kind.TODO, "", ""),
        ("Remember to water the plants", Kind.TODO, "", ""),
    ],
)
def test_it_takes(said: str, kind: Kind, attribute: str, value: str) -> None:
    [told] = extract_statements(said)
    assert (told.kind, told.attribute, told.value) == (kind, attribute, value)


@pytest.mark.parametrize(
    "said",
    [
        "Do you remember that I live in Oslo?",
        "Remember when we went to Rome?",
        "I live in Oslo?",
        "If I live in Oslo I pay more",
        "She said I live in Oslo",
        '"I live in Oslo", she said',
        "> my name is Eve",
        "Your name is Eve",
        "My question is how that works",
        "My point is that it rains",
        "My car is not here",
        "My plan is to leave",
        "my idea is good",
        "Is my name Ann?",
        "the todo list is long",
        "I used to live in Oslo",
        "He works at Acme",
        "",
        "remember",
    ],
)
def test_it_leaves_alone(said: str) -> None:
    assert extract_statements(said) == ()


def test_each_thing_once_in_order_sentence_by_sentence() -> None:
    told = extract_statements("Hi there! My name is Ann. I live in Oslo.\nMy name is Ann. todo: call Bo. How are you?")
    assert [(one.kind, one.value or one.text) for one in told] == [
        (Kind.IDENTITY, "Ann"),
        (Kind.FACT, "Oslo"),
        (Kind.TODO, "call Bo"),
    ]


@pytest.mark.parametrize(
    ("said", "stated"),
    [
        ("My name is Ann and I moved to Lisbon.", [("name", "Ann"), ("lives in", "Lisbon")]),
        ("my name is ann and i live in oslo", [("name", "ann"), ("lives in", "oslo")]),
        (
            "My name is Ann, I live in Oslo, and I work at Acme",
            [("name", "Ann"), ("lives in", "Oslo"), ("works at", "Acme")],
        ),
        ("I live in Oslo but I work at Acme.", [("lives in", "Oslo"), ("works at", "Acme")]),
        ("My name is Ann and my wife and I live in Oslo.", [("name", "Ann"), ("lives in", "Oslo")]),
        (
            "My name is Ann and I live in Oslo with my husband and my son is Tim",
            [("name", "Ann"), ("lives in", "Oslo"), ("son", "Tim")],
        ),
        ("Remember that my name is Ann and I live in Oslo.", [("name", "Ann"), ("lives in", "Oslo")]),
        ("My wife and I live in Oslo", [("lives in", "Oslo")]),
        ("My name is Ann and my dog is sick", [("name", "Ann")]),
        ("My name is Ann and I wish I lived in Oslo", [("name", "Ann")]),
        ("I live in Oslo and I moved to Bergen", [("lives in", "Oslo")]),
        ("If my name is Ann and I live in Oslo and my dog is Rex, call me", []),
        ("Bob says my name is Ann and I live in Oslo", []),
        ("My name is Ann and I live in Oslo, right?", []),
    ],
)
def test_clauses_state_facts_of_their_own(said: str, stated: list[tuple[str, str]]) -> None:
    """Where the first of them states one: a condition or a report rules all that follows it."""
    assert [(one.attribute, one.value) for one in extract_statements(said)] == stated


def test_each_clause_has_its_own_words_so_that_each_fact_can_change_by_itself() -> None:
    whole = "My name is Ann and I love the sea, but my favourite drink is tea, and I live in Oslo."
    clauses = ["My name is Ann and I love the sea", "My favourite drink is tea", "I live in Oslo"]
    assert [one.text for one in extract_statements(whole)] == clauses


def test_a_statement_says_who_made_it_and_where() -> None:
    [told] = extract_statements("My dentist is Dr. Weber")
    made = told.by("Ann", 7)
    assert (made.text, made.subject, made.attribute, made.value) == (
        "Ann: My dentist is Dr. Weber",
        "Ann",
        "dentist",
        "Dr. Weber",
    )
    assert (made.records, made.confidence, made.importance) == ((7,), 0.9, 0.6)


def test_a_long_message_is_read_in_bounded_time() -> None:
    extract_statements("my " * 50_000)
    extract_statements("my a b c d is " * 20_000)
    assert extract_statements("x " * 15_000 + "\nI live in Oslo") == (), (
        "what stands behind the first 20,000 characters is left"
    )
