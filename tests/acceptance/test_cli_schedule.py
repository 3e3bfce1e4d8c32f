"""`keepsaid schedule`: added, listed, run, paused and cancelled; beside a running instance and without."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.acceptance.program import Program, inside
from tests.acceptance.test_cli_lanes import perhaps_serving
from tests.unit.http_cast import refused, site
from tests.waits import HANG_S

Capture = pytest.CaptureFixture[str]
DAILY = ("schedule", "add", "--cron", "0 9 * * *", "--timezone", "Europe/Berlin", "--name", "tea", "--say", "drink tea")


@pytest.fixture
def program(tmp_path: Path) -> Program:
    made = Program(tmp_path / "home")
    made.configure("models: {chat: none}\nbuffer: {window_ms: 0}\n")
    return made


def until_said(program: Program, capsys: Capture) -> dict[str, Any]:
    """The schedule once its run has been executed."""
    deadline = monotonic() + HANG_S
    while True:
        shape: dict[str, Any] = inside(program, capsys, "schedule", "show", "tea", "--json").json
        if shape["runs"] and shape["runs"][0]["state"] == "executed":
            return shape
        assert monotonic() < deadline


@pytest.mark.parametrize("serving", [False, True])
def test_a_schedule_lives_as_its_owner_says(program: Program, capsys: Capture, *, serving: bool) -> None:
    with perhaps_serving(program, serving=serving):
        added = inside(program, capsys, *DAILY, "--json").json
        assert (added["state"], added["when"], added["what"]) == ("active", "0 9 * * * (Europe/Berlin)", "say")
        assert added["to"]["key"] == "root:terminal"
        assert "already" in inside(program, capsys, *DAILY, code=1).err
        [listed] = inside(program, capsys, "schedule", "ls", "--json").json["schedules"]
        assert listed == {key: value for key, value in added.items() if key != "schema_version"}
        assert inside(program, capsys, "schedule", "pause", "tea", "--json").json["state"] == "paused"
        assert "cannot pause" in inside(program, capsys, "schedule", "pause", added["id"], code=1).err
        assert inside(program, capsys, "schedule", "resume", added["id"], "--json").json["next_at"] == added["next_at"]
        assert inside(program, capsys, "schedule", "run", "tea", "--json").json["id"] == added["id"]
        if serving:
            shape = until_said(program, capsys)
            assert shape["runs"][0]["output"] == "waiting"
            assert "drink tea" in inside(program, capsys, "schedule", "show", "tea").out
        assert inside(program, capsys, "status", "--json").json["schedules"]["next_at"]
        assert inside(program, capsys, "schedule", "cancel", "tea", "--json").json["state"] == "cancelled"
        assert inside(program, capsys, "schedule", "ls", "--json").json["schedules"] == []
        assert len(inside(program, capsys, "schedule", "ls", "--all", "--json").json["schedules"]) == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--cron", "0 25 * * *", "--say", "x"), "hour"),
        (("--at", "2001-01-01", "--say", "x"), "in the past"),
        (("--every", "60", "--say", "x", "--channel", "nowhere"), "must be on an open channel"),
        (("--cron", "0 1 * * *", "--timezone", "Mars", "--say", "x"), "time zone"),
    ],
)
def test_what_cannot_come_is_refused(program: Program, capsys: Capture, options: tuple[str, ...], said: str) -> None:
    refused = inside(program, capsys, "schedule", "add", *options, code=1)
    assert said in refused.err
    assert "Nothing was changed" in refused.err
    assert "try   keepsaid schedule add --help" in refused.err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "--cron, --every, --at"),
        (("--every", "5", "--at", "2030-01-01", "--say", "x"), "--cron, --every, --at"),
        (("--every", "60"), "--say, --ask, --run, --task"),
        (("--every", "1x", "--say", "x"), "'1x' is not an interval"),
        (("--every", "60", "--say", "x", "--timezone", "Mars/X"), "--timezone goes with --cron"),
    ],
)
def test_one_time_and_one_thing_are_asked_for(
    program: Program, capsys: Capture, options: tuple[str, ...], said: str
) -> None:
    assert said in inside(program, capsys, "schedule", "add", *options, code=2).err


def test_an_interval_has_a_unit_or_is_in_seconds(program: Program, capsys: Capture) -> None:
    for interval, shown in (("90", "90s"), ("90s", "90s"), ("900", "15m"), ("12h", "12h"), ("1d", "1d"), ("1w", "7d")):
        added = inside(program, capsys, "schedule", "add", "--every", interval, "--say", "x")
        assert f"every {shown}\n" in added.out
        assert "a day" not in added.err


def test_who_asks_often_is_told_how_often_that_is(program: Program, capsys: Capture) -> None:
    said = inside(program, capsys, "schedule", "add", "--every", "5s", "--say", "x")
    assert "it runs 17,280 times a day\n" in said.err
    asked = inside(program, capsys, "schedule", "add", "--every", "1s", "--ask", "x")
    assert "it runs 86,400 times a day; each run calls the model" in asked.err


def test_what_was_cancelled_says_no_next_time(program: Program, capsys: Capture) -> None:
    inside(program, capsys, *DAILY)
    assert "next        -" in inside(program, capsys, "schedule", "cancel", "tea").out


def test_there_is_nothing_where_nothing_was_added(program: Program, capsys: Capture) -> None:
    assert inside(program, capsys, "schedule", "ls", "--json").json["schedules"] == []
    assert "no schedule tea" in inside(program, capsys, "schedule", "show", "tea", code=1).err
    assert "no schedule tea" in inside(program, capsys, "schedule", "pause", "tea", code=1).err


def test_what_the_config_names_comes_and_is_paused_but_not_cancelled(program: Program, capsys: Capture) -> None:
    program.configure(
        "models: {chat: none}\nschedules: {named: {tea: {every_s: 3600, say: drink tea}}}\nbuffer: {window_ms: 0}\n"
    )
    with perhaps_serving(program, serving=True):
        [one] = inside(program, capsys, "schedule", "ls", "--json").json["schedules"]
        assert (one["source"], one["name"], one["when"]) == ("config", "tea", "every 1h")
        assert "stands in the config" in inside(program, capsys, "schedule", "cancel", "tea", code=1).err
        assert inside(program, capsys, "schedule", "pause", "tea", "--json").json["state"] == "paused"


async def test_schedules_over_http(tmp_path: Path) -> None:
    async with site(tmp_path) as one:
        client, owner = one.client, one.owner
        refused(await client.get("/v1/schedules"), 401)
        tea = {"name": "tea", "every_s": 3_600, "task": "make tea"}
        made = await client.post("/v1/schedules", json=tea, headers=owner)
        assert made.status_code == 201
        assert (await client.get("/v1/schedules/tea", headers=owner)).json()["id"] == made.json()["id"]
        paused = await client.post(f"/v1/schedules/{made.json()['id']}/pause", json={}, headers=owner)
        assert (paused.status_code, paused.json()["state"]) == (200, "paused")
        refused(await client.post("/v1/schedules/tea/pause", json={}, headers=owner), 422)
        refused(await client.post("/v1/schedules/tea/boil", json={}, headers=owner), 404)
        refused(await client.get("/v1/schedules/coffee", headers=owner), 404)
        refused(await client.post("/v1/schedules/coffee/run", json={}, headers=owner), 404)
        for wrong in ({}, tea, {**tea, "name": "more", "cups": 2}, {"every_s": 60, "run": "nobody knows"}):
            told = refused(await client.post("/v1/schedules", json=wrong, headers=owner), 422)
            assert told["hint"] == "keepsaid schedule add --help"
        assert len((await client.get("/v1/schedules", headers=owner)).json()["schedules"]) == 1
