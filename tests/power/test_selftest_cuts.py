"""`keepsaid selftest --cuts`: power cuts beside kills, what is said of them, and when the exit code is not 0."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from keepsaid.interfaces.cli.program import USAGE, run
from keepsaid_testkit.cli.selftest import Proof
from keepsaid_testkit.crash.report import Report as KillReport
from keepsaid_testkit.crash.stage import Judgement
from keepsaid_testkit.power.cuts import CONTROLS, CutReport, Tally
from keepsaid_testkit.power.strike import Mode

FINE, LOSS, HALF = Tally(8, 100), Tally(8, 100, 9), Tally(8, 100, 9, 1)


def cut(full: Tally = FINE, normal: Tally = LOSS, lying: Tally = HALF, broken: tuple[str, ...] = ()) -> CutReport:
    """A report in which the controls lose what they must, unless it is said otherwise."""
    return CutReport({Mode.FULL: full, Mode.NORMAL: normal, Mode.LYING: lying}, broken, broken)


def test_cuts_are_told_beside_kills(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = tmp_path / "report.json"
    options = ["--kills", "0", "--cuts", "1", "--report", str(report), "--json"]
    assert run(["--home", str(tmp_path / "home"), "selftest", *options]) == 0
    told, printed = json.loads(report.read_text("utf-8")), capsys.readouterr()
    assert {**json.loads(printed.out), "schema_version": 0} == {**told, "schema_version": 0}
    power = told["power"]
    assert [power[mode]["cuts"] for mode in ("full", "normal", "lying")] == [1, CONTROLS, CONTROLS]
    assert (power["full"]["lost"], power["full"]["corrupt"], told["violations"]) == (0, 0, [])
    assert power["normal"]["lost"] > 0
    assert power["lying"]["lost"] > 0
    assert power["findings"]
    assert f"{1 + 2 * CONTROLS} of {1 + 2 * CONTROLS} power cuts" in printed.err
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("kills", ["many", "3,", "1,2,3", "-1", "٣"])
def test_a_number_of_kills_that_is_none_is_said_at_once(tmp_path: Path, kills: str) -> None:
    assert run(["--home", str(tmp_path / "home"), "selftest", f"--kills={kills}", "--cuts", "1"]) == USAGE
    assert list(tmp_path.iterdir()) == []


def test_any_loss_at_full_is_a_violation_and_so_is_a_control_that_finds_nothing() -> None:
    assert Proof(1, None, cut()).violations == []
    assert Proof(1, None, cut(LOSS, broken=("full, seed 1: gone",))).violations == ["power: full, seed 1: gone"]
    blind = "power: harness: it saw no loss where there must be some"
    assert Proof(1, None, cut(normal=FINE)).violations == [blind]
    assert Proof(1, None, cut(lying=FINE)).violations == [blind]


def test_kills_and_cuts_are_one_report() -> None:
    kills = KillReport(7, "", (), Judgement(6, ["message 3: gone"], {}), 80.0, 1.0)
    told = Proof(7, kills, cut(LOSS, broken=("full: gone",))).as_json()
    assert told["violations"] == ["message 3: gone", "power: full: gone"]
    assert (told["restart_ms"], told["power"]["full"]["lost"]) == (80.0, 9)
    assert Proof(7, kills, None).as_json()["power"] is None
