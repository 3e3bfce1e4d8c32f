"""`keepsaid memory extract` lists, runs and requeues sessions; beside a running instance and without one."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside
from tests.acceptance.test_cli_lanes import perhaps_serving

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def talked(tmp_path: Path) -> Program:
    """A home in which three messages were said, and no model is set."""
    program = Program(tmp_path / "home")
    program.configure("models: {chat: none}\nbuffer: {window_ms: 0}\n")
    program.run("chat", given="my boat is blue\nI live in Oslo\nwhat else?\n")
    return program


def test_what_is_stated_outright_is_learned_on_request_and_waits_for_a_model(talked: Program, capsys: Capture) -> None:
    done = inside(talked, capsys, "memory", "extract", "run", "--json").json
    assert done["marked"] + done["passages"] > 0
    [line] = inside(talked, capsys, "memory", "extract", "ls", "--json").json["sessions"]
    assert (line["state"], line["marked"], line["read_until"], line["processed_until"]) == ("marked", 6, 6, None)
    facts = inside(talked, capsys, "memory", "search", "Oslo boat", "--json").json
    assert "I live in Oslo" in str(facts)
    again = inside(talked, capsys, "memory", "extract", "run", line["session"], "--json").json
    assert again["passages"] == 0
    assert line["session"] in inside(talked, capsys, "memory", "extract", "ls").out


@pytest.mark.parametrize("serving", [False, True])
def test_a_session_that_is_not_parked_is_not_read_again(talked: Program, capsys: Capture, *, serving: bool) -> None:
    with perhaps_serving(talked, serving=serving):
        assert inside(talked, capsys, "memory", "extract", "run", "--json").json["marked"] >= 0
        [line] = inside(talked, capsys, "memory", "extract", "ls", "--json").json["sessions"]
        refused = inside(talked, capsys, "memory", "extract", "requeue", line["session"], code=1)
        assert "is not parked" in refused.err
    unknown = inside(talked, capsys, "memory", "extract", "requeue", "ses_nobody", code=1)
    assert "there is no session" in unknown.err


def test_nothing_waits_where_nothing_was_said(tmp_path: Path, capsys: Capture) -> None:
    program = Program(tmp_path / "home")
    assert inside(program, capsys, "memory", "extract", "ls", "--json").json["sessions"] == []
    assert "lost" in inside(program, capsys, "memory", "extract", "ls", "--state", "lost", code=2).err


def test_nothing_is_collected_where_that_is_wanted(talked: Program, capsys: Capture) -> None:
    talked.configure("models: {chat: none}\ncollection: {extractor: none}\n")
    assert "collection.extractor is none" in inside(talked, capsys, "memory", "extract", "run", code=4).err
