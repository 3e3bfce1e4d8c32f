"""The faces by which agents outside come: the library in this process, and a running instance asked over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from tests.unit.http_cast import site

from keepsaid import AgentMemory, connect
from keepsaid.domain.principal import Principal
from keepsaid.interfaces.agent_calls import CALLS, Desk
from keepsaid.interfaces.http.agents import desk_of

KEYS: Mapping[str, Mapping[str, object]] = {
    "ann": {"token": "a" * 40},
    "bob": {"token": "b" * 40},
    "boss": {"token": "c" * 40, "owner": True},
    "club": {"token": "d" * 40, "direct": False},
    "guest": {"token": "e" * 40, "scopes": ["read"]},
    "writer": {"token": "f" * 40, "scopes": ["write"]},
}
"""Keys: of two people, of the owner, of a conversation that others read, and two that may do one thing each."""

Face = Callable[[str], AgentMemory]
"""The memory of a key, by its name."""


@asynccontextmanager
async def in_process(root: Path) -> AsyncIterator[Face]:
    """The library in the process of the instance."""
    async with site(root, answering=False, keys=KEYS) as here:
        desk, callers = desk_of(here.instance), {who.name: who for who in here.instance.config.principals().values()}
        yield lambda name: _asking(desk, callers[name])


def _asking(desk: Desk, who: Principal) -> AgentMemory:
    return AgentMemory(lambda call, fields: CALLS[call](desk, who, fields))


@asynccontextmanager
async def over_http(root: Path) -> AsyncIterator[Face]:
    """An instance that runs, asked with keys."""
    async with site(root, answering=False, keys=KEYS) as here, AsyncExitStack() as closing:
        remote = {name: connect(url=here.address.url, key=str(one["token"])) for name, one in KEYS.items()}
        clients = {name: await closing.enter_async_context(one) for name, one in remote.items()}
        yield lambda name: clients[name]


FACES = {"library": in_process, "http": over_http}
