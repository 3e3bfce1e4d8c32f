"""A real server of tools, over its standard streams: `python mcp_server.py`."""

from __future__ import annotations

import os
import signal

from mcp.server import MCPServer

server = MCPServer("desk")


@server.tool(description=os.environ.get("DESK_ABOUT", "Add two numbers."))
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def told(name: str) -> str:
    """What a variable holds."""
    return os.environ.get(name, "nothing")


@server.tool()
def long(characters: int) -> str:
    """A long text."""
    return "x" * characters


@server.tool()
def refuse() -> str:
    """Refuse."""
    raise ValueError("not on a Sunday")


@server.tool()
def die() -> str:
    """End the server without a word."""
    os.kill(os.getpid(), signal.SIGKILL)
    return "never said"


if __name__ == "__main__":
    server.run("stdio")
