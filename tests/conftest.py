"""The shares of the run: how long each part of the suite took."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds each folder of tests took, largest first."""
    shares: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                shares[Path(report.nodeid.split("::")[0]).parent.as_posix()] += report.duration
    ranked = sorted(shares.items(), key=lambda share: -share[1])
    terminalreporter.write_line("seconds: " + ", ".join(f"{folder} {took:.0f}" for folder, took in ranked))
