"""The library without async: the same home behind plain calls, on an event loop in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from functools import wraps
from threading import Thread
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, TypeVar

from keepsaid.interfaces.sdk.inbox import Inbox
from keepsaid.interfaces.sdk.keeper import Keepsaid
from keepsaid.interfaces.sdk.memory import MemoryBook
from keepsaid.interfaces.sdk.values import Message, Receipt

P = ParamSpec("P")
T = TypeVar("T")


class _Blocking:
    """Calls methods of an object on a loop that runs elsewhere."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def _result(self, method: Callable[..., Coroutine[Any, Any, T]], *args: Any, **kwargs: Any) -> T:
        return asyncio.run_coroutine_threadsafe(method(self._target, *args, **kwargs), self._loop).result()


def _waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[_Blocking, P], T]:
    """The method as a plain call, which returns when it is done and raises what it raises."""

    @wraps(method)
    def wait(self: _Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._result(method, *args, **kwargs)

    return wait


class BlockingMemory(_Blocking):
    """The memory of one home, behind plain calls."""

    record, recall, search = _waits(MemoryBook.record), _waits(MemoryBook.recall), _waits(MemoryBook.search)
    get, list, history = _waits(MemoryBook.get), _waits(MemoryBook.list), _waits(MemoryBook.history)
    add, edit, pin = _waits(MemoryBook.add), _waits(MemoryBook.edit), _waits(MemoryBook.pin)
    forget, undo = _waits(MemoryBook.forget), _waits(MemoryBook.undo)


class BlockingKeepsaid(_Blocking):
    """A home in use by this process. Use it as `with BlockingKeepsaid(Keepsaid.open(agent=answer)) as ks`."""

    memory: BlockingMemory

    ask, why = _waits(Keepsaid.ask), _waits(Keepsaid.why)

    def __init__(self, opened: Keepsaid) -> None:
        super().__init__(opened, asyncio.new_event_loop())
        self._thread = Thread(target=self._loop.run_forever, name="keepsaid", daemon=True)

    def put(self, message: Message) -> Receipt:
        """Store a message; returns once it is on disk. Raises as `Inbox.put` does."""
        inbox: Inbox = self._target.inbox
        return asyncio.run_coroutine_threadsafe(inbox.put(message), self._loop).result()

    def __enter__(self) -> BlockingKeepsaid:
        self._thread.start()
        with ExitStack() as closing:
            closing.callback(self._stop)
            self._enter()
            closing.pop_all()
        self.memory = BlockingMemory(self._target.memory, self._loop)
        return self

    _enter, _exit = _waits(Keepsaid.__aenter__), _waits(Keepsaid.__aexit__)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._exit(kind, error, trace)
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
