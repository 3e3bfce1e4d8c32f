"""How to speak and how models count tokens are kept alike in memory and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.adapters.sqlite.operations import open_operations
from keepsaid.testing.contracts.road import Store
from keepsaid.testing.contracts.standing import CalibrationContract, PersonalityContract


@pytest.fixture(params=["ram", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A new, empty store."""
    operations = RamOperations() if request.param == "ram" else await open_operations(tmp_path / "buffer.db")
    yield operations
    await operations.close()


class TestPersonality(PersonalityContract):
    """On both."""


class TestCalibration(CalibrationContract):
    """On both."""
