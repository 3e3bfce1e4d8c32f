"""A loop of real sockets whose clock can be moved: a time limit is over when a test says so, on a busy machine too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine


class MovedLoop(asyncio.SelectorEventLoop):
    """Time passes as ever, and at once when it is skipped."""

    _skipped_s = 0.0

    def time(self) -> float:
        """Seconds, those that were skipped among them."""
        return super().time() + self._skipped_s

    def skip(self, seconds: float) -> None:
        """Let so much time be over."""
        self._skipped_s += seconds


def on_moved_loop(work: Callable[[MovedLoop], Coroutine[None, None, None]]) -> None:
    """Run a test on such a loop."""
    loop = MovedLoop()
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(work(loop))
