"""The operational store keeps the contract of tasks, in memory and on SQLite."""

from __future__ import annotations

from keepsaid.testing.contracts import operations as suite


class TestTask(suite.TaskContract):
    """See the contract."""


class TestTaskGraph(suite.TaskGraphContract):
    """See the contract."""


class TestTaskCrash(suite.TaskCrashContract):
    """See the contract."""


class TestTaskLife(suite.TaskLifeContract):
    """See the contract."""
