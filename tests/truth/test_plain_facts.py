"""Rules learn what people plainly state of themselves, in twelve languages, and no idiom: measured on lines of talk."""

from __future__ import annotations

from pathlib import Path

import pytest

from keepsaid.domain.attribute_values import is_of_kind
from keepsaid.domain.statements import extract_statements

_HERE = Path(__file__).parent


def _lines(name: str) -> list[str]:
    return [line for line in (_HERE / name).read_text().splitlines() if line.strip()]


def test_talk_states_no_fact() -> None:
    wrong = [(line, told) for line in _lines("talk.txt") if (told := extract_statements(line))]
    assert len(_lines("talk.txt")) >= 500
    assert len(wrong) <= 2, wrong


def test_plain_facts_are_found() -> None:
    """At least nineteen of twenty, and none of them with another value."""
    missed, other = [], []
    for line in _lines("facts.txt"):
        said, attribute, value = (part.strip() for part in line.split("|"))
        found = [(one.attribute, one.value) for one in extract_statements(said)]
        if attribute == "-":
            assert not found, line
        elif not found:
            missed.append(line)
        elif found != [(attribute, value)]:
            other.append((line, found))
    assert len(missed) <= len(_lines("facts.txt")) // 20, missed
    assert len(other) <= 1, other


@pytest.mark.parametrize(
    ("attribute", "value", "fits"),
    [
        ("phone", "dead", False),
        ("phone number", "+351 912 345 678", True),
        ("email", "the usual one", False),
        ("e-mail address", "a@b.org", True),
        ("birthday", "coming up", False),
        ("birthday", "May 4", True),
        ("wife", "40", False),
        ("shoe size", "large", False),
        ("car", "red", True),
    ],
)
def test_a_value_is_of_the_kind_of_its_attribute(attribute: str, value: str, *, fits: bool) -> None:
    assert is_of_kind(attribute, value) is fits
