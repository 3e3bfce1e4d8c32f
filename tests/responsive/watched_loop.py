"""An event loop that measures the processor time of each callback, and hostile texts to measure it with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextvars import Context
from time import thread_time
from typing import NamedTuple, TypeVarTuple

Given = TypeVarTuple("Given")

_REFERENCE_S = 0.008
"""What `_work` takes on a machine of today."""


class Held(NamedTuple):
    """A callback that held the loop: processor time in seconds, and what it was."""

    seconds: float
    callback: str


class WatchedLoop(asyncio.SelectorEventLoop):
    """Notes the callback that took the most processor time since the last `forget`."""

    def __init__(self) -> None:
        super().__init__()
        self.worst = Held(0.0, "nothing")

    def forget(self) -> None:
        """Begin to measure anew."""
        self.worst = Held(0.0, "nothing")

    def _run(self, callback: Callable[[*Given], object], *args: *Given) -> None:
        began = thread_time()
        try:
            callback(*args)
        finally:
            took = thread_time() - began
            if took > self.worst.seconds:
                self.worst = Held(took, described(callback))

    def call_soon(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback next, and measure it."""
        return super().call_soon(self._run, callback, *args, context=context)

    def call_soon_threadsafe(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback of another thread next, and measure it."""
        return super().call_soon_threadsafe(self._run, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time, and measure it."""
        return super().call_at(when, self._run, callback, *args, context=context)


def described(callback: Callable[..., object]) -> str:
    """The coroutine that a callback runs a step of, or the callback."""
    task = getattr(callback, "__self__", None)
    if isinstance(task, asyncio.Task):
        return f"{task.get_name()}: {getattr(task.get_coro(), '__qualname__', task.get_coro())}"
    return repr(callback)


def slowness() -> float:
    """How many times slower than a machine of today this one is, now; at least 1."""

    def once() -> float:
        began = thread_time()
        _work()
        return thread_time() - began

    return max(1.0, min(once() for _ in range(5)) / _REFERENCE_S)


def _work() -> int:
    return sum(len(word) for word in (str(number) for number in range(80_000)))


HOSTILE = {
    "dates": "in May 2025 before the trip on 2025-06-01 last week ",
    "combining marks": "a" + "\u0300\u0316" * 40,
    "one long word": "x",
    "spaces": " ",
    "empty lines": "\n",
    "words on lines": "a b\n",
    "JSON": '{"key": ["value", 1, {"nested": "yes"}]}, ',
    "facts": "My name is Ann and my dog is Rex. Remember that I live in Rome. ",
    "questions": "what? who? when? ",
    "Chinese": "我喜欢吃苹果。",
    "secrets": "password: hunter2hunter2 sk-proj-abcdefghijklmnop ",
    "brackets": "[Relevant to this message] [[[ ",
    "mail": "a.b@c.example ",
    "digits": "4111 1111 1111 1111 ",
}
"""Texts that are repeated up to the limit."""


def hostile(part: str, size: int) -> str:
    """A text of so many characters, most of which are `part` again and again."""
    return ("hello " + part * (size // len(part) + 1))[: size - 4] + " end"
