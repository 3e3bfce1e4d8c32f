"""`keepsaid mcp`: memory for an MCP client, over stdin and stdout."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.errors import ConfigError, installation
from keepsaid.interfaces.cli.console import session
from keepsaid.interfaces.shapes import Shape

if TYPE_CHECKING:
    from keepsaid.config import Config, Home
    from keepsaid.domain.principal import Principal
    from keepsaid.interfaces.mcp.tool import Ask

ACCOUNT = "mcp"
"""The account of the conversations of a client without a key."""


def mcp(
    key: Annotated[str, typer.Option(metavar="NAME", help="Speak and read as the sender of this key.")] = "",
    full: Annotated[bool, typer.Option("--full", help="Offer all tools, not those of memory alone.")] = False,
) -> None:
    """Serve memory to an MCP client over stdin and stdout.

    Without a key the client reads and writes as you do in your direct chats. Asks the running instance of this home; if
    none runs, it opens the home itself, and holds it until the client leaves.
    """
    try:
        import mcp.server  # noqa: PLC0415, F401 - an extra
    except ImportError as error:
        raise ConfigError("the MCP server is not installed", hint=installation("mcp")) from error
    current = session()
    asyncio.run(_serve(current.home, current.config(), key, full=full))


async def _serve(home: Home, config: Config, key: str, *, full: bool) -> None:
    from mcp.server.stdio import stdio_server  # noqa: PLC0415 - an extra

    from keepsaid import __version__  # noqa: PLC0415 - only this command needs these
    from keepsaid.interfaces.mcp.server import server_of  # noqa: PLC0415
    from keepsaid.interfaces.mcp.tools import CORE, FULL  # noqa: PLC0415

    async with _connected(home, config, key) as ask:
        server = server_of(FULL if full else CORE, lambda _request: (ask, ""), __version__)
        async with stdio_server() as (reading, writing):
            await server.run(reading, writing, server.create_initialization_options())


@asynccontextmanager
async def _connected(home: Home, config: Config, key: str) -> AsyncIterator[Ask]:
    """Who is asked: the running instance, else this process, which then is it. Raises ConfigError for no such key."""
    from keepsaid.domain.principal import own_agent  # noqa: PLC0415 - help is shown without
    from keepsaid.interfaces.cli.remote import running  # noqa: PLC0415
    from keepsaid.interfaces.sdk.agents import RunningAgent  # noqa: PLC0415

    if key and key not in config.keys:
        raise ConfigError(f"there is no key {key!r}", hint="keepsaid config show keys")
    if (remote := await asyncio.to_thread(running, home)) is not None:
        token = config.keys[key].token.get_secret_value() if key else remote.token
        agent = RunningAgent(remote.url, token, account="" if key else ACCOUNT)
        async with agent:
            yield agent.ask
        return
    who = config.keys[key].principal(key) if key else own_agent(ACCOUNT)
    async with _opened(home, config, who) as ask:
        yield ask


@asynccontextmanager
async def _opened(home: Home, config: Config, who: Principal) -> AsyncIterator[Ask]:
    from keepsaid.app.opening import opened  # noqa: PLC0415 - it loads the runtime
    from keepsaid.interfaces.agent_calls import CALLS, CallSite  # noqa: PLC0415

    async with opened(home, config) as instance:
        await instance.start(answering=False)
        site = CallSite(instance)

        async def ask(name: str, fields: Mapping[str, Any]) -> Shape:
            return await CALLS[name](site, who, fields)

        yield ask
