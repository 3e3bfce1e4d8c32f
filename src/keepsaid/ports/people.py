"""People, as commands and whoever asks who is who need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from keepsaid.domain.people import Person, Seen


class People(Protocol):
    """Who is known by several identities. Reads of memory follow it at once; no stored scope changes."""

    async def join(self, names: Sequence[str], by: str, at: int) -> Person | None:
        """Make one person of these, two or more, and of all whom they were joined with before.

        None where one of them is the owner, or was joined with the owner, and it is not the owner who commands it:
        nothing is changed then.
        """
        ...

    async def split(self, name: str) -> bool:
        """Let one be a person alone again; whether it was joined."""
        ...

    async def joined_with(self, name: str) -> tuple[str, ...]:
        """All that are the same person, sorted, itself among them."""
        ...

    async def everybody(self) -> Sequence[Person]:
        """All persons that were joined, in the order of their ids."""
        ...

    async def seen(self, limit: int) -> Sequence[Seen]:
        """The identities that something is remembered from, by their names."""
        ...
