"""A status says the same by command, over HTTP and in the library, and names what a person must do."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.unit.http_cast import BASE, site

from keepsaid import Keepsaid, Message
from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import migrate
from keepsaid.config import Home
from keepsaid.config.settings import BufferConfig
from keepsaid.domain.event import DeliveryLine
from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane
from keepsaid.domain.retention import Backlog, PruneHistory
from keepsaid.domain.session import CollectionLine
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import ChannelDepth, Overview
from keepsaid.interfaces.cli.program import run
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


HTTP = ChannelDepth("http", 1, 0, queued=12, leased=1, routed_at=300_000)
WAITING = {"channels": (HTTP, ChannelDepth("github", 2, 5)), "batches": {"queued": 1}}
FAILED = ChannelDepth("http", 0, None, review=2, dead=1, person_at=100_000)
LANE = Lane("http", "default", "kitchen", "root:kitchen")
PARKED = CollectionLine(7, LANE, "parked", "failed", 9, 3, 3, None, 5, "no source", 0)
LOST = DeliveryLine(8, "crm", 1, "turn.committed", "7", "dead", 20, 0, "HTTP 500")
ALL = replace(
    seen(
        channels=(FAILED,),
        batches={"dead": 1, "review": 2},
        replies={"dead": 1},
        tasks={"needs_review": 1},
        held=2,
        held_first=5,
    ),
    backlog=Backlog(10_000, 200_000),
    disabled=(5,),
    host=HostStatus(1_000_000, {"desk": 2}, {"weather": "it raised KeyError"}, {"files": "it did not answer in time"}),
    parked=(PARKED,),
    undelivered=(LOST,),
    unfetched=Backlog(3, 100_000),
)
CONCERNS = {
    "1 dead batch": "keepsaid inbox ls --state dead",
    "2 batches to review": "keepsaid inbox ls --state review",
    "1 reply that could not be delivered": "keepsaid inbox ls --reply dead",
    "1 task to review": "keepsaid inbox tasks ls --state needs_review",
    "2 batches wait to run alone: the program died at least twice in a row while it worked on each": (
        f"keepsaid inbox why {show('batch', 5)}"
    ),
    "3 replies not fetched or sent yet, the oldest for 13 m 20 s": "keepsaid inbox ls --reply pending",
    "memory extraction failed too often for 1 session": "keepsaid memory extract ls --state parked",
    "1 schedule disabled after too many failures": "keepsaid schedule ls",
    "1 event could not be delivered to a subscriber": "keepsaid ext events dead",
    "extension weather is quarantined: it raised KeyError": "keepsaid ext show weather",
    "tools of files are missing: it did not answer in time": "keepsaid ext tools ls",
    "2 tools of desk not offered until you accept": "keepsaid ext tools accept desk",
    "10,000 messages wait; buffer.warn_count is 10,000": "keepsaid inbox ls",
    "the oldest message waits 11 m 40 s; buffer.warn_age_s is 600": "keepsaid inbox ls",
    "0.0 GB of disk are free; below buffer.min_free_disk_mb no message is taken in": "",
}


@pytest.mark.parametrize(
    ("status", "works", "sentence"),
    [
        (CALM, True, "Up: nothing waits."),
        (CALM, False, "Up: nothing waits."),
        (seen(**WAITING), True, "Up: 3 messages to route and 1 batch to answer."),
        (seen(**WAITING), False, "Up: 3 messages to route and 1 batch to answer, kept for the next start."),
        (
            seen(batches={"queued": 1, "leased": 2}, deferred=1),
            True,
            "Up: 3 batches to answer (1 of them when an outage ends).",
        ),
        (
            seen(batches={"queued": 1, "dead": 1}),
            True,
            "Up: 1 batch to answer. 1 thing needs attention.",
        ),
    ],
    ids=["calm", "down", "waiting", "kept", "deferred", "dead"],
)
def test_the_sentence_says_what_waits_and_what_is_wrong(status: Status, works: bool, sentence: str) -> None:
    assert status.describe("Up", works=works) == sentence


def test_every_concern_names_the_command_that_helps() -> None:
    assert {one.what: one.command for one in ALL.concerns()} == CONCERNS
    assert [one["what"] for one in status_shape(ALL)["attention"]] == [*CONCERNS]
    assert ALL.describe("Up", works=True) == f"Up: nothing waits. {len(CONCERNS)} things need attention."


@pytest.mark.parametrize("command", sorted(filter(None, CONCERNS.values())))
def test_every_command_exists(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It may find nothing; it is never a wrong command line."""
    assert run(["--home", str(tmp_path), *command.split()[1:]]) != 2
    assert "Usage" not in capsys.readouterr().err


PLANTED = """
UPDATE batch SET state = 'dead' WHERE id = (SELECT min(id) FROM batch);
UPDATE batch SET state = 'review' WHERE id = (SELECT max(id) FROM batch);
UPDATE reply SET state = 'dead' WHERE id = (SELECT min(id) FROM reply);
UPDATE reply SET state = 'pending', created_at = 0 WHERE id = (SELECT max(id) FROM reply);
UPDATE session SET collection = 'parked', collect_at = NULL WHERE id = (SELECT min(id) FROM session);
"""
FOUND = (
    "1 dead batch",
    "1 batch to review",
    "1 reply that could not",
    "1 reply not fetched or sent yet",
    "extraction failed",
)


async def test_doctor_shows_what_status_calls_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    async with Keepsaid.open(tmp_path, settings=BASE) as ks:
        for room in ("kitchen", "garden"):
            await ks.inbox.put(Message("The kettle is blue.", "ann", room))
        batches = ks.inbox.batches(consumer="test")
        for _ in range(2):
            await (await anext(batches)).done("I see.")
        await batches.aclose()
    home = Home.at(tmp_path)
    with closing(open_writer(home.data / "buffer.db")) as db:
        migrate(db, home.data / "buffer.db", "buffer")
        db.execute(PLANTED)
    account = {
        "extensions": [
            {"id": "weather", "state": "quarantined", "reason": "it raised KeyError"},
            {"id": "tips", "state": "active", "reason": None, "notes": ["about took too long three times"]},
        ]
    }
    home.extensions_file.parent.mkdir(parents=True, exist_ok=True)
    home.extensions_file.write_text(json.dumps(account), "utf-8")
    told = await asyncio.to_thread(printed, capsys, "--home", str(tmp_path), "status", "--json")
    looked = await asyncio.to_thread(printed, capsys, "--home", str(tmp_path), "doctor", "--offline", "--json")
    attention = [(one["what"], one["command"]) for one in told["attention"]]
    noted = "extension tips: about took too long three times"
    for begin in (*FOUND, "extension weather is quarantined: it raised KeyError", noted):
        assert any(begin in what for what, _ in attention), (begin, attention)
    assert len(attention) == len(FOUND) + 2
    assert attention == [(one["what"], one["fix"]) for one in looked["findings"] if one["level"] == "warn"]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    """What a command prints as JSON."""
    run([*arguments])
    shape: dict[str, Any] = json.loads(capsys.readouterr().out)
    return shape


def test_the_shape_has_the_oldest_of_all_channels_and_every_state_that_matters() -> None:
    shape = status_shape(seen(**WAITING, usage=Usage(3, 4, cost_micros=2_500_000)))
    assert (shape["unrouted"]["total"], shape["unrouted"]["oldest_age_ms"]) == (3, 900_000)
    assert [one["oldest_age_ms"] for one in shape["unrouted"]["channels"]] == [900_000, 899_995]
    assert shape["batches"] == {"queued": 1, "leased": 0, "review": 0, "dead": 0}
    assert (shape["tokens"], shape["cost_usd"]) == ({"in": 3, "out": 4}, 2.5)
    assert (shape["backlog"]["oldest_at"], shape["pruned"]["last_run_at"], shape["held"]["first"]) == (None, None, None)


def test_a_channel_with_no_unrouted_message_still_shows_what_waits() -> None:
    busy = ChannelDepth("tele", 0, None, queued=26, leased=1, routed_at=840_000)
    calm = ChannelDepth("quiet", 0, None, leased=1, routed_at=890_000)
    found = seen(channels=(busy, calm, replace(calm, channel="asks", review=1, person_at=0)))
    assert [*found.channels_waiting()] == [
        "tele: unrouted 0, queued 26, leased 1, oldest 1 m 0 s",
        "asks: review 1, dead 0, oldest 15 m 0 s",
    ]
    ages = [(one["queued"], one["oldest_age_ms"]) for one in status_shape(found)["channels"]]
    assert ages == [(26, 60_000), (0, 10_000), (0, 10_000)]


def test_a_channel_counts_apart_what_waits_for_a_person() -> None:
    [depth] = status_shape(seen(channels=(FAILED,)))["channels"]
    asking = {"total": 3, "oldest_at": "1970-01-01T00:01:40.000Z", "oldest_age_ms": 800_000}
    counts = {"channel": "http", "unrouted": 0, "queued": 0, "leased": 0, "review": 2, "dead": 1}
    assert depth == {**counts, "oldest_at": None, "oldest_age_ms": None, "for_person": asking}


async def test_over_http_the_owner_reads_it_and_nobody_else(tmp_path: Path) -> None:
    async with site(tmp_path, buffer={"window_ms": 0, "min_free_disk_mb": 1_000_000_000}) as running:
        told = (await running.client.get("/v1/status", headers=running.owner)).json()
        assert (await running.client.get("/v1/status")).status_code == 401
        shape = status_shape(await running.instance.services.status.read())
    assert len(told["attention"]) == 1
    assert told["sentence"] == "Running: nothing waits. 1 thing needs attention."
    assert shape.keys() == told.keys() - {"sentence"}
    assert (told["messages"], told["memories"]["total"]) == (0, 0)
    assert told["disk"]["free_bytes"] < told["disk"]["floor_bytes"]


async def test_the_library_counts_what_was_put(tmp_path: Path) -> None:
    async with Keepsaid.open(tmp_path, settings=BASE) as ks:
        await ks.inbox.put(Message("The kettle is blue.", "ann", "kitchen"))
        await ks.memory.add("The lantern is brass.")
        status = await ks.status()
    assert (status["messages"], status["backlog"]["waiting"], status["attention"]) == (1, 1, [])
    assert status["memories"] == {"total": 1, "kinds": {"fact": 1}}
