"""A question about one thing of somebody is answered by the fact that fills the slot, however often it was told."""

from __future__ import annotations

import pytest

from keepsaid.domain.memory import Kind, Memory, NewMemory
from keepsaid.domain.message import Trust
from keepsaid.memory.fact_questions import fact_question
from keepsaid.testing.builders import lane_of


def fact(number: int, attribute: str, value: str, subject: str = "Ann", person: str = "owner") -> Memory:
    new = NewMemory(
        key=f"finding:{number}:0",
        kind=Kind.FACT,
        text=f"{subject}: {value}",
        scope="person:owner",
        trust=Trust.OWNER,
        lane=lane_of(),
        subject=subject,
        subject_id=person,
        attribute=attribute,
        value=value,
    )
    return Memory(number, new, "active", recorded_at=1_000)


_KNOWN = (
    fact(1, "lives in", "Porto"),
    fact(2, "works at", "Acme"),
    fact(3, "boss", "Olga"),
    fact(4, "name", "Ann"),
    fact(5, "dentist", "Dr. Weber"),
    fact(6, "shoe size", "42"),
    fact(7, "lives in", "Oslo", "Bob", "http:default:bob"),
    fact(8, "lives_in", "Gent", "Cora Diaz", ""),
    fact(9, "dog", "Rex"),
)


@pytest.mark.parametrize(
    ("said", "answers"),
    [
        ("Where do I live now?", {1}),
        ("what is my city?", {1}),
        ("In welcher Stadt ist my home?", {1}),
        ("Where do I work?", {2}),
        ("who is my boss?", {3}),
        ("What is my name?", {4}),
        ("What is the name of my dentist?", {5}),
        ("remind me of my shoe size", {6}),
        ("Where does Bob live?", {7}),
        ("Where does Cora Diaz live?", {8}),
        ("Where does Cora live?", set()),
        ("What is my dog called?", {9}),
        ("Where do you live?", set()),
        ("I like my boss", set()),
        ("How are you?", set()),
        ("Shoe size?", set()),
        ("x" * 2_000 + " where do I live?", set()),
    ],
)
def test_a_question_is_answered_by_what_fills_its_slot(said: str, answers: set[int]) -> None:
    assert fact_question(said, "owner").answers(_KNOWN) == answers
