"""The contract of revisions: which memories can be pinned, shared, merged and archived, and what that changes.

`factory` is a `RevisionFactory`: every call opens the same store again.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from keepsaid.domain.forgetting import ForgetTargets, summed
from keepsaid.domain.graph import Mention
from keepsaid.domain.learning import LearnOutcome, Ruled, Ruling
from keepsaid.domain.memory import OWNER, conversation_scope
from keepsaid.domain.revision import RevisionReason, RevisionRefusal
from keepsaid.domain.visibility import ShareMemory, ShareReach
from keepsaid.ports.memory_maintenance import ForgetfulMemory, Pairs
from keepsaid.ports.memory_store import Graph, MemorySharing
from keepsaid_testkit.contracts.learning import LearningStore, everything, lives, said
from keepsaid_testkit.contracts.memories import AUDIT, HERE


class RevisionStore(LearningStore, Protocol):
    """A store that learns, judges pairs of memories and shares them."""

    @property
    def pairs(self) -> Pairs:
        """Pairs of memories, and rulings on them."""
        ...

    @property
    def graph(self) -> Graph:
        """What memories mention."""
        ...

    @property
    def forgetful(self) -> ForgetfulMemory:
        """Memory as forgetting needs it."""
        ...

    @property
    def sharing(self) -> MemorySharing:
        """Sharing of memories."""
        ...


RevisionFactory = Callable[[], AbstractAsyncContextManager[RevisionStore]]


class RevisionContract:
    """Only current memories are changed; a refusal names the memory to use instead."""

    async def test_pinned_and_confirmed(self, factory: RevisionFactory) -> None:
        """Both are written down; a pin can be taken out."""
        async with factory() as store:
            [one] = await store.learn([lives("m1", "Porto", 100, confidence=0.5)], 200)
            assert await store.revisions.confirm(one.memory_id, 300)
            assert await store.revisions.pin(one.memory_id, 300, pinned=True) is None
            [memory] = await everything(store, [one.memory_id])
            assert (memory.pinned, memory.new.confidence) == (True, 1.0)
            assert await store.revisions.pin(one.memory_id, 300, pinned=False) is None
            [memory] = await everything(store, [one.memory_id])
            assert not memory.pinned

    async def test_what_is_put_away_is_found_in_the_archive_alone(self, factory: RevisionFactory) -> None:
        """It is active again when it is restored; if one memory is missing, none is archived."""
        async with factory() as store:
            [one] = await store.learn([lives("m1", "Porto", 100)], 200)
            missing = RevisionRefusal(17, RevisionReason.MISSING)
            for back, done in ((True, ()), (False, missing)):
                assert await store.revisions.archive([one.memory_id, 17], 300, back=back) == done
                [memory] = await everything(store, [one.memory_id])
                assert memory.state == "active"
            assert await store.revisions.archive([one.memory_id], 300) == (one.memory_id,)
            assert await store.fetch(AUDIT, [one.memory_id]) == ()
            assert await store.revisions.archive([one.memory_id], 300, back=True) == (one.memory_id,)
            [memory] = await store.fetch(AUDIT, [one.memory_id])
            assert (memory.state, memory.last_access_at) == ("active", 300)

    async def test_merged_memories_are_one(self, factory: RevisionFactory) -> None:
        """With all sources; the others are never found again, and what they said is not learned again."""
        texts = [
            "the shop is deployed on Fridays",
            "every Friday they roll out the store",
            "on Friday the shop goes live",
        ]
        async with factory() as store:
            told = [said(f"m{n}", text, 100 + n) for n, text in enumerate(texts)]
            ids = [one.memory_id for one in await store.learn(told, 200)]
            assert len({*ids}) == 3
            assert await store.revisions.merge(ids[0], ids[1:], 300) is None
            [one] = await store.find(AUDIT, (), 9)
            assert (one.id, one.evidence) == (ids[0], 3)
            assert {f"m{n}" for n in range(3)} <= {source.ref for source in one.new.sources}
            assert [memory.id for memory in await store.fetch(AUDIT, ids)] == [ids[0]]
            assert {(one.memory_id, one.how) for one in await store.learn(told, 400)} == {(ids[0], LearnOutcome.KNOWN)}
            refusal = await store.revisions.merge(ids[0], ids[1:], 500)
            assert refusal == RevisionRefusal(ids[1], RevisionReason.MERGED, ids[0])

    async def test_what_cannot_be_merged(self, factory: RevisionFactory) -> None:
        """Past memories, other scopes and slots, one with itself, and what is missing: nothing is changed."""
        async with factory() as store:
            told = [lives("a", "Porto", 100), lives("b", "Rome", 200), lives("c", "Porto", 300)]
            other = said("d", "the shop is deployed on Fridays")
            room = said("e", "every Friday they roll out the store", scope=conversation_scope(HERE), lane=HERE)
            a, b, c, d, e = [one.memory_id for one in await store.learn([*told, other, room], 400)]
            before = await everything(store, [a, b, c, d, e])
            for into, others, refusal in (
                (a, [c], RevisionRefusal(a, RevisionReason.SUPERSEDED, c)),
                (c, [b], RevisionRefusal(b, RevisionReason.SUPERSEDED, c)),
                (c, [d], RevisionRefusal(c, RevisionReason.SLOT, other=d)),
                (d, [e], RevisionRefusal(d, RevisionReason.SCOPE, other=e)),
                (c, [c], RevisionRefusal(c, RevisionReason.REPEATED)),
                (c, [], RevisionRefusal(c, RevisionReason.REPEATED)),
                (c, [17], RevisionRefusal(17, RevisionReason.MISSING)),
            ):
                assert await store.revisions.merge(into, others, 500) == refusal
            assert await everything(store, [a, b, c, d, e]) == before

    async def test_facts_that_contradict_are_not_merged(self, factory: RevisionFactory) -> None:
        """Neither two values of one attribute that are both current, nor a pair that was judged to contradict."""
        notes = "the shop is deployed on Fridays", "every Friday they roll out the store"
        async with factory() as store:
            told = [
                lives("a", "Porto", 100),
                lives("b", "Rome", 900),
                *(said(f"n{n}", one) for n, one in enumerate(notes)),
            ]
            a, b, c, d = [one.memory_id for one in await store.learn(told, 400)]
            await store.pairs.rule([Ruled(c, d, Ruling.CONTRADICTS)], 410)
            before = await everything(store, [a, b, c, d])
            for into, other in ((a, b), (b, a), (c, d), (d, c)):
                refusal = await store.revisions.merge(into, [other], 500)
                assert refusal == RevisionRefusal(into, RevisionReason.CONTRADICTS, other=other)
            assert await everything(store, [a, b, c, d]) == before

    async def test_values_of_an_attribute_that_has_several_can_be_merged(self, factory: RevisionFactory) -> None:
        """They contradict nothing: the survivor keeps its value and has all sources."""
        async with factory() as store:
            told = [
                said(name, f"Ann likes {value}", 100, subject="Ann", attribute="likes", value=value)
                for name, value in (("a", "tea"), ("b", "a cup of tea"))
            ]
            a, b = [one.memory_id for one in await store.learn(told, 200)]
            assert await store.revisions.merge(a, [b], 300) is None
            [one] = await store.find(AUDIT, (), 9)
            assert one.id == a
            assert {"a", "b"} <= {source.ref for source in one.new.sources}

    async def test_what_is_forgotten_is_counted_with_what_was_merged_into_it(self, factory: RevisionFactory) -> None:
        """Also where the store deletes that by itself; the count before is the count of what goes."""
        notes = (
            "the shop is deployed on Fridays",
            "every Friday they roll out the store",
            "on Friday the shop goes live",
        )
        for named in range(3):
            async with factory() as store:
                a, b, c = [one.memory_id for one in await store.learn([said(f"n{one}", one) for one in notes], 200)]
                await store.graph.relate([], [Mention(id_, f"thing:{id_ == a}", "shop", 0.5) for id_ in (a, b, c)], 210)
                assert await store.revisions.merge(b, [c], 300) is None
                assert await store.revisions.merge(a, [b], 310) is None
                expected = await store.forgetful.count(ForgetTargets(memories=(a, b, c)))
                assert dict(expected) == {"memories": 3, "sources": 6, "entities": 2}
                ids: tuple[int, ...] = ((a, b, c), (c, b, a), (a,))[named]
                hidden = await store.forgetful.hide(ids, [], 400)
                assert summed(hidden, await store.forgetful.erase(ids)) == expected
                assert await store.forgetful.count(ForgetTargets(memories=(a, b, c))) == ()

    async def test_only_current_memories_are_changed(self, factory: RevisionFactory) -> None:
        """A past, merged, expired or archived one is refused, with the id of the current one if there is any."""
        wrong, right, final = (f"the shop is deployed every {day} evening" for day in ("Friday", "Monday", "Sunday"))
        async with factory() as store:
            told = [said("a", wrong, 100), said("d", "Ann is on holiday in Braga", 100, valid_to=250)]
            a, ended = [one.memory_id for one in await store.learn([*told], 200)]
            b = (await store.revisions.correct(a, said("turn:9:1", right, 300), 310)).memory_id
            c = (await store.revisions.correct(b, said("turn:9:2", final, 320), 330)).memory_id
            [put_away] = await store.learn([said("e", "the red bicycle needs a new tyre", 100)], 340)
            archived = put_away.memory_id
            assert await store.revisions.archive([archived], 350) == (archived,)
            before = await everything(store, [a, b, c, ended, archived])
            for id_, refusal in (
                (a, RevisionRefusal(a, RevisionReason.SUPERSEDED, c)),
                (b, RevisionRefusal(b, RevisionReason.SUPERSEDED, c)),
                (ended, RevisionRefusal(ended, RevisionReason.EXPIRED, until=250)),
                (archived, RevisionRefusal(archived, RevisionReason.ARCHIVED)),
            ):
                for pinned in (True, False):
                    assert await store.revisions.pin(id_, 400, pinned=pinned) == refusal
                assert await store.revisions.archive([c, id_], 400) == refusal
                assert await store.revisions.merge(c, [id_], 400) == refusal
                assert await store.revisions.merge(id_, [c], 400) == refusal
                for to in ShareReach:
                    assert await store.sharing.share(ShareMemory(id_, to, OWNER, "why", 400)) == refusal
            assert (await store.revisions.correct(a, said("turn:9:3", "on Saturdays then", 390), 400)).how is (
                LearnOutcome.REFUSED
            )
            assert await everything(store, [a, b, c, ended, archived]) == before
