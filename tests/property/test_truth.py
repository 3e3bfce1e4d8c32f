"""What holds when follows from all that was said, and not from the order in which it was learned."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.property.memory_stage import Stage, stage

from keepsaid.domain.memory import GLOBAL, Kind, Memory, Narrowing, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid_testkit.contracts.memories import AUDIT

_NOW = 10_000
_NUMBERS = count()


@dataclass(frozen=True)
class Word:
    at: int
    value: str
    ends: int | None
    corrects: bool


@st.composite
def stories(draw: st.DrawFn) -> tuple[list[Word], list[Word]]:
    """Words about one slot, each at a time of its own, and the same in another order."""
    times = draw(st.lists(st.integers(1, 60), min_size=1, max_size=9, unique=True))
    words = [
        Word(
            at * 10,
            draw(st.sampled_from(["Porto", "Lisbon", "Rome"])),
            draw(st.none() | st.integers(at * 10 + 1, 700)) if draw(st.integers(0, 4)) == 0 else None,
            draw(st.integers(0, 6)) == 0,
        )
        for at in times
    ]
    return words, draw(st.permutations(words))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(tmp_path_factory.mktemp("truth")) as opened:
        yield opened


def learned(scene: Stage, words: Sequence[Word]) -> list[Memory]:
    """All memories of a subject of whom the words were learned, one by one."""
    who = f"person {next(_NUMBERS)}"
    memories = []
    for word in words:
        key = f"{who}:{word.at}"
        memory = NewMemory(
            key,
            Kind.FACT,
            f"{who} lives in {word.value}",
            GLOBAL,
            Trust.KNOWN,
            subject=who,
            attribute="lives in",
            value=word.value,
            said_at=word.at,
            valid_to=word.ends,
            corrects=word.corrects,
            sources=(Source("message", key),),
        )
        memories.append(memory)
    ids = {outcome.memory_id for outcome in scene.run(scene.store.learn(memories, _NOW))}
    versions = scene.run(scene.store.revisions.history(AUDIT, min(ids)))
    assert ids <= {memory.id for memory in versions}
    return list(versions)


def begun(memory: Memory) -> int:
    return memory.new.said_at if memory.new.valid_from is None else memory.new.valid_from


def spans(memories: Sequence[Memory]) -> list[tuple[int, int | None, str, str, int]]:
    return sorted((begun(one), one.valid_to, one.new.value, one.state, one.evidence) for one in memories)


def as_of(scene: Stage, memories: Sequence[Memory], at: int) -> list[str]:
    ids = [memory.id for memory in memories]
    found = scene.run(scene.store.library.narrowed(AUDIT, ids, Narrowing(as_of=at)))
    return sorted(memory.new.value for memory in memories if memory.id in found)


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(stories())
def test_any_order_of_arrival_comes_to_the_same_truth(scene: Stage, story: tuple[list[Word], list[Word]]) -> None:
    words, shuffled = story
    one, other = learned(scene, words), learned(scene, shuffled)
    assert spans(one) == spans(other)
    assert sum(memory.evidence for memory in one) == len(words)
    for at in (0, *(word.at for word in words), *(word.at + 5 for word in words), 699, _NOW):
        held = as_of(scene, one, at)
        assert held == as_of(scene, other, at)
        assert len(held) <= 1


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
@given(stories())
def test_without_corrections_the_last_word_before_a_time_holds_then(
    scene: Stage, story: tuple[list[Word], list[Word]]
) -> None:
    words = [Word(word.at, word.value, None, corrects=False) for word in story[1]]
    kept = learned(scene, words)
    for at in range(0, 700, 7):
        before = [word for word in words if word.at <= at]
        assert as_of(scene, kept, at) == ([max(before, key=lambda word: word.at).value] if before else [])
