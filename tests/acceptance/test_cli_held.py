"""Batches that may stop the program wait to run alone: `status`, `doctor` and `inbox why` say so."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

from keepsaid.adapters.sqlite.stores import open_stores
from keepsaid.adapters.system.machine import SystemIds
from keepsaid.domain.ids import show
from keepsaid_testkit.contracts.crashes import ProcessGenerations


async def held(home: Path) -> str:
    """Leave a batch behind that was in flight at two deaths in a row; returns its name."""
    data = home / "data"
    data.mkdir(parents=True, mode=0o700)
    async with AsyncExitStack() as closing:
        store, _ = await open_stores(data / "buffer.db", data / "memory.db", SystemIds(), closing)
        queued = await ProcessGenerations(store).hold()
    return show("batch", queued.batch_id)


def test_status_doctor_and_why_say_what_waits_to_run_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    batch = asyncio.run(held(program.home))
    told = inside(program, capsys, "status")
    assert "! 1 batch waits to run alone: the program died at least twice" in told.out
    assert f"keepsaid inbox why {batch}" in told.out
    assert inside(program, capsys, "status", "--json").json["held"] == {"total": 1, "first": batch}
    looked = inside(program, capsys, "doctor", "--offline", code=5).out
    assert "1 batch waits to run alone: the program died at least twice in a row" in looked
    assert f"fix: keepsaid inbox why {batch}" in looked
    why = inside(program, capsys, "inbox", "why", batch).out
    assert "until the program has run 10 s without it" in why
    assert "the program was stopped 2 times in a row while it worked on this, so it runs alone" in why


def test_nothing_is_said_of_it_where_nothing_crashed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = Program(tmp_path / "home", {"KEEPSAID_MODELS__CHAT": "none"})
    program.run("inbox", "send", "hello")
    assert inside(program, capsys, "status", "--json").json["held"] == {"total": 0, "first": None}
    assert "to run alone" not in inside(program, capsys, "status").out
    assert "to run alone" not in program.run("doctor", "--offline", code=None).out
