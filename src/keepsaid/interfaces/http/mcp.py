"""The MCP server over HTTP: `/mcp`, and `/mcp/c/CONVERSATION` for a client that is in one conversation alone."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from keepsaid import __version__
from keepsaid.app.instance import Instance
from keepsaid.domain import principal
from keepsaid.errors import ConfigError, KeepsaidError, installation
from keepsaid.interfaces.agent_calls import CALLS
from keepsaid.interfaces.http.agents import call_site_of
from keepsaid.interfaces.http.calls import OpenRoute
from keepsaid.interfaces.http.gate import Gate, KeyWatch
from keepsaid.interfaces.http.responses import NotFound, problem
from keepsaid.interfaces.mcp.tool import Ask
from keepsaid.interfaces.mcp.tools import CORE, FULL
from keepsaid.interfaces.schema import OBJECT, TEXT, many, takes
from keepsaid.interfaces.shapes import Shape

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager


METADATA = "/.well-known/oauth-protected-resource"
_OF_MCP = f"{METADATA}/mcp"


class McpDoor:
    """Answers requests of the protocol. The SDK is loaded with the first one, and ends with `close`.

    No request leads to another: there are no sessions, so that any process answers any of them.
    """

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate
        self._serving: asyncio.Future[StreamableHTTPSessionManager] | None = None
        self._task: asyncio.Task[None] | None = None
        self._over = asyncio.Event()

    @property
    def scopes(self) -> tuple[principal.Scope, ...]:
        """Those that let a key in, one of them: what the tools need that are offered."""
        every = self._instance.config.server.mcp_tools == "full"
        return tuple(principal.Scope) if every else (principal.Scope.READ, principal.Scope.WRITE)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the caller in by its key, and answer in its name."""
        request = Request(scope, receive)
        try:
            scope["keepsaid.who"] = self._gate.caller(request, self.scopes)
            manager = await self._manager()
        except KeepsaidError as error:
            response: Response = problem(error)
            if response.status_code == 401:
                response.headers["WWW-Authenticate"] = self._challenge(request)
            await response(scope, receive, send)
            return
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """End what runs."""
        self._over.set()
        if self._task is not None:
            await asyncio.wait((self._task,))

    def _challenge(self, request: Request) -> str:
        """How to come in, for a client without a token: with a bearer token, and from whom, where that is set."""
        if not self._instance.config.server.mcp_issuer:
            return "Bearer"
        return f'Bearer resource_metadata="{_origin(self._instance, request)}{METADATA}"'

    async def metadata(self, request: Request) -> Response:
        """The metadata of the MCP server as an OAuth protected resource (RFC 9728); 404 without `server.mcp_issuer`."""
        issuer = self._instance.config.server.mcp_issuer
        if not issuer:
            what = "no authorization server is set (server.mcp_issuer): calls carry the token of a key"
            raise NotFound(what, safe="Nothing was changed.", hint="see docs/use/reference/agents.md")
        return JSONResponse({
            "resource": f"{_origin(self._instance, request)}/mcp",
            "resource_name": "keepsaid",
            "authorization_servers": [issuer],
            "scopes_supported": [str(scope) for scope in self.scopes],
            "bearer_methods_supported": ["header"],
        })  # fmt: skip

    async def _manager(self) -> StreamableHTTPSessionManager:
        if self._serving is None or self._task is None or self._task.done():
            self._serving = asyncio.get_running_loop().create_future()
            self._task = asyncio.create_task(self._serve(self._serving), name="mcp")
        serving, task = self._serving, self._task
        await asyncio.wait((serving, task), return_when=asyncio.FIRST_COMPLETED)
        if not serving.done():
            task.result()  # it could not begin, and says why; the next request tries it again
        return await serving

    async def _serve(self, ready: asyncio.Future[StreamableHTTPSessionManager]) -> None:
        """The manager runs within one task, from its first request to the end of the server."""
        try:
            manager = await asyncio.to_thread(self._made)
        except ImportError as error:
            raise ConfigError("the MCP server is not installed", hint=installation("mcp")) from error
        async with manager.run():
            ready.set_result(manager)
            await self._over.wait()

    def _made(self) -> StreamableHTTPSessionManager:
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - an extra

        from keepsaid.interfaces.mcp.server import server_of  # noqa: PLC0415 - it loads the SDK

        tools = FULL if self._instance.config.server.mcp_tools == "full" else CORE
        server = server_of(tools, self._ask_of, __version__)
        return StreamableHTTPSessionManager(server, json_response=True, stateless=True)

    def _ask_of(self, request: Any) -> tuple[Ask, str]:
        who, site = request.scope["keepsaid.who"], call_site_of(self._instance)
        watch = KeyWatch(self._gate, self._instance.keys, request, self.scopes)

        async def ask(name: str, fields: Mapping[str, object]) -> Shape:
            await watch.check()
            return await CALLS[name](site, who, fields)

        return ask, unquote(request.scope.get("path_params", {}).get("conversation", ""))


def _origin(instance: Instance, request: Request) -> str:
    """The address that others call this server by: the one that is set, else the one that was called."""
    return instance.config.server.public_url.rstrip("/") or str(request.base_url).rstrip("/")


def routes(door: McpDoor) -> tuple[OpenRoute, ...]:
    """The addresses of the door."""
    paths = ("/mcp", "/mcp/c/{conversation}")
    served = tuple(OpenRoute("POST", path, door, "key", door.scopes, OBJECT, whole=True) for path in paths)
    about = takes("resource", resource=TEXT, authorization_servers=many(TEXT))
    return (*served, *(OpenRoute("GET", path, door.metadata, "anybody", gives=about) for path in (METADATA, _OF_MCP)))
