"""The contract of signed bodies: the same body under another delivery id is a duplicate while it counts."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import IntakeResult, Receive, Received
from keepsaid.domain.message import BodyKey, Inbound, ProviderMarks
from keepsaid.testing.builders import AT_ONCE, arrival, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

_COUNTS_MS = 1_000


def signed(delivery: str, text: str = "opened", event: str = "issues.opened") -> Inbound:
    """A delivery whose signature covers its payload alone."""
    inbound = said(text, marks=ProviderMarks(delivery))
    return replace(inbound, content=replace(inbound.content, event=event))


async def deliver(road: StoreDriver, inbound: Inbound, at: int = 0) -> Received:
    """Receive it as a channel that deduplicates bodies does."""
    body = BodyKey(inbound.body_hash, at + _COUNTS_MS)
    return await road.store.apply(Receive(arrival(road.new_id(), inbound, at)._replace(body=body), AT_ONCE))


class BodiesContract:
    """A replay of a signed body creates no new work."""

    async def test_the_same_body_under_another_delivery_id_is_a_duplicate(self, store: ContractStore) -> None:
        """The receipt is that of the first, and nothing is stored."""
        road = StoreDriver(store)
        first = await deliver(road, signed("guid-1"))
        again = await deliver(road, signed("guid-2"), 999)
        assert again == first._replace(intake=IntakeResult.DUPLICATE)
        assert (await deliver(road, signed("guid-3", "closed"))).number == 2

    async def test_the_same_body_under_another_event_name_is_a_duplicate(self, store: ContractStore) -> None:
        """Also under the delivery id of the first: no signature covers either header."""
        road = StoreDriver(store)
        first = await deliver(road, signed("guid-1"))
        for delivery in ("guid-1", "guid-2"):
            again = await deliver(road, signed(delivery, event="push"))
            assert again == first._replace(intake=IntakeResult.DUPLICATE)

    async def test_a_body_counts_until_its_time_is_over(self, store: ContractStore) -> None:
        """Then it is a new message."""
        road = StoreDriver(store)
        first = await deliver(road, signed("guid-1"))
        later = await deliver(road, signed("guid-2"), _COUNTS_MS)
        assert (first.intake, later.intake, later.number) == (IntakeResult.STORED, IntakeResult.STORED, 2)
        assert (await deliver(road, signed("guid-3"), 2 * _COUNTS_MS - 1)).id == later.id

    async def test_a_refused_delivery_keeps_no_body(self, store: ContractStore) -> None:
        """A conflict stores nothing, so the body is new when it comes under an id of its own."""
        road = StoreDriver(store)
        await deliver(road, signed("guid-1"))
        assert (await deliver(road, signed("guid-1", "closed"))).intake is IntakeResult.CONFLICT
        assert (await deliver(road, signed("guid-2", "closed"))).intake is IntakeResult.STORED

    async def test_bodies_are_compared_within_one_account(self, store: ContractStore) -> None:
        """Another account of the channel may be sent the same."""
        road = StoreDriver(store)
        inbound = signed("guid-1")
        other = replace(inbound, origin=replace(inbound.origin, account="another"))
        assert [(await deliver(road, one)).intake for one in (inbound, other)] == [IntakeResult.STORED] * 2

    async def test_a_message_without_a_body_key_repeats_freely(self, store: ContractStore) -> None:
        """People may say the same twice."""
        road = StoreDriver(store)
        assert [(await road.receive(said("ok"))).intake for _ in range(2)] == [IntakeResult.STORED] * 2
