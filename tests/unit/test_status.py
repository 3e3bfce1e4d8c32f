"""A status says the same by command, over HTTP and in the library, and names what a person must do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import BASE, site

from keepsaid import Keepsaid, Message
from keepsaid.config.settings import BufferConfig
from keepsaid.domain.retention import Backlog, PruneHistory
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import ChannelDepth, Overview
from keepsaid.interfaces.status_shape import status_shape
from keepsaid.services.status import HostStatus, Status

CALM = Status(
    at=900_000,
    overview=Overview((ChannelDepth("http", 0, None),), {"done": 2}, {}, {}, {}, Usage(), 0, 2),
    memories={"fact": 1},
    backlog=Backlog(0),
    history=PruneHistory((), None, 0),
    next_due=None,
    disabled=(),
    host=HostStatus(10**12, {}),
    limits=BufferConfig(),
)


def seen(**changes: Any) -> Status:
    """A calm status with another overview."""
    return replace(CALM, overview=replace(CALM.overview, **changes))


WAITING = {"channels": (ChannelDepth("http", 1, 0), ChannelDepth("github", 2, 5)), "batches": {"queued": 1}}
BEYOND: dict[str, Any] = {
    "backlog": Backlog(10_000, 200_000),
    "disabled": (5,),
    "host": HostStatus(1, {"desk": 2}),
}


@pytest.mark.parametrize(
    ("status", "works", "sentence"),
    [
        (CALM, True, "Up: nothing waits."),
        (CALM, False, "Up: nothing waits."),
        (seen(**WAITING), True, "Up: 3 messages to route and 1 batch to answer."),
        (seen(**WAITING), False, "Up: 3 messages to route and 1 batch to answer, kept for the next start."),
        (
            seen(batches={"queued": 1, "leased": 2}, deferred=1, held=2),
            True,
            (
                "Up: 0 messages to route and 3 batches to answer; 1 batch waits for an outage to end; "
                "2 batches wait to run alone after crashes."
            ),
        ),
        (
            seen(batches={"queued": 1, "dead": 1, "review": 2}, replies={"dead": 1}),
            True,
            "Up, and a person is needed: 1 dead batch, 2 batches to review, 1 reply that could not be delivered.",
        ),
        (
            replace(CALM, **BEYOND),
            True,
            (
                "Up: nothing waits. Warning: 10,000 messages wait (buffer.warn_count 10,000). "
                "Warning: the oldest waits 11 m 40 s (buffer.warn_age_s 600). "
                "Warning: 1 schedule failed too often and will not come again (keepsaid schedule ls). "
                "Warning: 2 tools of desk not offered until you accept (keepsaid tools accept desk). "
                "Warning: too little disk is free to take messages in (buffer.min_free_disk_mb)."
            ),
        ),
    ],
    ids=["calm", "down", "waiting", "kept", "held", "dead", "beyond"],
)
def test_the_sentence_says_what_waits_and_what_is_wrong(status: Status, works: bool, sentence: str) -> None:
    assert status.describe("Up", works=works) == sentence


def test_the_shape_has_the_oldest_of_all_channels_and_every_state_that_matters() -> None:
    shape = status_shape(seen(**WAITING, usage=Usage(3, 4, cost_micros=2_500_000)))
    assert (shape["unrouted"]["total"], shape["unrouted"]["oldest_age_ms"]) == (3, 900_000)
    assert [one["oldest_age_ms"] for one in shape["unrouted"]["channels"]] == [900_000, 899_995]
    assert shape["batches"] == {"queued": 1, "leased": 0, "review": 0, "dead": 0}
    assert (shape["tokens"], shape["cost_usd"]) == ({"in": 3, "out": 4}, 2.5)
    assert (shape["backlog"]["oldest_at"], shape["pruned"]["last_run_at"], shape["held"]["first"]) == (None, None, None)


async def test_over_http_the_owner_reads_it_and_nobody_else(tmp_path: Path) -> None:
    async with site(tmp_path, buffer={"window_ms": 0, "min_free_disk_mb": 1_000_000_000}) as running:
        told = (await running.client.get("/v1/status", headers=running.owner)).json()
        assert (await running.client.get("/v1/status")).status_code == 401
        shape = status_shape(await running.instance.services.status.read())
    assert told["sentence"] == f"Running: nothing waits. Warning: {told['warnings'][0]}."
    assert shape.keys() == told.keys() - {"sentence"}
    assert (told["messages"], told["memories"]["total"]) == (0, 0)
    assert told["disk"]["free_bytes"] < told["disk"]["floor_bytes"]


async def test_the_library_counts_what_was_put(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=BASE) as ks:
        await ks.inbox.put(Message("The kettle is blue.", "ann", "kitchen"))
        await ks.memory.add("The lantern is brass.")
        status = await ks.status()
    assert (status["messages"], status["backlog"]["waiting"], status["warnings"]) == (1, 1, [])
    assert status["memories"] == {"total": 1, "kinds": {"fact": 1}}
