"""A real server of tools, over its standard streams: `python mcp_server.py`."""

from __future__ import annotations

import os
import signal
from base64 import b64encode

from mcp.server import MCPServer
from mcp.types import BlobResourceContents, EmbeddedResource, ImageContent, TextContent

from keepsaid.testing.providers.kept_files import PNG

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


@server.tool()
def draw(pixels: int) -> list[TextContent | ImageContent | EmbeddedResource]:
    """Draw a picture, and write down how."""
    picture = ImageContent(type="image", data=b64encode(PNG[:8] + bytes(pixels)).decode(), mime_type="image/png")
    steps = BlobResourceContents(uri="file:///desk/how%20to.txt", blob=b64encode(b"with a pen").decode())
    broken = ImageContent(type="image", data="not base64", mime_type="image/png")
    return [TextContent(type="text", text="drawn"), picture, EmbeddedResource(type="resource", resource=steps), broken]


if __name__ == "__main__":
    server.run("stdio")
