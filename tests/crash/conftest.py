"""One fork server for all tests of this folder: importing everything takes longer than many lives."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.crash.cast import CAST

from keepsaid.testing.crash.fork import Nursery, nursery


@pytest.fixture(scope="session")
def forks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    """A fork server for the program."""
    log = tmp_path_factory.mktemp("forks") / "forks.log"
    with log.open("ab") as errors, nursery(CAST.program, CAST.preload, errors) as opened:
        yield opened
