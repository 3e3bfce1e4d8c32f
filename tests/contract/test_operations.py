"""The operational store keeps its contract in memory and on SQLite."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from keepsaid.adapters.ram.operations import RamOperations
from keepsaid.adapters.sqlite.operations import open_operations
from keepsaid.testing.contracts import operations as suite
from keepsaid.testing.contracts.operations import Store


@pytest.fixture(params=["ram", "sqlite"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    """A new, empty store."""
    if request.param == "ram":
        yield RamOperations()
        return
    operations = await open_operations(tmp_path / "buffer.db")
    yield operations
    await operations.close()


class TestIntake(suite.IntakeContract):
    """See the contract."""


class TestReplyLane(suite.ReplyLaneContract):
    """See the contract."""


class TestWindow(suite.WindowContract):
    """See the contract."""


class TestDue(suite.DueContract):
    """See the contract."""


class TestDispatch(suite.DispatchContract):
    """See the contract."""


class TestSpawn(suite.SpawnContract):
    """See the contract."""


class TestMerging(suite.MergingContract):
    """See the contract."""


class TestClaim(suite.ClaimContract):
    """See the contract."""


class TestLease(suite.LeaseContract):
    """See the contract."""


class TestSuspect(suite.SuspectContract):
    """See the contract."""


class TestFence(suite.FenceContract):
    """See the contract."""


class TestFail(suite.FailContract):
    """See the contract."""


class TestRequeue(suite.RequeueContract):
    """See the contract."""


class TestStep(suite.StepContract):
    """See the contract."""


class TestTurn(suite.TurnContract):
    """See the contract."""


class TestTranscript(suite.TranscriptContract):
    """See the contract."""


class TestEpisodeWork(suite.EpisodeWorkContract):
    """See the contract."""


class TestTaking(suite.TakingContract):
    """See the contract."""


class TestSettling(suite.SettlingContract):
    """See the contract."""


class TestPulling(suite.PullingContract):
    """See the contract."""


class TestStories(suite.StoriesContract):
    """See the contract."""


def test_every_class_of_the_contract_runs_here() -> None:
    run_here = {base for one in globals().values() if isinstance(one, type) for base in one.__bases__}
    assert set(suite.CONTRACTS) <= run_here
