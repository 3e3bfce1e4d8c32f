"""Commands for operators: doctor repairs and reports, status checks for monitoring, the inbox is followed."""

from __future__ import annotations

import json
import stat
import zipfile
from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

from keepsaid.interfaces.cli.console import Table

Capture = pytest.CaptureFixture[str]
_WAITING = "buffer: {warn_count: 1}\nmodels: {api_key: wick-of-a-candle}\n"


@pytest.fixture
def waiting(tmp_path: Path, capsys: Capture) -> Program:
    """A home where one message waits, which is reason enough for attention there."""
    program = Program(tmp_path / "home")
    program.configure(_WAITING)
    inside(program, capsys, "inbox", "send", "the lamp is broken")
    return program


def test_doctor_repairs_modes_and_a_stale_address_file(waiting: Program, capsys: Capture) -> None:
    data, address = waiting.home / "data", waiting.home / "run/runtime.json"
    data.chmod(0o755)
    address.parent.mkdir(mode=0o700, exist_ok=True)
    address.write_text(json.dumps({"url": "http://127.0.0.1:1", "token": "t", "pid": 2**22 + 1}), "utf-8")
    address.chmod(0o600)
    found = inside(waiting, capsys, "doctor", "--offline", code=5).out
    assert f"chmod 700 {data}" in found
    assert "keepsaid doctor --fix" in found
    mended = inside(waiting, capsys, "doctor", "--offline", "--fix", code=5)
    assert f"repaired: {data} can be read by others" in mended.err
    assert f"repaired: {address} names pid" in mended.err
    assert "can be read by others" not in mended.out
    assert stat.S_IMODE(data.stat().st_mode) == 0o700
    assert not address.exists()


def test_a_bundle_holds_no_text_no_secret_and_no_place(waiting: Program, capsys: Capture, tmp_path: Path) -> None:
    file = tmp_path / "report.zip"
    inside(waiting, capsys, "doctor", "--offline", "--bundle", str(file), code=5)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with zipfile.ZipFile(file) as bundle:
        parts = {name: bundle.read(name).decode() for name in bundle.namelist()}
    assert sorted(parts) == ["doctor.json", "log.json", "settings.json", "status.json", "versions.json"]
    assert {json.dumps(json.loads(text)) for text in parts.values()}
    assert json.loads(parts["status.json"])["backlog"]["waiting"] == 1
    assert "buffer.warn_count" in parts["settings.json"]
    for hidden in ("lamp", "wick-of-a-candle", str(waiting.home)):
        assert [name for name, text in parts.items() if hidden in text] == []
    refused = inside(waiting, capsys, "doctor", "--offline", "--bundle", str(file), code=1).err
    assert "cannot be written (File exists)" in refused


def test_a_check_prints_one_line_and_says_by_its_code_whether_all_is_well(waiting: Program, capsys: Capture) -> None:
    assert inside(waiting, capsys, "status", "--check", code=5).out == (
        "Not running: 1 message to route, kept for the next start. 1 thing needs attention.\n"
    )
    waiting.configure("agent: main\n")
    assert "attention" not in waiting.run("status", "--check").out


def test_the_newest_messages_are_shown_oldest_first(waiting: Program, capsys: Capture) -> None:
    inside(waiting, capsys, "inbox", "send", "the lamp is mended")
    texts = [line.rpartition("  ")[2] for line in inside(waiting, capsys, "inbox", "tail").out.splitlines()]
    assert texts == ["the lamp is broken", "the lamp is mended"]


def test_a_schedule_that_is_over_is_named_as_such(waiting: Program, capsys: Capture) -> None:
    added = inside(waiting, capsys, "schedule", "add", "--every", "3600", "--say", "water", "--name", "plants")
    assert "schedules run while an instance is running" in added.err
    assert "it runs at the next start" in inside(waiting, capsys, "schedule", "run", "plants").err
    inside(waiting, capsys, "schedule", "cancel", "plants")
    assert "the schedule plants is cancelled" in inside(waiting, capsys, "schedule", "cancel", "plants", code=1).err


@pytest.mark.parametrize(("room", "headings"), [(200, "A B C D"), (45, "A C D"), (40, "A D")])
def test_a_table_leaves_out_optional_columns_where_the_terminal_is_narrow(room: int, headings: str) -> None:
    table = Table(("A", "B", "C", "D"), (("a" * 10, "b" * 10, "c" * 5, "d" * 50),), ("B", "C"))
    assert table.fitting(room).headings == tuple(headings.split())
