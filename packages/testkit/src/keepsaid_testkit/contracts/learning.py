"""What every store that learns must do: subclass in a test module and give a fixture `factory` of such stores.

`factory` is a `LearningFactory`: every call opens the same store again. The methods are coroutines, so pytest-asyncio
must run in auto mode.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from itertools import permutations
from typing import Protocol

from keepsaid.domain.learning import LearnOutcome
from keepsaid.domain.memory import GLOBAL, Kind, Listener, Memory, NewMemory, Source, conversation_scope, lane_scope
from keepsaid.domain.message import Trust
from keepsaid.ports.memory_store import Learning, Memories, MemoryRevisions
from keepsaid_testkit.contracts.memories import AUDIT, HERE, STRAND


class LearningStore(Memories, Learning, Protocol):
    """A store of memories that learns, and whose memories can be put right."""

    @property
    def revisions(self) -> MemoryRevisions:
        """Versions of memories."""
        ...


LearningFactory = Callable[[], AbstractAsyncContextManager[LearningStore]]


def said(key: str, text: str, at: int = 100, **fields: object) -> NewMemory:
    """A fact that a message of the same name said, heard everywhere unless `fields` say otherwise."""
    values: dict[str, object] = {"kind": Kind.FACT, "scope": GLOBAL, "trust": Trust.KNOWN, "said_at": at, **fields}
    values.setdefault("sources", (Source("message", key), Source("finding", f"{key}:0")))
    return NewMemory(key=key, text=text, **values)  # type: ignore[arg-type]


def lives(key: str, value: str, at: int, **fields: object) -> NewMemory:
    """Where Ann lives, from a time on."""
    return said(key, f"Ann lives in {value}", at, subject="Ann", attribute="lives in", value=value, **fields)


async def everything(store: Memories, ids: Sequence[int]) -> list[Memory]:
    """The memories of these ids, once each, in order."""
    found = [await store.get(AUDIT, id_) for id_ in dict.fromkeys(ids)]
    return [memory for memory in found if memory is not None]


def spans(memories: Sequence[Memory]) -> list[tuple[str, int, int | None]]:
    """What held from when until when, in order."""
    held = [(one.new.value, one.new.said_at, one.new.valid_from, one.valid_to) for one in memories]
    return sorted((value, at if start is None else start, until) for value, at, start, until in held)


class LearningContract:
    """Each thing is learned once, from whoever says it."""

    async def test_what_is_new_is_a_memory_of_its_own(self, factory: LearningFactory) -> None:
        """With all that was said of it."""
        async with factory() as store:
            memory = lives("m1", "Porto", 100, confidence=0.5)
            [learned] = await store.learn([memory], 200)
            assert learned.how is LearnOutcome.NEW
            assert await store.get(AUDIT, learned.memory_id) == Memory(learned.memory_id, memory, "active", 200)

    async def test_learning_again_changes_nothing(self, factory: LearningFactory) -> None:
        """Neither under the same keys, nor under others from the same sources, be it new, evidence or the past."""
        told = [
            lives("m1", "Porto", 100),
            lives("m2", "Porto", 200),
            lives("m3", "Lisbon", 300),
            lives("m4", "Rome", 50),
        ]
        async with factory() as store:
            first = await store.learn(told, 1_000)
            assert [one.how for one in first] == [
                LearnOutcome.NEW,
                LearnOutcome.EVIDENCE,
                LearnOutcome.UPDATES,
                LearnOutcome.PAST,
            ]
            ids = [one.memory_id for one in first]
            there = await everything(store, ids)
            again = await store.learn(told, 2_000)
            assert [(one.memory_id, one.how) for one in again] == [(id_, LearnOutcome.KNOWN) for id_ in ids]
            renamed = [
                lives("x" + one.key, one.value, one.said_at, sources=(*one.sources[:1], Source("finding", "9")))
                for one in told
            ]
            assert {one.how for one in await store.learn(renamed, 3_000)} == {LearnOutcome.KNOWN}
            assert await everything(store, ids) == there

    async def test_paraphrases_are_evidence(self, factory: LearningFactory) -> None:
        """Fifteen ways to say five things are five memories, each with evidence 3 and all its sources."""
        ways = [
            ["Ann lives in Porto", "Ann's home city is Porto", "Ann is based in porto!"],
            ["Ann works for ACME", "Ann's employer is Acme", "Ann is employed by ACME."],
            ["Ann speaks Dutch", "one of Ann's languages is Dutch", "Ann can speak dutch"],
            [
                "the deploy of the shop runs every Friday evening",
                "the deploy of the shop runs every Friday evening!",
                "The deploy of the shop runs each and every Friday evening",
            ],
            [
                "we agreed to keep invoices in the blue folder",
                "we all agreed to keep invoices in the blue folder",
                "We agreed to keep the invoices in the blue folder",
            ],
        ]
        slots = [
            [("lives in", "Porto"), ("Home city", "Porto"), ("based in", "porto!")],
            [("works for", "ACME"), ("employer", "Acme"), ("employed by", "ACME.")],
            [("speaks", "Dutch"), ("languages", "Dutch"), ("language", "dutch")],
            [("", "")] * 3,
            [("", "")] * 3,
        ]
        offered = [
            said(f"m{n}{way}", text, 100 + n, subject="Ann" if slot[0] else "", attribute=slot[0], value=slot[1])
            for way in range(3)
            for n, (texts, named) in enumerate(zip(ways, slots, strict=True))
            for text, slot in ((texts[way], named[way]),)
        ]
        async with factory() as store:
            ids = [one.memory_id for one in await store.learn(offered, 200)]
            kept = await everything(store, ids)
            assert [(one.evidence, one.state) for one in kept] == [(3, "active")] * 5
            for n, memory in enumerate(kept):
                assert {f"m{n}{way}" for way in range(3)} <= {one.ref for one in memory.new.sources}

    async def test_the_same_words_are_evidence_however_few(self, factory: LearningFactory) -> None:
        """Told by three, in whatever case: one memory with what all three said as its sources."""
        async with factory() as store:
            told = [said(f"m{n}", text, 100 + n) for n, text in enumerate(("Rex bites", "rex bites.", "REX  BITES"))]
            learned = await store.learn(told, 200)
            assert [one.how for one in learned] == [LearnOutcome.NEW, LearnOutcome.EVIDENCE, LearnOutcome.EVIDENCE]
            [one] = await everything(store, [one.memory_id for one in learned])
            assert (one.evidence, {source.ref for source in one.new.sources if source.kind == "message"}) == (
                3,
                {"m0", "m1", "m2"},
            )

    async def test_likeness_stops_at_numbers_denials_people_and_scopes(self, factory: LearningFactory) -> None:
        """What differs there says something else."""
        text = "the weekly review of the shop starts at 9 on Monday"
        offered = [
            said("a", text),
            said("b", text.replace("9", "10")),
            said("c", text.replace("starts", "never starts")),
            said("d", text, scope=conversation_scope(HERE), lane=HERE),
            said("e", text, subject="Ann"),
            said("f", text.replace("weekly", "long weekly"), subject="Bob"),
        ]
        async with factory() as store:
            learned = await store.learn(offered, 200)
            assert [one.how for one in learned] == [
                *[LearnOutcome.NEW] * 4,
                LearnOutcome.EVIDENCE,
                LearnOutcome.EVIDENCE,
            ]

    async def test_the_agents_own_words_are_no_evidence(self, factory: LearningFactory) -> None:
        """A fact that replies repeat a hundred times is one memory with the evidence it had."""
        async with factory() as store:
            [first] = await store.learn([lives("m1", "Porto", 100)], 200)
            echoes = [lives(f"r{n}", "Porto", 101 + n, sources=(Source("reply", str(n)),)) for n in range(100)]
            assert {one.how for one in await store.learn(echoes, 300)} == {LearnOutcome.KNOWN}
            [memory] = await everything(store, [first.memory_id])
            assert (memory.evidence, len(memory.new.sources)) == (1, 2)

    async def test_what_is_no_memory_is_refused(self, factory: LearningFactory) -> None:
        """By what it came from, by its size, and by what it says; the others of the call are learned."""
        refused = [
            said("a", "Ann lives in Porto", trust=Trust.EXTERNAL),
            said("b", "Ann lives in Porto", kind=Kind.EPISODE),
            said("c", "Ann lives in Porto", sources=()),
            said("d", "Ann lives in Porto", sources=(Source("heartbeat", "1"),)),
            said("e", "x" * 50_001),
            said("f", "?!...", subject="Ann"),
            said("g", "good morning everybody, thank you so much!"),
            said("h", "Ann's city is unknown", subject="Ann", attribute="city", value="unknown"),
            said("i", "Lisbon"),
        ]
        async with factory() as store:
            learned = await store.learn([*refused, said("z", "the cat sleeps on the red sofa")], 200)
            assert [one.how for one in learned] == [*[LearnOutcome.REFUSED] * len(refused), LearnOutcome.NEW]
            assert all(one.why and not one.memory_id for one in learned[:-1])
            assert await store.counts() == {"fact": 1}

    async def test_nothing_learned_is_nothing(self, factory: LearningFactory) -> None:
        """No memories, no outcomes."""
        async with factory() as store:
            assert await store.learn([], 200) == ()


class TruthContract:
    """Of one slot one thing holds at a time; nothing is lost."""

    async def test_the_newer_ends_the_older_in_any_order(self, factory: LearningFactory) -> None:
        """A value that comes back is a period of its own, even where its two times were one memory before."""
        told = [("Porto", 100), ("Porto", 150), ("Lisbon", 200), ("Porto", 300)]
        async with factory() as store:
            for n, order in enumerate(permutations(told)):
                ids: list[int] = []
                for value, at in order:
                    key, who = f"{n}:{at}", f"person {n}"
                    one = said(key, f"{who} lives in {value}", at, subject=who, attribute="lives in", value=value)
                    ids += [learned.memory_id for learned in await store.learn([one], 1_000)]
                kept = [one for one in await store.find(AUDIT, (), 999) if one.new.subject == who]
                assert [(one.new.value, one.valid_to) for one in kept] == [("Porto", None)]
                past = await everything(store, [*ids, *range(min(ids), max(ids) + 9)])
                past = [one for one in past if one.new.subject == who]
                assert spans(past) == [("Lisbon", 200, 300), ("Porto", 100, 200), ("Porto", 300, None)], order
                assert sorted(one.evidence for one in past) == [1, 1, 2]
                by = {one.id: one for one in past}
                after = {(one.new.value, by[one.superseded_by].new.value) for one in past if one.superseded_by}
                assert after == {("Porto", "Lisbon"), ("Lisbon", "Porto")}

    async def test_several_values_stand_side_by_side(self, factory: LearningFactory) -> None:
        """Where an attribute may have more than one."""
        async with factory() as store:
            drinks = [
                said(v, f"Ann likes {v}", 100, subject="Ann", attribute="likes", value=v) for v in ("tea", "mate")
            ]
            assert [one.how for one in await store.learn(drinks, 200)] == [LearnOutcome.NEW, LearnOutcome.NEW]
            assert await store.counts() == {"fact": 2}

    async def test_a_fact_may_end_by_its_own_word(self, factory: LearningFactory) -> None:
        """And what began later ends it sooner."""
        async with factory() as store:
            first = await store.learn([lives("a", "Porto", 100, valid_to=500)], 200)
            assert spans(await everything(store, [first[0].memory_id])) == [("Porto", 100, 500)]
            later = await store.learn([lives("b", "Rome", 150, valid_from=300)], 200)
            assert later[0].how is LearnOutcome.UPDATES
            [memory] = await everything(store, [first[0].memory_id])
            assert (memory.valid_to, memory.superseded_by, memory.new.valid_to) == (300, later[0].memory_id, 500)

    async def test_what_is_yet_to_come_ends_nothing_yet(self, factory: LearningFactory) -> None:
        """The older stays active until then."""
        async with factory() as store:
            [old, new] = await store.learn([lives("a", "Porto", 100), lives("b", "Rome", 150, valid_from=900)], 200)
            assert [one.state for one in await everything(store, [old.memory_id, new.memory_id])] == [
                "active",
                "active",
            ]
            await store.learn([said("z", "the cat sleeps on the red sofa")], 900)
            assert [one.state for one in await everything(store, [old.memory_id])] == ["superseded"]

    async def test_a_correction_outranks_what_was_said_before_it(self, factory: LearningFactory) -> None:
        """Even what begins later, and whichever is learned first; what is said after it counts again."""
        async with factory() as store:
            for n, order in enumerate(permutations(("Porto", "Lisbon", "Berlin"))):
                who = f"person {n}"
                fields: dict[str, dict[str, object]]
                fields = {"Lisbon": {"valid_from": 400}, "Porto": {"corrects": True}, "Berlin": {}}
                times = {"Lisbon": 100, "Porto": 200, "Berlin": 600}
                ids = []
                for value in order:
                    where = {"subject": who, "attribute": "home", "value": value, **fields[value]}
                    one = said(f"{n}{value}", f"{who} lives in {value}", times[value], **where)
                    ids += [learned.memory_id for learned in await store.learn([one], 1_000)]
                kept = await everything(store, ids)
                assert spans(kept) == [("Berlin", 600, None), ("Lisbon", 400, 400), ("Porto", 200, 600)], order

    async def test_a_scope_is_ended_only_by_what_all_of_it_hear(self, factory: LearningFactory) -> None:
        """A word in one room does not end what others hold true; a word for all does."""
        room, lane = conversation_scope(HERE), lane_scope(STRAND)
        async with factory() as store:
            everywhere, here, strand = await store.learn(
                [
                    lives("a", "Porto", 100),
                    lives("b", "Rome", 200, scope=room, lane=HERE),
                    lives("c", "Oslo", 150, scope=lane, lane=STRAND),
                ],
                1_000,
            )
            ids = [everywhere.memory_id, here.memory_id, strand.memory_id]
            assert [one.superseded_by for one in await everything(store, ids)] == [None, None, here.memory_id]
            [last] = await store.learn([lives("d", "Bonn", 300)], 1_000)
            by = [one.superseded_by for one in await everything(store, ids)]
            assert by == [last.memory_id, last.memory_id, here.memory_id]


class CorrectingContract:
    """What a person puts right stays right, and nothing that was there is lost."""

    async def test_a_correction_takes_the_place_of_a_slot(self, factory: LearningFactory) -> None:
        """In its scope and slot, whatever else it says; doing it again does nothing."""
        async with factory() as store:
            [old] = await store.learn([lives("m1", "Lisbon", 100)], 200)
            word = said("turn:9:1", "No, Ann lives in Porto", 300, value="Porto", speaker="Ann")
            right = await store.revisions.correct(old.memory_id, word, 400)
            assert right.how is LearnOutcome.UPDATES
            assert (await store.revisions.correct(old.memory_id, word, 500)).memory_id == right.memory_id
            versions = await store.revisions.history(AUDIT, old.memory_id)
            assert spans(versions) == [("Lisbon", 100, 300), ("Porto", 300, None)]
            assert versions[1].new.corrects
            assert (versions[1].new.attribute, versions[0].superseded_by) == ("lives in", right.memory_id)
            assert await store.revisions.history(AUDIT, right.memory_id) == versions
            assert await store.revisions.history(Listener(HERE), right.memory_id) == versions
            assert await store.revisions.history(AUDIT, 17) == []

    async def test_a_correction_of_what_has_no_slot(self, factory: LearningFactory) -> None:
        """It takes its place; what was wrong is not learned again from earlier messages."""
        wrong, right = "the shop is deployed every Friday evening", "the shop is deployed every Thursday evening"
        async with factory() as store:
            [old] = await store.learn([said("m1", wrong, 100)], 200)
            new = await store.revisions.correct(old.memory_id, said("turn:9:1", right, 300), 400)
            assert new.how is LearnOutcome.UPDATES
            late, later = await store.learn([said("m0", wrong, 90), said("m2", wrong, 500)], 600)
            assert (late.memory_id, late.how) == (old.memory_id, LearnOutcome.EVIDENCE)
            assert later.how is LearnOutcome.NEW
            versions = await store.revisions.history(AUDIT, new.memory_id)
            assert [(one.text, one.valid_to, one.state) for one in versions] == [
                (wrong, 300, "superseded"),
                (right, None, "active"),
            ]

    async def test_what_is_not_there_cannot_be_put_right(self, factory: LearningFactory) -> None:
        """Nor can what is not a memory of this kind; junk is refused."""
        async with factory() as store:
            [episode] = await store.keep([said("e", "the cat sleeps", kind=Kind.EPISODE)], 5)
            [fact] = await store.learn([said("m1", "the cat sleeps on the red sofa")], 5)
            for id_, text in ((17, "the dog sleeps"), (episode, "the dog sleeps"), (fact.memory_id, "ok thanks")):
                assert (await store.revisions.correct(id_, said("c", text, 9), 9)).how is LearnOutcome.REFUSED
            assert not await store.revisions.confirm(17, 9)
            assert await store.revisions.pin(17, 9, pinned=True) is not None
