"""Bundles, as a need: all that a listener may hear, read at one moment, and what another home knew, taken over."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from keepsaid.domain.bundle import Record, Verdict
from keepsaid.domain.memory import Listener

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Told:
    """What is exported: how many records of each type there are, and the records, which are read while one iterates.

    `schema` is the version of the store's schema, `key_print` tells which key the tombstones are made with.
    """

    schema: int
    counts: Mapping[str, int]
    key_print: str
    records: Iterator[Record]


class Bundles(Protocol):
    """Memory as it leaves a home and enters another. What is read is read for listeners, and for no others."""

    async def tell(self, listeners: Sequence[Listener], write: Callable[[Told], T]) -> T:
        """What `write` makes of all that one of the listeners may hear, as of one moment; it runs in a thread.

        A person is told as well what was said in direct chats with that person. Persons are told with those they are
        joined with, tombstones only where somebody hears everything.
        """
        ...

    async def look(self, records: Sequence[Record]) -> Sequence[Verdict]:
        """What would become of each of the records; nothing is changed."""
        ...

    async def take(self, records: Sequence[Record], contested: Sequence[bytes], at: int) -> Sequence[Verdict]:
        """Take over records, all of a call or none; what is there stays. Says of each what became of it.

        What holds in the `contested` slots is decided anew by all that was said of them. Secrets are masked.
        """
        ...

    async def key_print(self) -> str:
        """Which key the tombstones of this home are made with; "" while it has none."""
        ...

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False, and nothing changed, where there is another already."""
        ...
