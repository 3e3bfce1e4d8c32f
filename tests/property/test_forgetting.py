"""Any sequence of forgettings, edits and merges: what goes is what the preview named, and that is what matches."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.effort import examples
from tests.property.forgetting_world import STORES, World, world

from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Memory
from keepsaid.testing.builders import ACCOUNT, CHANNEL

_DAY_MS = 86_400_000
_ROOMS = ("attic", "cellar")
_PEOPLE = ("ann", "bob")
_THINGS = ("wagonab", "petshopcd", "harbouref", "violingh", "kitchenij")


@dataclass
class Told:
    """One message, as the test knows it."""

    id: int
    thing: str
    room: str
    sender: str
    gone: bool = False


@dataclass
class Tale:
    """All that was said."""

    stage: World
    told: list[Told] = field(default_factory=list)

    async def say(self, thing: str, room: str, sender: str) -> None:
        """Say a sentence about a thing, and have the room read."""
        text = f"the {thing} of ours is painted"
        self.told.append(Told(await self.stage.say(text, room, sender), thing, room, sender))

    @property
    def left(self) -> list[Told]:
        """What is not forgotten."""
        return [one for one in self.told if not one.gone]

    def sources(self, memory: Memory) -> list[Told]:
        """The messages that a memory was made of."""
        ids = {int(one.ref) for one in memory.new.sources if one.kind == "message"}
        return [one for one in self.told if one.id in ids]


Step = tuple[str, int, int]
_STEPS = st.lists(
    st.tuples(
        st.sampled_from(("say", "say", "say", "collect", "collect", "edit", "merge", "forget", "forget", "undo")),
        st.integers(0, 9),
        st.integers(0, 9),
    ),
    min_size=6,
    max_size=22,
)


def _matching(tale: Tale, memory: Memory | None, wish: ForgetSelector) -> set[int]:
    """The messages that a wish names, by the letter of what is documented."""
    found = set(wish.messages)
    if memory is not None:
        return {one.id for one in tale.sources(memory) if not one.gone}
    for one in tale.left:
        person = f"{CHANNEL}:{ACCOUNT}:{one.sender}"
        if (wish.text and wish.text in one.thing) or wish.conversation == one.room or wish.person == person:
            found.add(one.id)
    return found


async def _chosen(tale: Tale, way: int, which: int) -> tuple[ForgetSelector, Memory | None]:
    """A wish, by one of the ways of choosing; with the memory where it names one."""
    known = [one for one in await tale.stage.known() if one.new.key.startswith(("finding:", "edit:"))]
    if way < 3 and known:
        memory = known[which % len(known)]
        return ForgetSelector((memory.id,)), memory
    if way < 6:
        return ForgetSelector(messages=(tale.left[which % len(tale.left)].id,)), None
    if way < 8:
        return ForgetSelector(text=_THINGS[which % len(_THINGS)]), None
    if way < 9:
        return ForgetSelector(conversation=_ROOMS[which % 2]), None
    return ForgetSelector(person=f"{CHANNEL}:{ACCOUNT}:{_PEOPLE[which % 2]}"), None


async def _forget(tale: Tale, way: int, which: int, *, undone: bool) -> None:
    if not tale.left:
        return
    stage = tale.stage
    wish, memory = await _chosen(tale, way, which)
    before = {one.id: one for one in await stage.known()}
    texts = await stage.texts()
    preview = await stage.preview(wish)
    expected = _matching(tale, memory, wish)
    if memory is None or memory.new.key.startswith("finding:"):
        assert expected <= set(preview.messages), "what matches is named"
        assert set(preview.messages) <= expected | _same(tale, memory), "nothing else is named"
    done = await stage.forget(wish, _DAY_MS if undone else 0)
    assert (done is not None) == bool(preview.memories or preview.messages)
    if done is None:
        return
    after = {one.id for one in await stage.known()}
    assert set(before) - after == set(preview.memories) & set(before), "what went is what the preview named"
    counts = dict(done.counts)
    assert counts.get("messages", 0) == len(preview.messages)
    assert done.state == "done"
    if undone:
        await stage.forgetter.undo(done.id)
        assert await stage.texts() == texts
        return
    for one in tale.left:
        one.gone = one.id in preview.messages
    await _check(tale, before, wish)


def _same(tale: Tale, memory: Memory | None) -> set[int]:
    """Messages that say the same as a memory that is named by its id."""
    if memory is None:
        return set()
    return {one.id for one in tale.left if one.thing in memory.text and one in tale.sources(memory)}


async def _check(tale: Tale, before: dict[int, Memory], wish: ForgetSelector) -> None:
    """Every message that stays is there, with its episode and each fact that only messages that stay are behind."""
    stage = tale.stage
    for one in tale.told:
        assert bool(await stage.said(one.id)) != one.gone
    left = {one.id for one in await stage.known()}
    gone = {one.id for one in tale.told if one.gone}
    for number, memory in before.items():
        behind = {one.id for one in tale.sources(memory)}
        episode = memory.new.key.startswith("message:")
        if behind and behind <= gone and not memory.new.key.startswith("reply:"):
            assert number not in left, f"{memory.text!r} has no source that stays"
        named = number in wish.memories or (wish.text and wish.text in memory.text)
        if behind and behind.isdisjoint(gone) and (episode or not (named or wish.person or wish.conversation)):
            assert number in left, f"{memory.text!r} was not named"


async def _edit(tale: Tale, which: int, to: int) -> None:
    facts = [one for one in await tale.stage.known() if one.new.key.startswith("finding:") and not one.valid_to]
    if facts:
        await tale.stage.edit(facts[which % len(facts)].id, f"it was a mistake, number {to} is right")


async def _merge(tale: Tale, which: int, other: int) -> None:
    facts = [one for one in await tale.stage.known() if one.new.key.startswith("finding:")]
    if len(facts) > 1:
        one, two = facts[which % len(facts)], facts[other % len(facts)]
        await tale.stage.memories.revisions.merge(one.id, (two.id,), tale.stage.clock.now_ms())


async def _walk(kind: str, steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with world(kind, Path(folder)) as stage:
            tale = Tale(stage)
            for what, one, two in steps:
                if what == "say":
                    await tale.say(_THINGS[one % len(_THINGS)], _ROOMS[two % 2], _PEOPLE[two // 2 % 2])
                elif what == "collect" and any(told.room == _ROOMS[one % 2] for told in tale.told):
                    await stage.collect(_ROOMS[one % 2])
                elif what == "edit":
                    await _edit(tale, one, two)
                elif what == "merge":
                    await _merge(tale, one, two)
                elif what in ("forget", "undo"):
                    await _forget(tale, one, two, undone=what == "undo")


@pytest.mark.soak
@pytest.mark.parametrize("kind", STORES)
@given(steps=_STEPS)
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_in_many_sequences_what_goes_is_what_the_preview_named(kind: str, steps: list[Step]) -> None:
    asyncio.run(_walk(kind, steps))


@pytest.mark.parametrize("kind", STORES)
@given(steps=_STEPS)
@settings(
    max_examples=examples(5),
    deadline=None,
    phases=(Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow],
)
def test_what_goes_is_what_the_preview_named_and_what_matches(kind: str, steps: list[Step]) -> None:
    asyncio.run(_walk(kind, steps))
