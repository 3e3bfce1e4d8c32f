"""One fork server for all tests of this folder: importing everything takes longer than many lives."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.crash.cast import CAST

from keepsaid_testkit.crash.fork import Nursery, nursery


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A fork server for the program."""
    yield from _opened(tmp_path_factory.mktemp("forks"))


@pytest.fixture
def more_forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """Another, for a play beside a play."""
    yield from _opened(tmp_path_factory.mktemp("more_forks"))


@pytest.fixture
def most_forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A third, for a play beside two."""
    yield from _opened(tmp_path_factory.mktemp("most_forks"))


def _opened(folder: Path) -> Iterator[Nursery]:
    with (folder / "forks.log").open("ab") as errors, nursery(CAST.program, CAST.preload, errors) as opened:
        yield opened
