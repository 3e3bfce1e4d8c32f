"""The contract of what stands from turn to turn: how to speak, and how models count tokens."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import Effect, Measured, SetPersonality
from keepsaid.domain.memory import GLOBAL, person_of, person_scope
from keepsaid.domain.personality import Personality, session_scope
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.testing.builders import lane_of, outcome, said
from keepsaid.text.tokens import Calibration
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

ANN = person_scope(person_of(said().origin))
HERE = session_scope(lane_of())


async def leave(road: StoreDriver, *effects: Effect, at: int = 0, fence: int | None = None) -> bool:
    """A turn that leaves these behind; whether it was committed."""
    await road.queue(said(), at)
    claimed = await road.claim_one(at)
    batch = claimed.batch
    end = replace(outcome(), effects=effects)
    kept = batch.fence if fence is None else fence
    return await road.store.apply(TurnCommit(claimed.turn_id, batch.id, kept, end, None, at))


async def around(road: StoreDriver, room: str = "room") -> ClaimedBatch:
    """What the next turn of a room finds."""
    await road.queue(said(room=room))
    return await road.claim_one()


class PersonalityContract:
    """A personality is set with the commit of a turn, and found by the turns it is for."""

    async def test_what_is_set_is_found_by_its_scope(self, store: ContractStore) -> None:
        """Each scope on its own; what was not asked for is not given."""
        road = StoreDriver(store)
        set_here = SetPersonality(HERE, "short", "ann")
        assert await leave(road, set_here, SetPersonality(GLOBAL, "kind", "owner"), at=7)
        here, everywhere = Personality(HERE, "short", 7, "ann"), Personality(GLOBAL, "kind", 7, "owner")
        assert await store.personalities((HERE, GLOBAL, ANN)) == (everywhere, here)
        assert await store.personalities((ANN,)) == await store.personalities(()) == ()

    async def test_the_last_one_set_stands(self, store: ContractStore) -> None:
        """In one turn as over several; an empty text takes it back."""
        road = StoreDriver(store)
        assert await leave(road, SetPersonality(HERE, "one", "ann"), SetPersonality(HERE, "two", "ann"), at=1)
        assert [one.text for one in await store.personalities((HERE,))] == ["two"]
        assert await leave(road, SetPersonality(HERE, "three", "bob"), at=2)
        assert await store.personalities((HERE,)) == (Personality(HERE, "three", 2, "bob"),)
        assert await leave(road, SetPersonality(HERE, "", "bob"), SetPersonality(ANN, "", "bob"), at=3)
        assert await store.personalities((HERE, ANN)) == ()

    async def test_a_turn_finds_those_of_its_lane_its_people_and_everybody(self, store: ContractStore) -> None:
        """And none of another lane or person."""
        road = StoreDriver(store)
        elsewhere = SetPersonality(session_scope(lane_of("den")), "not here", "bob")
        named = [SetPersonality(scope, "so", "ann") for scope in (HERE, ANN, GLOBAL, person_scope("bob"))]
        assert await leave(road, elsewhere, *named)
        found = (await around(road)).around.personalities
        assert {one.scope for one in found} == {HERE, ANN, GLOBAL}

    async def test_a_refused_turn_leaves_nothing(self, store: ContractStore) -> None:
        """Effects are committed with the turn, or not at all."""
        road = StoreDriver(store)
        assert not await leave(road, SetPersonality(HERE, "short", "ann"), Measured("m", 10, 12), fence=0)
        assert await store.personalities((HERE,)) == ()


class CalibrationContract:
    """What models report of their prompts adds up, model by model."""

    async def test_reports_add_up_and_a_turn_finds_them(self, store: ContractStore) -> None:
        """By the rule of the domain, each model apart."""
        road = StoreDriver(store)
        assert await leave(road, Measured("one", 1_000, 1_200), Measured("one", 1_000, 1_000))
        assert await leave(road, Measured("two", 100, 90), Measured("one", 10, 0))
        found = (await around(road)).around
        assert found.calibration("one") == Calibration("one", 2_000, 2_200)
        assert found.calibration("two") == Calibration("two", 100, 90)
        assert found.calibration("three") == Calibration("three")
