"""Sessions follow one another without gap or overlap, whatever happens to a lane and its clock."""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.effort import examples

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.compaction import CutContext, CutReason
from keepsaid.domain.session import Rest, Session
from keepsaid.domain.slot import Slot
from keepsaid.testing.builders import lane_of, said
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

HAPPENINGS = st.lists(
    st.tuples(st.sampled_from(["turn", "turn", "rest", "reset", "reopen"]), st.integers(-4_000_000, 4_000_000)),
    max_size=14,
)
Seen = tuple[list[Session], list[Slot]]


async def walked(store: ContractStore, happenings: list[tuple[str, int]], path: Path | None, *, reopens: bool) -> Seen:
    """The sessions of a lane after all of it."""
    road, at = StoreDriver(store), 10_000_000
    for what, passed in happenings:
        at += passed
        if what == "turn":
            await road.settle(said(), at=at)
        elif what == "rest":
            await road.store.apply(Rest(at - 60_000, at - 3_600_000, at, at))
        elif what == "reset":
            tail = await road.store.context(lane_of(), 1)
            await road.store.apply(CutContext(lane_of(), tail.version, tail.head, CutReason.RESET, at))
        elif reopens and path is not None and hasattr(road.store, "close"):
            await road.store.close()
            road.store = await open_operations(path)
    seen = list(await road.store.sessions(lane_of(), 99)), list(await road.store.slots(lane_of(), 99))
    if path is not None and hasattr(road.store, "close"):
        await road.store.close()
    return seen


@given(happenings=HAPPENINGS)
@settings(max_examples=examples(10), deadline=None)
def test_they_are_contiguous_the_same_on_both_stores_and_over_restarts(happenings: list[tuple[str, int]]) -> None:
    async def all_three() -> list[Seen]:
        with TemporaryDirectory() as folder:
            paths = [Path(folder, name) for name in ("one.db", "two.db")]
            return [
                await walked(InMemoryOperations(), happenings, None, reopens=False),
                await walked(await open_operations(paths[0]), happenings, paths[0], reopens=False),
                await walked(await open_operations(paths[1]), happenings, paths[1], reopens=True),
            ]

    memory, kept, reopened = asyncio.run(all_three())
    assert memory == kept == reopened
    sessions = memory[0][::-1]
    position = 0
    for session in sessions:
        assert session.first == position + 1
        assert session.last >= session.first
        position = session.last
    assert position == 2 * sum(what == "turn" for what, _ in happenings)
    assert [one.state == "ended" for one in sessions[:-1]] == [True] * len(sessions[:-1])
