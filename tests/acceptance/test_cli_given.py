"""What is given to commands: a text by stdin, a wrong option, a path with spaces, and what is said of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.acceptance.program import Program, inside

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    return Program(tmp_path / "a home")


def test_a_memory_is_read_from_stdin(program: Program, capsys: Capture) -> None:
    program.run("memory", "add", "-", given="The ferry leaves at ten.\n")
    [memory] = inside(program, capsys, "memory", "ls", "--json").json["memories"]
    assert memory["text"] == "The ferry leaves at ten."
    shown = inside(program, capsys, "memory", "show", memory["id"]).out
    assert "superseded_by  -" in shown
    assert "pinned         no" in shown
    assert "None" not in shown


@pytest.mark.parametrize(
    ("arguments", "code", "command"),
    [
        (("memory", "add", "x", "--kind", "rumour"), 2, "memory add"),
        (("data", "export", "x", "--format", "xml"), 2, "data export"),
        (("inbox", "replay", "--since", "soon"), 2, "inbox replay"),
        (("inbox", "tasks", "run"), 2, "inbox tasks run"),
        (("why", "--svg"), 2, "why"),
        (("inbox", "routes", "test", "no/such/file"), 1, "inbox routes test"),
        (("inbox", "routs"), 2, "inbox"),
        (("inbux",), 2, ""),
        (("status", "--home", ""), 2, ""),
        (("status", "--home="), 2, ""),
        (("status", "--home"), 2, ""),
    ],
)
def test_what_is_wrong_names_the_help_of_its_command(
    program: Program, capsys: Capture, arguments: tuple[str, ...], code: int, command: str
) -> None:
    refused = inside(program, capsys, *arguments, code=code).err
    assert refused.splitlines()[-1].split() == ["try", "keepsaid", *command.split(), "--help"]


def test_a_path_with_a_space_can_be_copied_from_what_is_said(program: Program, tmp_path: Path) -> None:
    program.run("memory", "add", "The ferry leaves at ten.")
    said = program.run("data", "backup", str(tmp_path / "a copy")).err
    assert f"keepsaid data restore '{tmp_path}/a copy' --to DIR" in said
    said = program.run("data", "restore", str(tmp_path / "a copy"), "--to", str(tmp_path / "b home")).err
    assert f"keepsaid --home '{tmp_path}/b home' status" in said


def test_doctor_does_not_propose_itself(program: Program, capsys: Capture) -> None:
    program.configure("models: {chat: openai/x, base_url: 'http://127.0.0.1:1/v1', api_key: k}\n")
    told = inside(program, capsys, "doctor", code=6).out
    assert "cannot be reached" in told
    assert "keepsaid config show models" in told
    assert "keepsaid doctor" not in told
