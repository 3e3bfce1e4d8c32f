from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.memory import conversation_scope, lane_scope, person_of, person_scope
from keepsaid.domain.message import Lane, Origin, Trust
from keepsaid.text.normal import joined

PARTS = st.text(alphabet="a%:|25C3A7", max_size=4)
FOUR = st.tuples(PARTS, PARTS, PARTS, PARTS)


@given(one=FOUR, other=FOUR)
def test_two_places_have_two_scopes(one: tuple[str, str, str, str], other: tuple[str, str, str, str]) -> None:
    here, there = Lane(*one), Lane(*other)
    assert (lane_scope(here) == lane_scope(there)) is (here == there)
    assert (conversation_scope(here) == conversation_scope(there)) is (here[:3] == there[:3])


@given(one=st.tuples(PARTS, PARTS, PARTS), other=st.tuples(PARTS, PARTS, PARTS))
def test_two_people_have_two_names(one: tuple[str, str, str], other: tuple[str, str, str]) -> None:
    (channel, account, sender), (channel_2, account_2, sender_2) = one, other
    first = person_of(Origin(channel, account, "room", sender))
    second = person_of(Origin(channel_2, account_2, "room", sender_2))
    assert (person_scope(first) == person_scope(second)) is (one == other)
    assert first != person_of(Origin("terminal", "default", "room", "me", trust=Trust.OWNER))


@given(separator=st.sampled_from(":|"), one=FOUR, other=FOUR)
def test_other_parts_make_another_name(
    separator: str, one: tuple[str, str, str, str], other: tuple[str, str, str, str]
) -> None:
    assert (joined(separator, *one) == joined(separator, *other)) is (one == other)


def test_ordinary_names_stay_readable() -> None:
    lane = Lane("github", "hooks", "github:acme/api#7", "root:github:acme/api#7")
    assert conversation_scope(lane) == "conversation:github:hooks:github:acme/api#7"
    assert person_of(Origin("http", "default", "room", "eve")) == "http:default:eve"
    room, same = Lane("http", "default:room", "1", ""), Lane("http", "default", "room:1", "")
    assert conversation_scope(room) == "conversation:http:default%3Aroom:1" != conversation_scope(same)
    assert joined("|", "a|b", "100%", "c|d") == "a%7Cb|100%25|c|d"
