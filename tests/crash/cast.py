"""The cast of the tests: the program that people run, and what it imports on its way."""

from __future__ import annotations

from typing import Any

from keepsaid_testkit.cli.selftest import PRELOAD, PROGRAM
from keepsaid_testkit.crash.report import Report
from keepsaid_testkit.crash.stage import Scenario

_COUNTED = ("acknowledged", "turns", "replies_arrived", "effects", "batches_in_flight_at_a_kill")


def counted(report: Report) -> dict[str, Any]:
    """What a play counted, in a line."""
    told, counts = report.as_json(), report.judgement.counts
    slowest = max((one["recovered_ms_max"] or 0.0 for one in told["points"].values()), default=0.0)
    whole = {"kills": told["kills"], "violations": len(told["violations"]), "recovered_ms_max": slowest}
    return {**whole, **{name: counts.get(name, 0) for name in _COUNTED}, "mixed": told["mixed"]}


CAST = Scenario(PROGRAM, PRELOAD)
"""Killed in every test of this folder."""
