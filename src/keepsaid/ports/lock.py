"""The instance lock, as a need."""

from __future__ import annotations

from typing import Protocol


class Lock(Protocol):
    """Proves that one process at most is the runtime of a home."""

    def acquire(self) -> None:
        """Take the lock; raises HomeBusy, naming the holder, when another process has it."""
        ...

    def check(self) -> None:
        """Raise StoreGone when what is locked was deleted, moved or replaced by somebody."""
        ...

    def release(self) -> None:
        """Give it back. The death of the process does so too."""
        ...
