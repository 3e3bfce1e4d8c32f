"""Notices: what a person is told when a batch cannot be answered."""

from __future__ import annotations

from keepsaid.domain.ids import show
from keepsaid.errors import KeepsaidError

DIED = (
    "I could not answer this: working on it stopped the program three times. Your message is kept; "
    "`keepsaid inbox ls --state dead` shows it, `keepsaid inbox requeue` tries again."
)


def gave_up(batch_id: int, error: Exception) -> str:
    """What happened, whether the message is safe, and what to run."""
    name = show("batch", batch_id)
    what = error.what if isinstance(error, KeepsaidError) else f"an unexpected {type(error).__name__}"
    hint = error.hint if isinstance(error, KeepsaidError) else "keepsaid logs"
    return f"I could not answer this: {what}. Your message is kept. Run `{hint}`, then `keepsaid inbox requeue {name}`."
