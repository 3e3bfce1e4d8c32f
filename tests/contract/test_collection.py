"""Collection keeps its contract in memory and on SQLite."""

from __future__ import annotations

from keepsaid_testkit.contracts import operations as suite


class TestClaiming(suite.ClaimingContract):
    """Who is claimed for collection."""


class TestCollected(suite.CollectedContract):
    """What is left of a mark."""


class TestFinding(suite.FindingContract):
    """What was found, until it is applied."""


class TestFailing(suite.FailingContract):
    """Readings that come to nothing."""


class TestInvalidate(suite.InvalidateContract):
    """Marks that a person or the clock sets."""


class TestForgottenFinding(suite.ForgottenFindingContract):
    """A forgotten statement leaves its place empty."""


class TestFindingPruning(suite.FindingPruningContract):
    pass


class TestNotes(suite.NoteContract):
    pass


class TestPassage(suite.PassageContract):
    """What is read, and whose words they are."""


def test_every_contract_is_run_here() -> None:
    run_here = {base for one in globals().values() if isinstance(one, type) for base in one.__bases__}
    assert set(suite.COLLECTION) <= run_here
