"""A life: one process of the runtime, from its start to its death. After it nothing of it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from keepsaid.testing.simulator.loop import Numbered

T = TypeVar("T")

LIFE: ContextVar[Life] = ContextVar("LIFE")
"""Whose code is running; unset outside every runtime."""


class Killed(BaseException):
    """The process died here."""


class Reset(Exception):
    """The connection broke: the process at the other end died."""


class Life:
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
        self._loop.call_soon(self._bury, context=Context())

    def _bury(self) -> None:
        for task in self.tasks:
            self._context.copy().run(task.bury)
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
