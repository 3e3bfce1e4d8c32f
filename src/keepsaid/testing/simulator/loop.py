"""A virtual-time event loop: it never sleeps, it moves its time to the next timer."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, copy_context
from itertools import count
from typing import Any, TypeVarTuple

from keepsaid.testing.simulator.life import LIFE

Given = TypeVarTuple("Given")
_ROUNDS_MAX = 100_000
"""Rounds of the loop without a moment passing; more is a loop that spins."""


class Stuck(Exception):
    """Nothing can happen any more, or time does not pass any more."""


class _Skip(selectors.SelectSelector):
    """Waits for nothing: the time it should wait passes at once."""

    def __init__(self, passes: Callable[[float | None], None]) -> None:
        super().__init__()
        self._passes = passes

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._passes(timeout)
        return []


class Numbered(asyncio.Task[Any]):
    """A task whose place in a set does not depend on its address in memory."""

    def __init__(self, number: int, coro: Coroutine[Any, Any, Any], **named: Any) -> None:
        self._number = number
        super().__init__(coro, **named)

    def __hash__(self) -> int:
        return self._number

    def bury(self) -> None:
        """End without running; what its cleanup would do outside is refused. Nobody asks for its result."""
        self._log_destroy_pending = False
        coro = self.get_coro()
        if not self.done() and coro is not None:
            coro.close()
        elif not self.cancelled():
            self.exception()


class VirtualLoop(asyncio.SelectorEventLoop):
    """Runs callbacks in order; those of a life only while it lasts. Time starts at 0 seconds."""

    def __init__(self) -> None:
        self._passed = 0.0
        self._rounds = 0
        self._numbers = count()
        super().__init__(_Skip(self._pass))
        self.set_task_factory(self._numbered)
        self.set_exception_handler(lambda _, __: None)

    def time(self) -> float:
        """Seconds of virtual time."""
        return self._passed

    def pass_by(self, seconds: float) -> None:
        """Let time pass at once: what falls due meanwhile is late, and runs once."""
        self._passed += seconds

    def _pass(self, timeout: float | None) -> None:
        if timeout is None:
            raise Stuck("nothing is left that could happen")
        self._rounds = self._rounds + 1 if timeout <= 0 else 0
        if self._rounds > _ROUNDS_MAX:
            raise Stuck(f"a loop spins: {_ROUNDS_MAX} rounds in one moment")
        self._passed += max(0.0, timeout)

    def _numbered(self, loop: asyncio.AbstractEventLoop, coro: Any, **named: Any) -> Numbered:
        task = Numbered(next(self._numbers), coro, loop=loop, **named)
        context = named.get("context")
        life = LIFE.get(None) if context is None else context.get(LIFE)
        if life is not None:
            life.tasks.append(task)
        return task

    def call_soon(
        self, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.Handle:
        """Run a callback next; not if its life is over by then."""
        context = copy_context() if context is None else context
        life = context.get(LIFE)
        if life is None:
            return super().call_soon(callback, *args, context=context)
        return super().call_soon(life.go, callback, args, context, context=context)

    def call_at(
        self, when: float, callback: Callable[[*Given], object], *args: *Given, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Run a callback at a time; not if its life is over by then."""
        context = copy_context() if context is None else context
        life = context.get(LIFE)
        if life is None:
            return super().call_at(when, callback, *args, context=context)
        return super().call_at(when, life.go, callback, args, context, context=context)
