from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from keepsaid.domain.memory import GLOBAL, Listener, conversation_scope, lane_scope, person_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.visibility import Parent, joined_scope, least, shares, within
from keepsaid.text.normal import joined, parted

LANES = [
    Lane("chat", "default", conversation, key)
    for conversation, key in product(("dm", "dm:2", "room", "100%"), ("root", "topic:1"))
]
PEOPLE = ("owner", "chat:default:ann")
CHATS = {conversation_scope(LANES[0]): person_scope("owner"), conversation_scope(LANES[2]): person_scope(PEOPLE[1])}
SCOPES = [GLOBAL, *map(person_scope, PEOPLE), *map(conversation_scope, LANES[::2]), *map(lane_scope, LANES)]
IN_A_DIRECT_CHAT = {LANES[0]: "owner", LANES[1]: "owner", LANES[2]: PEOPLE[1], LANES[3]: PEOPLE[1]}

# everybody there is: in a direct chat only the one person whose chat it is, in a room anybody, and never directly
EVERYBODY = [
    *(Listener(lane, person, direct=True) for lane, person in IN_A_DIRECT_CHAT.items()),
    *(Listener(lane, person) for lane in LANES[4:] for person in PEOPLE),
    *(Listener(None, person, direct=True) for person in PEOPLE),
]

scopes = st.lists(st.sampled_from(SCOPES), max_size=6)
parents = st.lists(st.builds(Parent, st.sampled_from(SCOPES), st.sampled_from(list(Trust))), max_size=6)


def hearers(scope: str) -> set[int]:
    return {n for n, one in enumerate(EVERYBODY) if scope in one.scopes}


@given(narrow=st.sampled_from(SCOPES), wide=st.sampled_from(SCOPES))
def test_all_who_hear_what_lies_within_hear_what_it_lies_in(narrow: str, wide: str) -> None:
    if within(narrow, wide, CHATS):
        assert hearers(narrow) <= hearers(wide)


@given(parents=parents)
def test_who_hears_a_child_hears_all_that_it_may_be_made_from(parents: list[Parent]) -> None:
    for share in shares(parents, CHATS):
        assert share.parents
        for n in share.parents:
            assert hearers(share.scope) <= hearers(parents[n].scope)
        assert share.trust is least(parents[n].trust for n in share.parents)


@given(parents=parents)
def test_every_parent_is_in_a_share_and_every_share_has_the_scope_of_a_parent(parents: list[Parent]) -> None:
    made = shares(parents, CHATS)
    assert {n for share in made for n in share.parents} == set(range(len(parents)))
    assert {share.scope for share in made} <= {parent.scope for parent in parents}


@given(scopes=scopes)
def test_the_narrowest_depends_on_neither_order_nor_repetition(scopes: list[str]) -> None:
    found = joined_scope(scopes, CHATS)
    assert joined_scope([*reversed(scopes), *scopes], CHATS) == found
    assert joined_scope(found, CHATS) == found
    assert bool(found) is bool(scopes)
    assert not any(within(one, other, CHATS) for one in found for other in found if one != other)


@given(trusts=st.lists(st.sampled_from(list(Trust)), min_size=1), more=st.sampled_from(list(Trust)))
def test_no_parent_raises_a_trust(trusts: list[Trust], more: Trust) -> None:
    assert least([*trusts, Trust.EXTERNAL]) is Trust.EXTERNAL
    assert least([*trusts, Trust.OWNER]) is least(trusts)
    assert least([*trusts, more]) in (least(trusts), more)
    assert least([]) is Trust.EXTERNAL


def test_a_room_does_not_lie_within_a_person_who_speaks_in_it() -> None:
    owner, room, chat = person_scope("owner"), conversation_scope(LANES[4]), conversation_scope(LANES[0])
    assert joined_scope([owner, room]) == joined_scope([owner, room], CHATS) == (room, owner)
    assert joined_scope([owner, chat], CHATS) == (chat,)
    assert joined_scope([owner, chat]) == (chat, owner)
    assert joined_scope([GLOBAL, owner, lane_scope(LANES[0]), chat], CHATS) == (lane_scope(LANES[0]),)
    made = shares([Parent(owner, Trust.OWNER), Parent(room, Trust.KNOWN), Parent(GLOBAL, Trust.OWNER)], CHATS)
    assert [(one.scope, one.trust, one.parents) for one in made] == [
        (room, Trust.KNOWN, (1, 2)),
        (owner, Trust.OWNER, (0, 2)),
    ]


PARTS = st.lists(st.text(alphabet="a%:253A", max_size=4), min_size=1, max_size=5)


@given(parts=PARTS)
def test_what_was_joined_is_parted_again(parts: list[str]) -> None:
    assert parted(":", joined(":", *parts), len(parts)) == tuple(parts)
