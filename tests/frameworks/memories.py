"""The memories that adapters are tried with: of the library and of a running instance, and those that do not answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.unit.http_cast import site

from keepsaid import Keepsaid
from keepsaid.interfaces.sdk.agents import AgentMemory

PEOPLE = ("ann", "bob")
SETTINGS = {"models": {"chat": "none"}, "buffer": {"window_ms": 0}}

MemoryOf = Callable[[str], AgentMemory]
"""The memory of a person, by name."""


@asynccontextmanager
async def in_process(root: Path) -> AsyncIterator[MemoryOf]:
    """The library, in the process of the framework."""
    async with Keepsaid.open(root, settings=SETTINGS) as ks:
        yield lambda name: ks.agent(name, account=name)


@asynccontextmanager
async def running(root: Path) -> AsyncIterator[str]:
    """An instance that runs, with a key for each person: its address."""
    keys = {name: {"token": token_of(name), "sender": name} for name in PEOPLE}
    async with site(root, answering=False, keys=keys) as here:
        yield here.address.url


def token_of(name: str) -> str:
    """The token of a person's key."""
    return name * 12


@asynccontextmanager
async def over_http(root: Path) -> AsyncIterator[MemoryOf]:
    """An instance that runs, asked with a key for each person."""
    async with running(root) as url, AsyncExitStack() as closing:
        remote = {name: Keepsaid.connect(url=url, key=token_of(name)) for name in PEOPLE}
        clients = {name: await closing.enter_async_context(one) for name, one in remote.items()}
        yield lambda name: clients[name]


FACES: Mapping[str, Callable[[Path], AbstractAsyncContextManager[MemoryOf]]] = {
    "library": in_process,
    "http": over_http,
}


@asynccontextmanager
async def down(_root: Path) -> AsyncIterator[AgentMemory]:
    """The memory of an instance that stopped."""
    async with Keepsaid.connect(url=await _unused_url(), key="none") as memory:
        yield memory


@asynccontextmanager
async def hung(_root: Path) -> AsyncIterator[AgentMemory]:
    """The memory of an instance that takes calls and answers none."""
    leaving = asyncio.Event()

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await leaving.wait()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    try:
        async with Keepsaid.connect(url=f"http://127.0.0.1:{port}", key="none") as memory:
            yield memory
    finally:
        leaving.set()
        server.close()
        await server.wait_closed()


@asynccontextmanager
async def left(root: Path) -> AsyncIterator[AgentMemory]:
    """The memory of a library that was closed."""
    async with Keepsaid.open(root, settings=SETTINGS) as ks:
        memory = ks.agent("ann")
    yield memory


@asynccontextmanager
async def disconnected(_root: Path) -> AsyncIterator[AgentMemory]:
    """The memory of a client that was closed."""
    async with Keepsaid.connect(url=await _unused_url(), key="none") as memory:
        pass
    yield memory


BROKEN: Mapping[str, Callable[[Path], AbstractAsyncContextManager[AgentMemory]]] = {
    "down": down,
    "slow": hung,
    "closed": left,
    "disconnected": disconnected,
}


async def _unused_url() -> str:
    server = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    server.close()
    await server.wait_closed()
    return f"http://127.0.0.1:{port}"
