"""Offload: runs pure work over long texts beside the event loop, as those need it who read what came from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Offload(Protocol):
    """Runs functions that compute something from a text and have no effect."""

    async def __call__(self, chars: int, work: Callable[[], T]) -> T:
        """What `work` returns or raises; `chars` is about how many characters it reads.

        Work over few characters runs at once, on the event loop; other work in a thread. Who stops waiting does not
        stop the thread.
        """
        ...


async def inline(chars: int, work: Callable[[], T]) -> T:  # noqa: ARG001 - the protocol's signature
    """Run the work at once, however long the text is: for tests and for where no event loop has to stay free."""
    return work()


class Beside:
    """Offloads work that reads `more` characters beside those that it names."""

    def __init__(self, offload: Offload, more: int) -> None:
        self._offload = offload
        self._more = more

    async def __call__(self, chars: int, work: Callable[[], T]) -> T:
        """What `work` returns or raises."""
        return await self._offload(self._more + chars, work)
