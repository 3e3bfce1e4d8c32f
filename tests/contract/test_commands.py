"""Both operational stores keep the contract of commands in a chat."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsaid.adapters.sqlite.inline import InMemoryOperations
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid_testkit.contracts.commands import CommandContract
from keepsaid_testkit.contracts.modes import IncognitoContract, PauseContract
from keepsaid_testkit.contracts.store_driver import ContractStore


@pytest.fixture(params=["memory", "file"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ContractStore]:
    """A new, empty store."""
    operations = InMemoryOperations() if request.param == "memory" else await open_operations(tmp_path / "buffer.db")
    yield operations
    await operations.close()


class TestCommand(CommandContract):
    """See the contract."""


class TestPause(PauseContract):
    pass


class TestIncognito(IncognitoContract):
    pass
