"""The contract of pairing: a stranger is sent a code once, and let in by it once."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.message import LOOP, STRANGER, Content, Inbound, Origin
from keepsaid.domain.pairing import CODE_MS, PENDING_MAX, LetIn, PairingState, SendCode, ShutOut
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.route import Action
from keepsaid.domain.visibility import Identity
from keepsaid.testing.builders import verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

CODE = "ABCDEFGH"
ANN = Identity("telegram", "4711", "7001")


def by(who: Identity, text: str = "let me in") -> Inbound:
    """What a stranger says."""
    origin = Origin(who.channel, who.account, f"chat:{who.sender}", who.sender, f"Person {who.sender}", direct=True)
    return Inbound(origin, Content(text.encode(), text, STRANGER))


async def sent(road: StoreDriver, who: Identity, code: str, at: int = 1) -> bool:
    """Whether a person who wrote is sent a code."""
    said = await road.receive(by(who, f"let me in at {at}"))
    notice = ReplyDraft(road.new_id(), f"your code is {code}", notice=True)
    return await road.store.apply(SendCode(who, said.id, code, notice, at, at + CODE_MS))


class PairingContract:
    """Asked for once an hour, by three at most; a code lets in one person, once."""

    async def test_a_stranger_is_sent_one_code_an_hour(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        assert await store.pairings.standing(ANN) is None
        assert await sent(road, ANN, CODE)
        assert not await sent(road, ANN, "JKLMNPQR", 2)
        assert await store.pairings.standing(ANN) is PairingState.PENDING
        [told] = await store.unseen("telegram", "chat:7001")
        assert (told.draft.text, told.draft.notice) == (f"your code is {CODE}", True)
        [one] = await store.pairings.everybody(9)
        assert (one.who, one.code, one.until, one.name, one.conversation) == (
            ANN, CODE, 1 + CODE_MS, "Person 7001", "chat:7001",
        )  # fmt: skip
        assert await sent(road, ANN, "JKLMNPQR", 1 + CODE_MS)

    async def test_few_codes_of_an_account_hold_at_a_time(self, store: ContractStore) -> None:
        """Those of another account are not counted."""
        road = StoreDriver(store)
        people = [ANN._replace(sender=str(n)) for n in range(PENDING_MAX + 1)]
        codes = [f"AAAAAAA{n}" for n in range(2, PENDING_MAX + 3)]
        asked = [await sent(road, who, code) for who, code in zip(people, codes, strict=True)]
        assert asked == [True] * PENDING_MAX + [False]
        assert await sent(road, ANN._replace(account="4712"), CODE)

    async def test_a_code_lets_in_one_person_once(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await sent(road, ANN, CODE)
        done = await store.apply(LetIn(2, CODE))
        assert done is not None
        assert (done.who, done.state, done.name) == (ANN, PairingState.KNOWN, "Person 7001")
        assert await store.apply(LetIn(2, CODE)) is None
        assert await store.pairings.standing(ANN) is PairingState.KNOWN
        assert not await sent(road, ANN, "JKLMNPQR", 2 * CODE_MS)
        assert await store.pairings.standing(ANN) is PairingState.KNOWN

    async def test_a_code_that_is_over_lets_in_nobody(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await sent(road, ANN, CODE)
        assert await store.apply(LetIn(1 + CODE_MS, CODE)) is None
        assert await store.apply(LetIn(2, "")) is None

    async def test_what_was_dropped_of_them_is_named(self, store: ContractStore) -> None:
        """So that it can be answered: what they alone said, and nothing that another one did."""
        road, dropped = StoreDriver(store), verdict(Action.DROP)
        await sent(road, ANN, CODE)
        batch = await road.route(by(ANN).lane, by=dropped)
        await road.queue(replace(by(ANN, "me too"), origin=replace(by(ANN).origin, sender="7002")), by=dropped)
        await road.queue(by(ANN, "and this is being answered"))
        done = await store.apply(LetIn(2, CODE))
        assert done is not None
        assert done.dropped == (batch,)

    async def test_the_owner_may_be_named(self, store: ContractStore) -> None:
        """Without a code, and whoever was let in before may turn out to be the owner."""
        for as_owner, state in ((False, PairingState.KNOWN), (True, PairingState.OWNER), (True, PairingState.OWNER)):
            done = await store.apply(LetIn(2, who=ANN, as_owner=as_owner))
            assert done is not None
            assert (done.state, done.dropped) == (state, ())
            assert await store.pairings.standing(ANN) is state

    async def test_who_is_shut_out_may_ask_again(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        assert not await store.apply(ShutOut(ANN))
        await store.apply(LetIn(2, who=ANN))
        assert await store.apply(ShutOut(ANN))
        assert await store.pairings.standing(ANN) is None
        assert await sent(road, ANN, CODE, 3)

    async def test_when_somebody_wrote_lately(self, store: ContractStore) -> None:
        """In one conversation, whatever the strand; what others said and what was a loop does not count."""
        road = StoreDriver(store)
        mine = by(ANN)
        others = replace(mine, origin=replace(mine.origin, sender="7002"))
        looped = replace(mine, content=replace(mine.content, event=LOOP))
        elsewhere = replace(mine, origin=replace(mine.origin, conversation="chat:other"))
        said = (mine, others, replace(mine, topic="5"), looped, elsewhere, mine)
        for at, one in enumerate(said, start=1):
            await road.receive(one, at)
        place = mine.origin.conversation
        assert list(await store.pairings.recent_times(ANN, place, 9)) == [6, 3, 1]
        assert list(await store.pairings.recent_times(ANN, place, 2)) == [6, 3]
        assert list(await store.pairings.recent_times(ANN, "chat:nobody", 9)) == []
