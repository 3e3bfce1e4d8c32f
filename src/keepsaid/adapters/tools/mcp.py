"""Tools of MCP servers, and which of their texts are accepted."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import re
from base64 import b64decode
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import asdict
from fnmatch import fnmatchcase
from functools import partial
from mimetypes import guess_extension
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import SecretStr

from keepsaid.config.home import write_file
from keepsaid.config.services import McpServerConfig
from keepsaid.domain.message import SERVES
from keepsaid.domain.prompt import Json
from keepsaid.domain.trust import Described, ToolStanding, standing_of
from keepsaid.domain.turn_files import MadeFile, WithFiles
from keepsaid.errors import HomeError, ToolError, installation
from keepsaid.ports.model import Acceptance, Served, Tool
from keepsaid.ports.runtime import Clock
from keepsaid.text.normal import cut, normalise

if TYPE_CHECKING:
    from mcp import Client

T = TypeVar("T")

ACCEPTED_FILE, WAITING_FILE = "tools.json", "tools.json"
"""In the data directory of a home the accepted texts; in its state directory the tools that wait."""

SERVERS_FILE = "tool-servers.json"
"""In the state directory of a home the servers that could not be used, with the reason."""

Pins = Mapping[str, Mapping[str, Described]]


class ToolPins:
    """The accepted texts of a home (`accepted`) and the tools that wait for acceptance (`waiting`)."""

    def __init__(self, accepted: Path, waiting: Path) -> None:
        self._accepted, self._waiting = accepted, waiting
        self._seen: tuple[int, int] | None = None
        self._pins: Pins = {}
        self._told: dict[str, dict[str, list[str]]] | None = None

    def standing(self, server: str, one: Served) -> ToolStanding:
        """Whether the text of a tool was accepted. A file that cannot be read accepts nothing."""
        return standing_of(one.text, self.accepted(server, one.name))

    def accepted(self, server: str, name: str) -> Described | None:
        """The text that was accepted of a tool; None where none was."""
        return self._current().get(server, {}).get(name)

    def stamp(self) -> tuple[int, int]:
        try:
            found = self._accepted.stat()
        except OSError:
            return 0, 0
        return found.st_mtime_ns, found.st_ino

    def offered(self, server: str, served: Sequence[Served]) -> Sequence[Served]:
        """The tools that may be offered: allowed, and with the text that was accepted.

        Writes down which others wait.
        """
        allowed = [one for one in served if one.allowed]
        found = [(one, self.standing(server, one)) for one in allowed]
        self._tell(server, {one.name: [each, one.text.pin] for one, each in found if each is not ToolStanding.ACCEPTED})
        return [one for one, each in found if each is ToolStanding.ACCEPTED]

    def _tell(self, server: str, waiting: dict[str, list[str]]) -> None:
        told = self._told = _read(self._waiting, _waits) if self._told is None else self._told
        if told.get(server, {}) != waiting:
            told[server] = waiting
            with suppress(OSError):  # it is only shown; what is offered does not depend on it
                write_file(self._waiting, json.dumps({name: one for name, one in told.items() if one}))

    def accept(self, server: str, served: Sequence[Served]) -> None:
        """Accept the texts of tools as they are given. Raises HomeError."""
        pins = {name: dict(each) for name, each in self._current().items()}
        pins.setdefault(server, {}).update({one.name: one.text for one in served})
        told = {name: {tool: asdict(text) for tool, text in each.items()} for name, each in pins.items()}
        try:
            write_file(self._accepted, json.dumps(told, indent=1))
        except OSError as error:
            what = f"{self._accepted} cannot be written ({error.strerror})"
            raise HomeError(what, safe="Nothing was accepted.", hint="make its directory yours and writable") from error

    def waiting(self) -> dict[str, dict[str, ToolStanding]]:
        """By server, the tools that wait for acceptance, as the runtime saw them last."""
        found: dict[str, dict[str, ToolStanding]] = {}
        for server, each in _read(self._waiting, _waits).items():
            for name, (standing, pin) in each.items():
                text = self.accepted(server, name)
                if text is None or text.pin != pin:
                    found.setdefault(server, {})[name] = ToolStanding(standing)
        return found

    def _current(self) -> Pins:
        if (stamp := self.stamp()) != self._seen:
            self._seen, self._pins = stamp, _read(self._accepted, _described)
        return self._pins


def _read(file: Path, read: Callable[[Any], T]) -> dict[str, dict[str, T]]:
    """What a file says of each tool, by server; one that cannot be read says nothing."""
    try:
        told: dict[str, dict[str, Any]] = json.loads(file.read_text("utf-8"))
        return {name: {tool: read(one) for tool, one in each.items()} for name, each in told.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}


def _described(told: Any) -> Described:
    return Described(str(told["description"]), dict(told["schema"]))


def _waits(told: Any) -> list[str]:
    standing, pin = told
    return [ToolStanding(standing), str(pin)]


class ServerTroubles:
    """Which servers a runtime could not use when it tried last, kept in a file for commands that show it."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, str]:
        """By server, why it could not be used. A file that cannot be read says nothing."""
        try:
            told = json.loads(self._file.read_text("utf-8"))
            return {str(name): str(why) for name, why in told.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def note(self, server: str, why: str) -> None:
        """Write down why a server cannot be used, "" when it can. Blocks."""
        told = self.read()
        if told.get(server, "") != why:
            changed = {name: one for name, one in (told | {server: why}).items() if one}
            with suppress(OSError):  # it is only shown
                write_file(self._file, json.dumps(changed))


_log = logging.getLogger("keepsaid.tools")
_CONNECT_S = 20.0
_LOOK_MS = 60_000
"""How often the list of its tools is requested, which also shows whether it is still available."""

_AGAIN_MS, _AGAIN_MS_MAX = 1_000, 60_000
_CLOSED = -32_000
"""The code of the error that the library raises when a connection has ended."""

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DESCRIPTION_CHARS_MAX = 2_000
_SCHEMA_CHARS_MAX = 20_000
_TOOLS_MAX = 128


class McpServer:
    """One server, `there` while it is connected; `keep` is its only loop, and without it a call is refused at once."""

    def __init__(
        self,
        name: str,
        config: McpServerConfig,
        clock: Clock,
        accepting: Acceptance,
        troubles: ServerTroubles | None = None,
    ) -> None:
        self.name = name
        self.trouble = "not connected yet"
        self.there = asyncio.Event()
        self._config = config
        self._clock = clock
        self._client: Client | None = None
        self._accepting = accepting
        self._troubles = troubles
        self._known: Sequence[Served] = ()
        self._stamp: object = None
        self._tools: tuple[Tool, ...] = ()
        self._lost = asyncio.Event()
        self._tries = 0

    def tools(self) -> Sequence[Tool]:
        """The tools that may be used, by name; none while it is not there.

        What the owner accepts meanwhile counts from the next call on.
        """
        if self._known and self._accepting.stamp() != self._stamp:
            self._offer(self._known)
        return self._tools

    async def served(self) -> Sequence[Served]:
        try:
            async with AsyncExitStack() as closing, asyncio.timeout(_CONNECT_S):
                return await self._listed(await closing.enter_async_context(self._connection(closing)))
        except _troubles() as error:
            raise ToolError(_describe_error(error)) from error

    async def keep(self) -> int | None:
        try:
            async with AsyncExitStack() as closing:
                async with asyncio.timeout(_CONNECT_S):
                    client = await closing.enter_async_context(self._connection(closing))
                    self._offer(await self._listed(client))
                await self._stay(client)
        except _troubles() as error:
            self.trouble = _describe_error(error)
        finally:
            self._leave()
            self._known = self._tools = ()
        await self._note(self.trouble)
        wait_ms = min(_AGAIN_MS * 2**self._tries, _AGAIN_MS_MAX)
        self._tries = min(self._tries + 1, 16)
        _log.warning("the tools of %s are not there; trying again in %g s", self.name, wait_ms / 1_000)
        return int(self._clock.due_ms() + wait_ms)

    async def _note(self, trouble: str) -> None:
        if self._troubles is not None:
            await asyncio.to_thread(self._troubles.note, self.name, trouble)

    def _leave(self) -> None:
        self._client = None
        self.there.clear()

    async def _stay(self, client: Client) -> None:
        self._client, self.trouble, self._tries = client, "", 0
        await self._note("")
        self.there.set()
        while self.there.is_set():
            await self._clock.wait(self._lost, _LOOK_MS)
            if self.there.is_set():
                async with asyncio.timeout(_CONNECT_S):
                    self._offer(await self._listed(client))
        self.trouble = "the connection was lost"

    def _connection(self, closing: AsyncExitStack) -> Client:
        try:
            from mcp import Client, StdioServerParameters, stdio_client  # noqa: PLC0415 - 0.8 s that few need
            from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415
            from mcp.shared._httpx_utils import create_mcp_http_client  # noqa: PLC0415
        except ImportError as error:
            raise ToolError(f"the package mcp is not installed: {installation('mcp')}") from error
        logging.getLogger("mcp").setLevel(logging.CRITICAL)  # it would log what servers say
        given = self._config
        if given.url:
            http = create_mcp_http_client(_opened(given.headers))
            closing.push_async_callback(http.aclose)
            return Client(streamable_http_client(given.url, http_client=http), read_timeout_seconds=given.limit_s)
        program, *arguments = given.command
        silent = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - closed with the connection
        closing.callback(silent.close)
        server = StdioServerParameters(command=program, args=arguments, env=_opened(given.env))
        return Client(stdio_client(server, errlog=silent), read_timeout_seconds=given.limit_s)

    async def _listed(self, client: Client) -> list[Served]:
        found: list[Served] = []
        cursor = None
        while len(found) < _TOOLS_MAX:
            page = await client.list_tools(cursor=cursor, cache_mode="refresh")
            found += [self._served(tool.name, tool.description or "", tool.input_schema) for tool in page.tools]
            if not (cursor := page.next_cursor):
                break
        return sorted(found[:_TOOLS_MAX], key=lambda one: one.name)

    def _served(self, name: str, description: str, schema: dict[str, Any]) -> Served:
        short = len(json.dumps(schema)) <= _SCHEMA_CHARS_MAX
        allowed = (
            short
            and _NAME.fullmatch(self._called(name)) is not None
            and any(fnmatchcase(name, pattern) for pattern in self._config.allow)
        )
        kinds = (kind for pattern, kind in self._config.kinds.items() if fnmatchcase(name, pattern))
        told = cut(normalise(description), _DESCRIPTION_CHARS_MAX)
        return Served(normalise(name), told, schema, next(kinds, self._config.kind), allowed)

    def _called(self, name: str) -> str:
        return f"{self.name}__{name}"

    def _offer(self, served: Sequence[Served]) -> None:
        self._known, self._stamp = served, self._accepting.stamp()
        self._tools = tuple(map(self._tool, self._accepting.offered(self.name, served)))

    def _tool(self, one: Served) -> Tool:
        given, use = self._config, partial(self._use, one.name)
        each = (whom for pattern, whom in given.serves_each.items() if fnmatchcase(one.name, pattern))
        whom = next(each, given.serves)
        serves = None if whom is None else SERVES[whom]
        terms = one.kind, given.limit_s, given.chars_max, serves, given.output
        return Tool(self._called(one.name), one.description, one.schema, use, *terms)

    async def _use(self, name: str, arguments: dict[str, Json]) -> str:
        if (client := self._client) is None:
            raise ToolError(f"{self.name} cannot be reached now: {self.trouble}")
        try:
            result = await client.call_tool(name, arguments)
        except _troubles() as error:
            if getattr(error, "code", _CLOSED) == _CLOSED and self._client is client:
                self._leave()
                self._lost.set()
            raise ToolError(_describe_error(error)) from error
        made = await asyncio.to_thread(_files_in, result.content)
        told = "\n".join(_text_of(one) for n, one in enumerate(result.content) if n not in made)
        if not result.content and result.structured_content is not None:
            told = json.dumps(result.structured_content, ensure_ascii=False)
        if result.is_error:
            raise ToolError(told or "it failed and does not say why")
        return WithFiles(told, self._config.output, [*made.values()]) if made else told


def _opened(secrets: Mapping[str, SecretStr]) -> dict[str, str]:
    return {name: secret.get_secret_value() for name, secret in secrets.items()}


def _text_of(content: Any) -> str:
    """A part of a result as text, or its kind and size."""
    inside = getattr(content, "resource", content)
    if isinstance(text := getattr(inside, "text", None), str):
        return text
    size = len(_base64_of(inside))
    return f"[{content.type}, {size:,} characters, not shown]"


def _base64_of(content: Any) -> str:
    data = getattr(content, "data", None) or getattr(content, "blob", None)
    return data if isinstance(data, str) else ""


def _files_in(contents: Sequence[Any]) -> dict[int, MadeFile]:
    """The pictures, recordings and files of a result, by their places in it; without those that cannot be read."""
    made = dict[int, MadeFile]()
    for n, one in enumerate(contents):
        inside = getattr(one, "resource", one)
        try:
            content = b64decode(_base64_of(inside), validate=True)
        except ValueError:
            continue
        kind = str(getattr(inside, "mime_type", None) or "")
        if content:
            made[n] = MadeFile(_name_of(inside, kind, len(made) + 1), kind, content)
    return made


def _name_of(content: Any, kind: str, number: int) -> str:
    """The last part of its address, or a number with the ending of its type."""
    named = urlsplit(str(getattr(content, "uri", "") or "")).path.rpartition("/")[2]
    return unquote(named) or f"{number}{guess_extension(kind) or ''}"


def _describe_error(error: BaseException) -> str:
    """Describe an error in words; of an exception group, its first exception."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ToolError):
        return error.what
    if isinstance(error, TimeoutError):
        return "it did not answer in time"
    return cut(normalise(str(error) or type(error).__name__), 300)


def _troubles() -> tuple[type[BaseException], ...]:
    """What a server, its connection or the library that speaks to it may raise."""
    ours = (ToolError, OSError, ValueError, RuntimeError, ExceptionGroup)
    try:
        from anyio import BrokenResourceError, ClosedResourceError, EndOfStream  # noqa: PLC0415
        from httpx2 import HTTPError  # noqa: PLC0415
        from mcp import MCPError  # noqa: PLC0415
    except ImportError:
        return ours
    return (*ours, MCPError, HTTPError, BrokenResourceError, ClosedResourceError, EndOfStream)
