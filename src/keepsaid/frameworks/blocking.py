"""Memory for programs without an event loop: opened on a loop that runs in a thread, until the block is left."""

from __future__ import annotations

import asyncio
import concurrent.futures
from collections.abc import Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


@contextmanager
def opened(manager: AbstractAsyncContextManager[T]) -> Iterator[T]:
    """Enter `Keepsaid.open(...)` or `Keepsaid.connect(...)` in a plain program.

    Adapters that are given a memory of it work in plain calls, from any thread. Raises what entering and leaving raise.
    """
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever, name="keepsaid-memory", daemon=True)
    thread.start()

    def wait(work: Coroutine[Any, Any, T]) -> T:
        started: concurrent.futures.Future[T] = asyncio.run_coroutine_threadsafe(work, loop)
        return started.result()

    try:
        given = wait(_enter(manager))
        try:
            yield given
        finally:
            asyncio.run_coroutine_threadsafe(_leave(manager), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _enter(manager: AbstractAsyncContextManager[T]) -> T:
    return await manager.__aenter__()


async def _leave(manager: AbstractAsyncContextManager[Any]) -> None:
    await manager.__aexit__(None, None, None)
