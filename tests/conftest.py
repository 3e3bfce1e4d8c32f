"""The shares of the run: how long each part of the suite took, and what its long tests counted."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import settings
from tests.figures import Figures, Sheet

# How fast an example is says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

_SHEET = pytest.StashKey[Sheet]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--figures FILE` keeps what the long tests count."""
    parser.addoption("--figures", type=Path, help="a file that gets one JSON line for each long test")


def pytest_configure(config: pytest.Config) -> None:
    """A sheet for the run."""
    config.stash[_SHEET] = Sheet(config.getoption("--figures"))


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Takes what a long test counted."""
    return request.config.stash[_SHEET].figures(request.node.name)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds each folder of tests took, largest first, and the figures of long tests."""
    for line in terminalreporter.config.stash[_SHEET].lines:
        terminalreporter.write_line(line)
    shares: defaultdict[str, float] = defaultdict(float)
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                shares[Path(report.nodeid.split("::")[0]).parent.as_posix()] += report.duration
    ranked = sorted(shares.items(), key=lambda share: -share[1])
    terminalreporter.write_line("seconds: " + ", ".join(f"{folder} {took:.0f}" for folder, took in ranked))
