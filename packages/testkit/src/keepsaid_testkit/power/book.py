"""The book: what the load sent to the store, and which of it the store said was kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from keepsaid.domain.message import Inbound
from keepsaid.values import frozen

Sign = tuple[str | int, ...]
"""What a commit leaves behind for good, as the judge finds it: `("message", id)`, `("step", turn, n, "finished")`."""


@frozen
class Entry:
    """A commit and its sign; `certain` says that the sign is there whenever the commit is."""

    sign: Sign
    certain: bool = True


@dataclass(slots=True)
class Book:
    """All that was sent, and how far it was acknowledged.

    `kept` are the signs of acknowledged commits; `doubt` the wave whose commits, one transaction, were under way
    when the power went.
    """

    sent: dict[int, Inbound] = field(default_factory=dict)
    kept: list[Sign] = field(default_factory=list)
    doubt: tuple[Entry, ...] = ()
    last_id: int = 0

    def new_id(self) -> int:
        """A number larger than any before."""
        self.last_id += 1
        return self.last_id

    def settle(self, found: frozenset[Sign]) -> None:
        """After a cut: what was in doubt and is there is as good as acknowledged."""
        self.kept += [entry.sign for entry in self.doubt if entry.sign in found]
        self.doubt = ()

    def stored(self) -> Iterator[tuple[int, Inbound]]:
        """The acknowledged messages with a key, by id, in the order they were stored."""
        for sign in self.kept:
            if sign[0] == "message":
                yield int(sign[1]), self.sent[int(sign[1])]
