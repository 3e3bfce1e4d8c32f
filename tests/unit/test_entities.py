"""Whom and what a memory names: by its slot, by its text, and as the extracting model says."""

from __future__ import annotations

import json

import pytest

from keepsaid.domain.entities import EntityKind, Naming, entities_in
from keepsaid.domain.learning import ABOUT_MAX, Statement, decoded, encoded
from keepsaid.domain.memory import About, Kind

PERSON = "chat:bot:ann"


def keys(**of: str) -> list[str]:
    return [one.key for one in entities_in(Naming(**{"text": "", **of}))]


def test_subject_and_value_have_the_kinds_that_the_attribute_tells() -> None:
    assert keys(subject="Ann", subject_id=PERSON, attribute="lives in", value="Porto") == [
        f"person:{PERSON}",
        "place:porto",
    ]
    assert keys(subject="Bob", attribute="employer", value="the Acme Inn") == [
        "person:bob",
        "organisation:acme inn",
    ]
    assert keys(subject="the boiler", attribute="last service", value="2026-05-01") == ["thing:boiler"]
    assert keys(subject="Ann", subject_id=PERSON, attribute="name", value="Annie") == [f"person:{PERSON}"] * 2
    assert keys(subject="Ann", attribute="likes", value="tea in the garden") == ["person:ann"]
    assert keys(subject="a very long subject of five words") == []


def test_a_name_in_the_text_is_a_thing_that_weighs_less() -> None:
    place, thing = entities_in(Naming("I moved to Porto with Bosco", "", "", "lives in", "Porto"))
    assert (place.kind, place.weight) == (EntityKind.PLACE, 1.0)
    assert (thing.key, thing.weight) == ("thing:bosco", 0.5)


def statement(*about: About) -> Statement:
    return Statement(Kind.FACT, "Ann lives in Porto", records=(1,), about=about)


def test_what_a_statement_is_about_comes_back_from_json() -> None:
    """Also of a finding that was kept before there was such a field."""
    one = statement(About("person", "Ann"), About("place", "Porto"))
    assert decoded(encoded([one])) == (one,)
    [old] = json.loads(encoded([one]))
    del old["about"]
    assert decoded(json.dumps([old])) == (statement(),)
    several: tuple[object, ...] = ("Ann", [["person"]], [{}])
    for wrong in several:
        with pytest.raises(ValueError, match="about"):
            decoded(json.dumps([old | {"about": wrong}]))


@pytest.mark.parametrize(
    "about", [[About("animal", "Bosco")], [About("person", "")], [About("person", "A")] * (ABOUT_MAX + 1)]
)
def test_what_is_no_entity_is_refused(about: list[About]) -> None:
    with pytest.raises(ValueError, match="names at most"):
        statement(*about)
