"""Lines that a person typed at a terminal, as forgetting needs them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol


class TypedLines(Protocol):
    """The history of lines that the interactive chat offers again."""

    async def forget(self, holds: Callable[[str], bool]) -> int:
        """Remove the entries for which `holds` is true, for good; returns how many there were."""
        ...


class NoTypedLines:
    """A home in which nobody typed anything."""

    async def forget(self, holds: Callable[[str], bool]) -> int:  # noqa: ARG002
        """Remove nothing."""
        return 0
