"""The operational store keeps the contracts of tasks, pairing, cursors, files and edits, in memory and on SQLite."""

from __future__ import annotations

from keepsaid_testkit.contracts import operations as suite
from keepsaid_testkit.contracts.forks import ForkContract


class TestTask(suite.TaskContract):
    """See the contract."""


class TestTaskGraph(suite.TaskGraphContract):
    """See the contract."""


class TestTaskCrash(suite.TaskCrashContract):
    """See the contract."""


class TestTaskLife(suite.TaskLifeContract):
    """See the contract."""


class TestBranch(suite.BranchContract):
    """See the contract."""


class TestRelay(suite.RelayContract):
    """See the contract."""


class TestPairing(suite.PairingContract):
    """Who may talk."""


class TestCursor(suite.CursorContract):
    """How far channels were read."""


class TestFile(suite.FileContract):
    """What came with messages."""


class TestBroughtFile(suite.BroughtFileContract):
    """What comes with messages in their body."""


class TestTurnFile(suite.TurnFileContract):
    """What turns make and send."""


class TestRecordedTalk(suite.RecordedTalkContract):
    """What was said to another agent."""


class TestFork(ForkContract):
    """How a lane begins that leaves another."""


class TestLateEdit(suite.LateEditContract):
    """What was settled before it was edited."""


class TestApproval(suite.ApprovalContract):
    """See the contract."""


def test_every_class_of_the_contract_runs_here() -> None:
    run_here = {base for one in globals().values() if isinstance(one, type) for base in one.__bases__}
    assert set(suite.TASKS) <= run_here
