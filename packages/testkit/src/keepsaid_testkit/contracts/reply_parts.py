"""The contract of parts: a long reply is kept as it is sent, and goes part by part, each known to have arrived."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import Decide, Doubt, Resend
from keepsaid.domain.message import ProviderMarks
from keepsaid.domain.reply import Delivered, StoredReply
from keepsaid.domain.reply_parts import ConfirmPart, KeepParts, NoteUndelivered, ReplyPart
from keepsaid.testing.builders import said
from keepsaid_testkit.contracts.outbox import settled, state_of, take
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

_BODIES = ("one", "two", "three")


async def begun(store: ContractStore, bodies: tuple[str, ...] = _BODIES) -> StoredReply:
    """A reply that is being sent, its parts kept."""
    await StoreDriver(store).settle(said(), "a long answer")
    [reply] = await take(store)
    assert [part.body for part in await store.apply(KeepParts(reply.id, reply.fence, bodies))] == [*bodies]
    return reply


async def kept(store: ContractStore, reply: StoredReply) -> tuple[ReplyPart, ...]:
    """Its parts."""
    return await store.apply(KeepParts(reply.id, reply.fence))


async def confirm(store: ContractStore, reply: StoredReply, n: int) -> bool:
    """A part arrived."""
    return await store.apply(ConfirmPart(reply.id, reply.fence, n, f"p{n}"))


class ReplyPartsContract:
    """Kept once, sent in order, and repeated only where nobody knows."""

    async def test_the_first_parts_stay(self, store: ContractStore) -> None:
        """Every try sends the same, under the same keys."""
        await StoreDriver(store).settle(said(), "a long answer")
        [reply] = await take(store)
        assert await kept(store, reply) == ()
        first = await store.apply(KeepParts(reply.id, reply.fence, _BODIES))
        assert await store.apply(KeepParts(reply.id, reply.fence, ("other",))) == first
        assert [(part.n, part.body, part.is_sent) for part in first] == [
            (0, "one", False), (1, "two", False), (2, "three", False)
        ]  # fmt: skip
        assert len({part.key for part in first}) == 3
        assert all(len(part.key) <= 25 for part in first)

    async def test_what_arrived_is_not_sent_again(self, store: ContractStore) -> None:
        reply = await begun(store)
        assert await confirm(store, reply, 0)
        assert await store.apply(settled(reply, Delivered.RETRY))
        [again] = await take(store)
        assert [(part.is_sent, part.provider_id) for part in await kept(store, again)] == [
            (True, "p0"), (False, None), (False, None)
        ]  # fmt: skip
        assert [await confirm(store, again, n) for n in (1, 2)] == [True, True]
        assert await store.apply(settled(again, Delivered.CONFIRMED))
        assert await state_of(store, again) == "sent"

    async def test_a_report_is_noted_on_the_reply_that_was_sent(self, store: ContractStore) -> None:
        """By the name of a part of it, and by no other; its state stays."""
        reply = await begun(store, ("one", "two"))
        report = NoteUndelivered(reply.lane.channel, reply.lane.account, "p0", "nobody is there")
        for n in (0, 1):
            assert not await store.apply(report), "the reply is under way"
            assert await confirm(store, reply, n)
        assert await store.apply(settled(reply, Delivered.CONFIRMED))
        strangers = {"provider_id": "p9"}, {"account": "another"}, {"channel": "another"}
        assert [await store.apply(replace(report, **other)) for other in strangers] == [False, False, False]
        assert await store.apply(report)
        assert await store.apply(replace(report, provider_id="p1", report="nor there"))
        assert reply.turn_id is not None
        turn = await store.turn(reply.turn_id)
        assert turn is not None
        assert [(one.state, one.detail) for one in turn.replies] == [("sent", "reported undelivered: nor there")]

    async def test_only_the_part_under_way_is_in_doubt(self, store: ContractStore) -> None:
        """What was provably not sent is not marked when it goes again."""
        reply = await begun(store)
        assert await store.apply(settled(reply, Delivered.RETRY))
        [reply] = await take(store)
        assert not any(part.possible_duplicate for part in await kept(store, reply))
        assert await confirm(store, reply, 0)
        assert await store.apply(settled(reply, Delivered.DOUBT))
        assert await store.apply(Resend(frozenset(), 1)) == 1
        [again] = await take(store, 1)
        assert [part.possible_duplicate for part in await kept(store, again)] == [False, True, False]
        assert await store.apply(settled(again, Delivered.RETRY))
        [again] = await take(store, 1)
        assert [part.possible_duplicate for part in await kept(store, again)] == [False, True, False]

    async def test_the_death_of_the_sender_leaves_one_part_in_doubt(self, store: ContractStore) -> None:
        reply = await begun(store)
        assert await confirm(store, reply, 0)
        assert await store.apply(Doubt("another", 7)) == 1
        assert await store.apply(Resend(frozenset(), 8)) == 1
        [again] = await take(store, 8)
        assert [part.possible_duplicate for part in await kept(store, again)] == [False, True, False]

    async def test_an_old_fence_is_refused(self, store: ContractStore) -> None:
        reply = await begun(store)
        assert await store.apply(settled(reply, Delivered.RETRY))
        [again] = await take(store)
        assert await kept(store, reply) == ()
        assert not await confirm(store, reply, 0)
        assert len(await kept(store, again)) == 3
        assert await confirm(store, again, 0)

    async def test_an_answer_to_any_part_finds_the_lane(self, store: ContractStore) -> None:
        """And what it quotes is the reply."""
        road = StoreDriver(store)
        topic = replace(said("and here?"), topic="t1")
        await road.settle(topic, "a long answer")
        [reply] = await take(store)
        await store.apply(KeepParts(reply.id, reply.fence, _BODIES))
        assert [await confirm(store, reply, n) for n in range(3)] == [True] * 3
        assert await store.apply(settled(reply, Delivered.CONFIRMED))
        for n in range(3):
            answer = await road.receive(said(f"about part {n}", marks=ProviderMarks(reply_to=f"p{n}")))
            assert answer.lane == topic.lane
        [group] = await store.waiting([topic.lane])
        assert group.answered == {"p0", "p1", "p2"}

    async def test_what_is_given_up_can_be_sent_by_a_persons_word(self, store: ContractStore) -> None:
        """From the part on that did not arrive."""
        reply = await begun(store)
        assert await confirm(store, reply, 0)
        assert await store.apply(settled(reply, Delivered.DEAD))
        assert await store.apply(Decide(reply.id, again=True, at=9))
        [again] = await take(store, 9)
        assert [(part.body, part.is_sent, part.possible_duplicate) for part in await kept(store, again)] == [
            ("one", True, False), ("two", False, True), ("three", False, False)
        ]  # fmt: skip
