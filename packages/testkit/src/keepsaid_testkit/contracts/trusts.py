"""The contract of stored trust: what is read back of a lane has the trust that it had when it was written."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import StageMemory
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.scheduling import AddSchedule, EndRun
from keepsaid.domain.visibility import trust_of
from keepsaid.testing.builders import consulted, lane_of, outcome, said
from keepsaid_testkit.contracts.context import summarised
from keepsaid_testkit.contracts.notes import SAVE
from keepsaid_testkit.contracts.schedules import come, new
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver


async def answered(road: StoreDriver, trust: Trust, records: tuple[Record, ...], *effects: StageMemory) -> None:
    """Somebody with this trust says something, and a turn ends with these records."""
    inbound = said()
    await road.queue(replace(inbound, origin=replace(inbound.origin, trust=trust)))
    one = await road.claim_one()
    end = replace(outcome(), records=records, effects=effects)
    assert await road.store.apply(TurnCommit(one.turn_id, one.batch.id, one.batch.fence, end, None, 0))


async def trusts(store: ContractStore, lane: Lane | None = None) -> list[Trust | None]:
    """The trusts of the records of a lane."""
    return [record.trust for record in (await store.context(lane or lane_of(), 99)).recent.records]


class TrustContract:
    """Trust is stored with what it is the trust of."""

    async def test_records_keep_the_trust_they_were_given(self, store: ContractStore) -> None:
        """Messages that of their sender, answers and tool output their own; in the tail and in a span."""
        road = StoreDriver(store)
        asked, found, told = consulted()
        for sender, tool, answer in ((Trust.OWNER, Trust.OWNER, Trust.OWNER), (Trust.KNOWN, Trust.EXTERNAL, None)):
            await answered(road, sender, (asked, replace(found, trust=tool), replace(told, trust=answer)))
        expected = [Trust.OWNER, None, Trust.OWNER, Trust.OWNER, Trust.KNOWN, None, Trust.EXTERNAL, None]
        assert await trusts(store) == expected
        span = await store.span(lane_of(), 0, 99)
        assert [record.trust for record in span.records] == expected

    async def test_a_summary_has_the_least_trust_of_all_it_stands_for(self, store: ContractStore) -> None:
        """Also of what an earlier summary covered; what is said later does not count."""
        road = StoreDriver(store)
        own = (Record(Role.ASSISTANT, "well", trust=Trust.OWNER),)
        for n, (sender, expected) in enumerate(
            ((Trust.OWNER, Trust.OWNER), (Trust.KNOWN, Trust.KNOWN), (Trust.EXTERNAL, Trust.EXTERNAL))
        ):
            await answered(road, sender, own)
            assert await store.apply(summarised(n, 2 * n + 2))
            summary = (await store.context(lane_of(), 9)).summary
            assert summary is not None
            assert summary.trust is expected
        await answered(road, Trust.OWNER, own)
        assert await store.apply(summarised(3, 8))
        last = (await store.context(lane_of(), 9)).summary
        assert last is not None
        assert last.trust is Trust.EXTERNAL
        [copied] = await store.summaries_due(9)
        assert copied.summary.trust is Trust.EXTERNAL

    async def test_an_answer_below_the_owner_makes_its_summary_so(self, store: ContractStore) -> None:
        """Where the owner asked and a tool brought outside text, the answer is trusted less than he is."""
        road = StoreDriver(store)
        await answered(road, Trust.OWNER, (Record(Role.ASSISTANT, "well", trust=Trust.EXTERNAL),))
        assert await store.apply(summarised(0, 2))
        summary = (await store.context(lane_of(), 9)).summary
        assert summary is not None
        assert summary.trust is Trust.EXTERNAL

    async def test_a_forwarded_text_is_from_outside(self, store: ContractStore) -> None:
        """Whoever forwards it: in the lane's summary, as in its records."""
        road = StoreDriver(store)
        inbound = said("[forwarded: from Bob]\ndo it")
        await road.settle(replace(inbound, origin=replace(inbound.origin, trust=Trust.OWNER)))
        [forwarded, _] = (await store.context(lane_of(), 9)).recent.records
        assert trust_of(forwarded) is Trust.EXTERNAL
        assert await store.apply(summarised(0, 2))
        summary = (await store.context(lane_of(), 9)).summary
        assert summary is not None
        assert summary.trust is Trust.EXTERNAL

    async def test_output_of_a_tool_without_a_stored_trust_is_from_outside(self, store: ContractStore) -> None:
        """As rows of earlier versions are; that of our own tools is not."""
        road = StoreDriver(store)
        asked, found, told = consulted()
        await answered(road, Trust.OWNER, (asked, replace(found, speaker="web"), told))
        await answered(road, Trust.OWNER, (asked, replace(found, speaker="memory_search"), told))
        tail = (await store.context(lane_of(), 9)).recent.records
        outputs = [trust_of(record) for record in tail if record.role is Role.TOOL]
        assert outputs == [Trust.EXTERNAL, Trust.OWNER]

    async def test_a_post_has_the_trust_of_its_schedule(self, store: ContractStore) -> None:
        """Whoever added it."""
        for number, trust in enumerate((Trust.OWNER, Trust.EXTERNAL), 1):
            at = 100 * number
            assert await store.apply(AddSchedule(new(number, trust=trust), at, 0))
            key = await come(store, at, number, next_at=None)
            await store.apply(EndRun(key, "execute", at, reply=ReplyDraft(70 + number, "drink")))
        posts = (await store.context(lane_of(), 9)).posts
        assert [post.trust for post in posts] == [Trust.OWNER, Trust.EXTERNAL]

    async def test_what_memory_is_asked_for_keeps_the_trust_of_its_turn(self, store: ContractStore) -> None:
        """None where none was stored."""
        road = StoreDriver(store)
        wanted = tuple(replace(SAVE, n=n, trust=trust) for n, trust in enumerate((Trust.OWNER, Trust.EXTERNAL, None)))
        await answered(road, Trust.OWNER, (Record(Role.ASSISTANT, "well"),), *wanted)
        [work] = await store.episode_work(9)
        assert [deed.trust for deed in work.staged] == [Trust.OWNER, Trust.EXTERNAL, None]
