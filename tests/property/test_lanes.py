"""Lanes: the same messages have the same lanes, whoever stores them and however often that begins anew."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.commits import IntakeResult, Receive
from keepsaid.domain.message import Inbound, Lane, LaneRules, Origin, ProviderMarks, lane_key, topic_of
from keepsaid.testing.builders import ACCOUNT, AT_ONCE, CHANNEL, arrival, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

NAMES = st.text(alphabet="a:b", min_size=1, max_size=3)
MAYBE = st.one_of(st.none(), NAMES)
IDS = st.sampled_from([None, None, "p1", "p2", "p3"])
TEXTS = st.sampled_from(
    [
        "hello, does the printer work?",
        "Ann: which one?",
        "Bob: the left one",
        "yes",
        "where is the key?",
        "and now?",
        "ok",
    ]
)
RULES = LaneRules(infer=True)


@st.composite
def messages(draw: st.DrawFn) -> Inbound:
    """Something said in one of two rooms, with whatever marks."""
    name = draw(st.sampled_from(["Ann", "Bob", "Cat"]))
    room = draw(st.sampled_from(["room", "room", "room", "den"]))
    marks = ProviderMarks(None, draw(IDS), draw(IDS))
    origin = Origin(CHANNEL, ACCOUNT, room, name.lower(), name, direct=draw(st.sampled_from([False] * 5 + [True])))
    topic = draw(st.sampled_from([None, None, None, "t"]))
    return replace(said(draw(TEXTS), room, marks=marks), origin=origin, topic=topic)


async def heard(store: ContractStore, talk: Sequence[tuple[Inbound, bool]], rules: LaneRules = RULES) -> list[Lane]:
    """The lanes of a talk in which the agent answers after some messages."""
    return [await said_next(store, n, one, rules) for n, one in enumerate(talk, 1)]


async def said_next(store: ContractStore, n: int, one: tuple[Inbound, bool], rules: LaneRules = RULES) -> Lane:
    """The lane of the next message; then the agent may answer what waits there."""
    inbound, answers = one
    received = await store.apply(Receive(arrival(10 * n, inbound, n * 9_000), AT_ONCE, rules))
    if answers:
        road = StoreDriver(store, 10 * n + 1)
        await road.route(received.lane, n * 9_000)
        await road.answer(await road.claim_one(n * 9_000), "the left printer, Bob", n * 9_000)
    return received.lane


async def heard_anew(file: Path, talk: Sequence[tuple[Inbound, bool]]) -> list[Lane]:
    """The same, by a store that is opened again for every message."""
    lanes: list[Lane] = []
    for n, one in enumerate(talk, 1):
        store = await open_operations(file)
        lanes.append(await said_next(store, n, one))
        await store.close()
    return lanes


TALKS = st.lists(st.tuples(messages(), st.sampled_from([False, False, True])), min_size=1, max_size=9)


@settings(max_examples=examples(10), deadline=None)
@given(TALKS)
def test_lanes_are_the_same_in_memory_on_disk_and_after_every_restart(talk: list[tuple[Inbound, bool]]) -> None:
    async def lanes() -> tuple[list[Lane], ...]:
        with tempfile.TemporaryDirectory() as folder:
            memory, disk = InMemoryOperations(), await open_operations(Path(folder) / "one.db")
            kept = await heard(memory, talk), await heard(disk, talk), await heard_anew(Path(folder) / "two.db", talk)
            await disk.close()
            return kept

    in_memory, on_disk, anew = asyncio.run(lanes())
    assert in_memory == on_disk == anew


@settings(max_examples=examples(30), deadline=None)
@given(TALKS, st.booleans())
def test_a_message_is_in_a_lane_of_its_own_conversation_and_topic(talk: list[tuple[Inbound, bool]], join: bool) -> None:
    lanes = asyncio.run(heard(InMemoryOperations(), talk, LaneRules(join, True)))
    for (inbound, _), lane in zip(talk, lanes, strict=True):
        assert lane[:3] == inbound.lane[:3]
        if inbound.topic or (inbound.marks.reply_to and not join):
            assert lane == inbound.lane


@given(NAMES, MAYBE, MAYBE, MAYBE, MAYBE)
def test_two_strands_of_a_conversation_have_two_keys(
    chat: str, topic: str | None, reply_to: str | None, topic_2: str | None, reply_to_2: str | None
) -> None:
    """Of a reply in a topic the topic counts."""
    one, other = (topic, topic or reply_to), (topic_2, topic_2 or reply_to_2)
    assert (lane_key(chat, topic, reply_to) == lane_key(chat, topic_2, reply_to_2)) is (one == other)


@given(NAMES, NAMES, MAYBE, MAYBE)
def test_a_lane_tells_its_topic(channel: str, chat: str, topic: str | None, reply_to: str | None) -> None:
    assert topic_of(_lane(channel, ACCOUNT, chat, topic, reply_to)) == topic


PLACES = st.tuples(NAMES, NAMES, NAMES, MAYBE, MAYBE)


@given(PLACES, PLACES)
def test_lanes_of_two_channels_accounts_or_conversations_are_two(
    one: tuple[str, str, str, str | None, str | None], other: tuple[str, str, str, str | None, str | None]
) -> None:
    """However their names run into one another."""
    here, there = (_lane(*place) for place in (one, other))
    if one[:3] != other[:3]:
        assert here != there
    assert _lane(*one) == here


def _lane(channel: str, account: str, chat: str, topic: str | None, reply_to: str | None) -> Lane:
    marks = ProviderMarks(reply_to=reply_to)
    return replace(said(marks=marks), origin=Origin(channel, account, chat, "ann"), topic=topic).lane


async def test_a_duplicate_never_moves_its_lane() -> None:
    store = InMemoryOperations()
    question = replace(said("does the printer work?", marks=ProviderMarks("x", "p9")), topic="t")
    first = await store.apply(Receive(arrival(1, question), AT_ONCE, RULES))
    again = await store.apply(Receive(arrival(2, question), AT_ONCE, LaneRules(join=False)))
    assert again == first._replace(intake=IntakeResult.DUPLICATE)
