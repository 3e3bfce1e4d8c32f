"""The shares of the run: how long each part of the suite took, and what its long tests counted."""

from __future__ import annotations

import gc
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from tests.figures import Figures, Sheet, figures_of
from tests.postgres.server import new_place

from keepsaid.adapters.postgres.connection import PostgresPlace

# How fast an example is says how busy the machine is.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

# The program is started hundreds of times: it and its tests are compiled once, whatever whoever runs the tests has set.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Python's own 700 makes a tenth of a run a search for garbage in what is imported and what a test still holds.
gc.set_threshold(50_000, 20, 50)

_LONG_S = {"crash": 3_600, "docs": 1_800, "month": 1_800, "power": 1_800, "simulation": 1_800}
"""Time limits of tests in folders whose tests take minutes on a busy machine; pyproject.toml has that of the others."""

_LONGEST = (
    "simulation/test_seeds",
    "crash/test_kill_messengers",
    "simulation/test_faults",
    "crash/test_points",
    "docs/test_blocks",
    "postgres/test_processes",
    "responsive/test_scaling",
    "postgres/test_moving",
    "responsive/test_conversation",
    "postgres/test_upgrading",
    "crash/test_faults",
    "property/test_imports",
    "crash/test_poison",
    "recall/test_everyday",
    "postgres/test_relay",
    "poisoning/test_directives",
    "crash/test_crash_loops",
    "property/test_buffer_machine",
    "postgres/test_near",
    "month/test_month",
    "acceptance/test_files_lost",
    "tidy/test_guards",
    "acceptance/test_chat_at_a_terminal",
    "frameworks/test_contract",
    "acceptance/test_put_back",
    "contract/test_channels",
    "power/test_cuts",
    "crash/test_put_back",
)
"""Files that begin first, those that compute between those that wait: a long one that begins last is waited for."""

_SHEET = pytest.StashKey[Sheet]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--figures FILE` keeps what the long tests count."""
    parser.addoption("--figures", type=Path, help="a file that gets one JSON line for each long test")


def pytest_configure(config: pytest.Config) -> None:
    """A sheet for the run, which is not a worker's: reports of all workers come to the one that started them."""
    if not hasattr(config, "workerinput"):
        config.stash[_SHEET] = Sheet(config.getoption("--figures"))
        config.pluginmanager.register(config.stash[_SHEET])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Set time limits by folder; soak tests have none. The longest files come first."""
    places = {Path(__file__).parent / f"{name}.py": place for place, name in enumerate(_LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))
    for item in items:
        if item.get_closest_marker("timeout") is None:
            is_soak = item.get_closest_marker("soak") is not None
            limit_s = 0 if is_soak else _LONG_S.get(item.path.parent.name)
            if limit_s is not None:
                item.add_marker(pytest.mark.timeout(limit_s))


def pytest_collection_finish() -> None:
    """What was imported and collected stays; looking for garbage in it again and again would take time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def _leaks_fail_their_own_file() -> Iterator[None]:
    """What a file's tests left unclosed is found at its end, not in whichever test runs when garbage is collected.

    What is left is in use. Later files do not search it again.
    """
    yield
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def place() -> Iterator[PostgresPlace]:
    """A schema in a real PostgreSQL, for one test after another; see tests/postgres/server.py."""
    with new_place() as made:
        yield made


@pytest.fixture
def figures(request: pytest.FixtureRequest) -> Figures:
    """Takes what a long test counted."""
    return figures_of(request.node)


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
