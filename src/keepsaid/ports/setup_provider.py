"""What lets an extension say what a person has to do before it can work."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable


@runtime_checkable
class SetupProvider(Protocol):
    """Knows what it still needs. Until that is nothing it is not started, which is no failure."""

    def needs(self) -> Sequence[str]:
        """What is still to be done, a sentence each; asked after `initialize`."""
        ...
