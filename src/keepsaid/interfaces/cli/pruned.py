"""Pruned: what a person is told of what is no longer there."""

from __future__ import annotations

from keepsaid.domain.batch import Batch
from keepsaid.interfaces.cli.session import session
from keepsaid.interfaces.shapes import when


def unless_pruned() -> str:
    """The end of a sentence that says something is not there."""
    buffer = session().config().buffer
    return f"; what is done or dropped is pruned after {buffer.retention_days:g} days (buffer.retention_days)"


def gone(batch: Batch) -> list[tuple[str, str]]:
    """A line in place of a batch's messages, where they were pruned."""
    return [("pruned", f"its messages went {when(batch.pruned_at)}")] if batch.pruned_at is not None else []
