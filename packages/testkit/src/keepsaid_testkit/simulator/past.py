"""Checks that each record of a lane is in its tail or in what left it, once (short: machine and judge need it)."""

from __future__ import annotations

from collections.abc import Iterable

from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Role
from keepsaid.ports.store_views import LaneView

_RECORDS_MAX = 100_000


async def gaps(store: LaneView, lanes: Iterable[Lane]) -> list[str]:
    """What is wrong with the contexts of these lanes, in words."""
    return [f"{lane}: {what}" for lane in sorted(set(lanes)) for what in await _gaps(store, lane)]


async def _gaps(store: LaneView, lane: Lane) -> list[str]:
    tail = await store.context(lane, _RECORDS_MAX)
    found, reached = [], 0
    past = await store.past(lane)
    for number, stretch in enumerate(past, 1):
        if (stretch.version, stretch.first) != (number, reached + 1) or stretch.last < reached:
            found.append(f"version {stretch.version} takes {stretch.first} to {stretch.last} after {reached}")
        reached = max(reached, stretch.last)
    if (len(past), reached) != (tail.version, tail.covered):
        found.append(f"its head is of version {tail.version} and covers {tail.covered}, not {len(past)} and {reached}")
    rest = await store.span(lane, tail.covered, _RECORDS_MAX)
    if rest.positions != tail.positions:
        found.append(f"the tail shows {tail.positions} of {rest.positions}")
    if tail.recent.records and tail.recent.records[0].role is Role.TOOL:
        found.append("the tail begins with a result")
    if tail.summary is not None and not tail.summary.text.strip():
        found.append("its summary is empty")
    return found
