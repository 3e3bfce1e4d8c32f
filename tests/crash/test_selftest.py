"""`keepsaid selftest`: what it refuses before it starts, and what it reports."""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path

import pytest

from keepsaid.interfaces.cli.program import ERRORS, USAGE, run


@pytest.mark.parametrize("options", [("--fault", "gremlins"), ("--report", "nowhere/at/all.json")])
def test_what_cannot_be_done_is_said_at_once(tmp_path: Path, options: tuple[str, ...]) -> None:
    assert run(["--home", str(tmp_path / "home"), "selftest", *options]) == USAGE
    assert list(tmp_path.iterdir()) == []


def test_a_broken_promise_is_an_exit_code_a_report_and_a_directory_that_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    options = ["--kills", "1", "--fault", "invent-receipts", "--report", str(report), "--json"]
    assert run(["--home", str(tmp_path / "home"), "selftest", *options]) == ERRORS
    told, said = json.loads(report.read_text("utf-8")), json.loads(capsys.readouterr().out)
    assert {**said, "schema_version": 0} == {**told, "schema_version": 0}
    assert told["kills"] == 1
    assert told["restart_ms"] > 0
    assert any("never arrived" in violation for violation in told["violations"])
    assert [folder.name for folder in tmp_path.glob("keepsaid-selftest-*/home")] == ["home"]


def test_its_former_name_is_taken_with_a_warning(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--home", str(tmp_path / "home"), "prove", "--kills", "none"]) == USAGE
    assert "`keepsaid prove` is called `keepsaid selftest` now" in capsys.readouterr().err


def test_without_the_testkit_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(metadata, "entry_points", lambda **_: ())
    assert run(["selftest", "--kills", "1"]) == USAGE
    assert "pip install ./keepsaid/packages/testkit" in capsys.readouterr().err
