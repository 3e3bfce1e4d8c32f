from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.property.memory_stage import Stage, stage

from keepsaid.domain.memory import (
    GLOBAL,
    Kind,
    Listener,
    NewMemory,
    conversation_scope,
    episode_scope,
    lane_scope,
    person_of,
    person_scope,
)
from keepsaid.domain.message import Lane, Origin, Trust
from keepsaid_testkit.contracts.memories import by_words, keys

LANES = [
    Lane(channel, "default", conversation, f"{strand}:{conversation}")
    for channel, conversation, strand in product(("chat", "hook"), ("a", "b"), ("root", "topic"))
]
PEOPLE = ("owner", "chat:default:eve", "")
SCOPES = [
    GLOBAL,
    *(person_scope(person) for person in PEOPLE if person),
    *(conversation_scope(lane) for lane in LANES[::2]),
    *(lane_scope(lane) for lane in LANES),
]
BOUND_TO_LANE = (Kind.EPISODE, Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE)
KINDS = (*BOUND_TO_LANE, Kind.FACT, Kind.BULLETIN)
EVERYTHING = tuple(
    NewMemory(f"{n}", kind, f"cat {kind}", scope, trust, lane)
    for n, (kind, scope, trust, lane) in enumerate(product(KINDS, SCOPES, Trust, (None, *LANES)))
)

listeners = st.builds(
    Listener,
    st.none() | st.sampled_from(LANES) | st.just(Lane("chat", "default", "elsewhere", "root:elsewhere")),
    st.sampled_from(PEOPLE),
    direct=st.booleans(),
    everything=st.integers(0, 9).map(lambda n: n == 0),
    cross=st.booleans(),
    chats=st.booleans(),
)


def hears(listener: Listener, memory: NewMemory) -> bool:
    """The rule of design.md 4.3 in plain Python."""
    if listener.everything:
        return True
    same_lane = memory.lane is not None and memory.lane == listener.lane
    if memory.scope not in listener.scopes:
        return False
    if memory.trust is Trust.EXTERNAL and not same_lane:
        return False
    own_chats = listener.chats and memory.scope.startswith("person:")
    return memory.kind not in BOUND_TO_LANE or same_lane or listener.cross or own_chats


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("scopes")) as scene:
        scene.keep(*EVERYTHING)
        yield scene


@given(listener=listeners)
def test_every_read_hears_what_the_rule_says(scene: Stage, listener: Listener) -> None:
    expected = sorted(memory.key for memory in EVERYTHING if hears(listener, memory))
    assert sorted(keys(scene.run(scene.store.find(listener, (), len(EVERYTHING))))) == expected
    found = [memory.key for memory in EVERYTHING if memory.key in expected and memory.kind is not Kind.BULLETIN]
    assert sorted(keys(scene.run(by_words(scene.store, listener, "cat", len(EVERYTHING))))) == sorted(found)


@given(listener=listeners, number=st.integers(0, len(EVERYTHING) - 1))
def test_getting_one_hears_what_the_rule_says(scene: Stage, listener: Listener, number: int) -> None:
    found = scene.run(scene.store.get(listener, number + 1))
    assert (found is not None) == hears(listener, EVERYTHING[number])
    assert found is None or found.new == EVERYTHING[number]


@given(listener=listeners, kind=st.sampled_from(KINDS), limit=st.integers(0, 20))
def test_the_limit_counts_only_what_is_heard(scene: Stage, listener: Listener, kind: Kind, limit: int) -> None:
    heard = sum(hears(listener, memory) for memory in EVERYTHING if memory.kind is kind)
    found = scene.run(scene.store.find(listener, (kind,), limit))
    assert len(found) == min(limit, heard)
    assert all(memory.new.kind is kind for memory in found)


def said(key: str, origin: Origin, lane: Lane) -> NewMemory:
    return NewMemory(
        key, Kind.EPISODE, "the deploy password is hunter2", episode_scope(origin, lane), origin.trust, lane
    )


@pytest.mark.parametrize("cross", [False, True])
def test_a_webhook_never_reaches_the_owner_elsewhere(tmp_path: Path, cross: bool) -> None:
    home, hook = Lane("terminal", "default", "me", "root:me"), Lane("github", "hooks", "acme/api#7", "root:acme/api#7")
    owner = Origin("terminal", "default", "me", "ana", direct=True, trust=Trust.OWNER)
    stranger = Origin("github", "hooks", "acme/api#7", "mallory", trust=Trust.EXTERNAL)
    other_chat = Lane("telegram", "default", "42", "root:42")
    with stage(tmp_path) as scene:
        scene.keep(said("owner", owner, home), said("stranger", stranger, hook))

        def heard(lane: Lane, origin: Origin) -> list[str]:
            listener = Listener(lane, person_of(origin), direct=True, cross=cross)
            found = keys(scene.run(by_words(scene.store, listener, "hunter2", 9)))
            assert keys(scene.run(scene.store.find(listener, (), 9))) == found
            return found

        assert heard(home, owner) == ["owner"]
        assert heard(hook, stranger) == ["stranger"]
        assert heard(other_chat, owner) == ["owner"]
        assert heard(home, stranger) == []
