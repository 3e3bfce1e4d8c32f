"""The judge can fail a whole play: every known fault, built into the runtime, is caught, by the promise it breaks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.crash.cast import CAST

from keepsaid_testkit.crash.faults import FAULTS
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.play import Plan, Play

_AT = {
    "acknowledge-early": "acknowledge.after",
    "forget-leases": "model.before",
    "hide-copies": "part.after",
    "invent-receipts": "send.after",
    "repeat-unsafe": "effect.once",
    "forget-episodes": "episodes.kept",
}
"""Where a life dies for the fault to show."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_caught(forks: Nursery, tmp_path: Path, fault: str) -> None:
    plan = Plan(times=3, only=(_AT[fault],), drain_s=3.0)
    report = Play(tmp_path, replace(CAST, seed=4, trouble=0.02, fault=fault), plan, forks=forks).run()
    broken = [violation for violation in report.violations if violation.startswith(f"{FAULTS[fault].broken}:")]
    assert broken, report.as_json()
