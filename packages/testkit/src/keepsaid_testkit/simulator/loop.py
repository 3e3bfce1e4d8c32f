"""A virtual-time event loop, and the lives that run on it: it never sleeps, it moves its time to the next timer.

A life is one process of the runtime, from its start to its death. After it nothing of it runs any more.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from itertools import count
from typing import Any, TypeVar, TypeVarTuple

T = TypeVar("T")

LIFE: ContextVar[SimulatedLife] = ContextVar("LIFE")
"""Whose code is running; unset outside every runtime."""


class Killed(BaseException):
    """The process died here."""


class Reset(Exception):
    """The connection broke: the process at the other end died."""


class SimulatedLife:
    """A process that can die at any moment, and be suspended.

    Everything it starts carries it in its context, and the loop asks it before it runs anything of it.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, name: str) -> None:
        self.name = name
        self.dead = False
        self.ended: asyncio.Future[None] = loop.create_future()
        self.tasks: list[Numbered] = []
        self.points_left: int | None = None
        self._loop = loop
        self._asked: dict[asyncio.Future[Any], None] = {}
        self._suspended = False
        self._parked: list[tuple[Any, tuple[Any, ...], Context]] = []
        self._context = copy_context()
        self._context.run(LIFE.set, self)

    def go(self, callback: Callable[..., object], args: tuple[Any, ...], context: Context) -> None:
        """Run a callback, unless this life is over or suspended."""
        if self.dead:
            return
        if self._suspended:
            self._parked.append((callback, args, context))
            return
        callback(*args)

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Run a coroutine as part of this life."""
        return self._loop.create_task(work, context=self._context.copy())

    def ask(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """What a client sees of work this life does for it: its result, its error, or Reset."""
        answer: asyncio.Future[T] = self._loop.create_future()
        if self.dead:
            work.close()
            answer.set_exception(Reset())
            return answer
        self._asked[answer] = None

        def tell(done: asyncio.Task[T]) -> None:
            self._asked.pop(answer, None)
            if answer.done():
                return
            if done.cancelled():
                answer.set_exception(Reset())
            elif (error := done.exception()) is not None:
                answer.set_exception(error)
            else:
                answer.set_result(done.result())

        self.run(work).add_done_callback(tell, context=Context())
        return answer

    def die(self) -> None:
        """The process ends here and now."""
        if self.dead:
            return
        self.dead = True
        self._parked.clear()
        for answer in self._asked:
            if not answer.done():
                answer.set_exception(Reset())
        self._asked.clear()
        self.ended.set_result(None)
        self._loop.call_soon(self._discard_tasks, context=Context())

    def _discard_tasks(self) -> None:
        for task in self.tasks:
            self._context.copy().run(task.discard)
        self.tasks.clear()

    def passes(self) -> None:
        """A point of the road; the last one it may pass is where it dies."""
        if self.dead:
            raise Killed
        if self.points_left is None:
            return
        self.points_left -= 1
        if self.points_left <= 0:
            self.die()
            raise Killed

    def suspend(self) -> None:
        """Nothing of it runs until it is woken, while time passes."""
        self._suspended = True

    def wake(self) -> None:
        """Everything that should have run meanwhile runs now."""
        self._suspended = False
        parked, self._parked = self._parked, []
        for callback, args, context in parked:
            self._loop.call_soon(callback, *args, context=context)


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

    def discard(self) -> None:
        """End the task without running it.

        Side effects of its cleanup are refused, and its result is never read.
        """
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
        """Advance time at once: what falls due meanwhile is late, and runs once."""
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

    def run_in_executor(self, executor: Any, func: Callable[[*Given], T], *args: *Given) -> asyncio.Future[T]:
        """Run a function at once: a thread would end in real time, and in any order."""
        del executor

        async def run() -> T:
            return func(*args)

        return self.create_task(run())

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
