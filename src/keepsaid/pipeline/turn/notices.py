"""Notices: what a person is told when a batch cannot be answered."""

from __future__ import annotations

from keepsaid.domain.ids import show
from keepsaid.errors import KeepsaidError

_STOPPED = "I could not answer this: the program was stopped {deaths} times while it worked on it"

BURIED = (
    f"{_STOPPED}, the last times on this message alone. Your message is kept. It is tried once more, by itself, when "
    "the program has run for ten minutes without a crash; `keepsaid inbox requeue {batch}` tries it at once."
)
"""`{batch}` and `{deaths}` are filled in."""

BURIED_AGAIN = (
    f"{_STOPPED}, also when it was tried once more. Your message is kept, and not tried again by itself. "
    "`keepsaid inbox why {batch}` shows what happened, `keepsaid inbox requeue {batch}` tries it again."
)

PARKED = (
    f"{_STOPPED}. It had made a call that must not be made twice, so your messages wait for a person. "
    "`keepsaid inbox why {batch}` shows the call, `keepsaid inbox requeue {batch}` begins anew."
)


def gave_up(batch_id: int, error: Exception) -> str:
    """What happened, whether the message is safe, and what to run."""
    name = show("batch", batch_id)
    what = error.what if isinstance(error, KeepsaidError) else f"an unexpected {type(error).__name__}"
    hint = error.hint if isinstance(error, KeepsaidError) else "keepsaid logs"
    return f"I could not answer this: {what}. Your message is kept. Run `{hint}`, then `keepsaid inbox requeue {name}`."
