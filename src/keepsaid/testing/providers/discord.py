"""Discord, as much of it as a bot needs that people talk to: `async with DiscordServer() as discord`.

`say` writes a message, which the gateway dispatches; `sent` has the messages that the bot sent, `typing` the channels
where it showed that it types. A message that the real one would refuse gets the same refusal.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import parse_qs, unquote

from keepsaid.testing.listener import ListeningServer
from keepsaid.testing.model_http import BadHttpError, Connection, GoneError, HttpRequest
from keepsaid.testing.providers.discord_files import DiscordCdn, uploads_in
from keepsaid.testing.providers.discord_gateway import DiscordGatewayServer
from keepsaid.testing.providers.discord_messages import DiscordFault, DiscordMessages, DiscordSent
from keepsaid.testing.providers.discord_shapes import (
    application_shape,
    channel_shape,
    guild_shape,
    reaction_shape,
    role_shape,
    user_shape,
)
from keepsaid.testing.providers.forms import is_form, read_form
from keepsaid.testing.providers.mischief import Mischief, MischiefMaker, harmless

BOT: Final = "4711"
TOKEN: Final = "NDcxMQ.scripted.bot-of-a-test"  # noqa: S105 - of a scripted bot
GUILD, GENERAL, DIRECT, ROLE = "900", "901", "902", "903"
"""The server, a channel of it, the direct conversation with person 7, and the role of the bot."""

_CONTENT_FLAG = 1 << 19
_ROUTES: Final = (
    ("me", r"GET /users/@me"),
    ("open direct", r"POST /users/@me/channels"),
    ("guilds", r"GET /users/@me/guilds"),
    ("application", r"GET (?:/oauth2)?/applications/@me"),
    ("gateway", r"GET /gateway/bot"),
    ("channel", r"GET /channels/(\d+)"),
    ("guild", r"GET /guilds/(\d+)"),
    ("list messages", r"GET /channels/(\d+)/messages"),
    ("read message", r"GET /channels/(\d+)/messages/(\d+)"),
    ("create message", r"POST /channels/(\d+)/messages"),
    ("typing", r"POST /channels/(\d+)/typing"),
    ("react", r"PUT /channels/(\d+)/messages/(\d+)/reactions/([^/]+)/@me"),
)
"""Requests by the name under which they are counted."""


class DiscordServer(ListeningServer):
    """The REST interface on a loopback port for one bot, with its `gateway`; an async context manager.

    `mischief` decides what goes wrong; every request is counted in `calls`, by the names of `_ROUTES`. While
    `throttles_all` is set, a 429 is that of the global limit. `now_ms` is the time of ids and of nonces.
    """

    def __init__(
        self,
        token: str = TOKEN,
        mischief: MischiefMaker = harmless,
        *,
        port: int = 0,
        now_ms: Callable[[], int] = lambda: int(time.time() * 1_000),
    ) -> None:
        super().__init__(self._serve, port)
        self.token = token
        self.mischief = mischief
        self.calls: dict[str, int] = {}
        self.typing: list[str] = []
        self.identifies_left = 1_000
        self.throttles_all = False
        self.application_flags = _CONTENT_FLAG
        self.in_guild = True
        self.messages = DiscordMessages(BOT, now_ms)
        self.messages.add_channel({"id": GENERAL, "type": 0, "name": "general", "guild_id": GUILD})
        self.add_direct(DIRECT, "7")
        self.gateway = DiscordGatewayServer(self)
        self.cdn = DiscordCdn()
        self._news = asyncio.Condition()

    @property
    def api_url(self) -> str:
        """The address of the REST interface."""
        return f"{self.url}/api/v10"

    @property
    def sent(self) -> list[DiscordSent]:
        """The messages that the bot sent, in order."""
        return self.messages.sent

    async def __aenter__(self) -> Self:
        """Listen, with the gateway."""
        await super().__aenter__()
        await self.gateway.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Drop every client, also of the gateway."""
        await self.gateway.close()
        await super().__aexit__(kind, error, trace)

    def say(self, text: str, *, channel: str = GENERAL, sender: str = "7", **fields: Any) -> str:
        """Somebody writes in a channel, thread or direct conversation; returns the id of the message."""
        told = self.messages.write(channel, text, sender, **fields)
        self.gateway.dispatch("MESSAGE_CREATE", self.messages.as_dispatched(told))
        return str(told["id"])

    def send_file(self, content: bytes, text: str = "", *, channel: str = DIRECT, **fields: Any) -> dict[str, Any]:
        """Somebody sends a file; returns the attachment. `fields` are its `filename`, `content_type`, `size`, `url`."""
        file = self.cdn.attach(self.url, channel, content, **fields)
        self.say(text, channel=channel, attachments=[file])
        return file

    def edit(self, number: str, text: str) -> None:
        """The author of a message changes its text."""
        told = self.messages.edit(number, text)
        self.gateway.dispatch("MESSAGE_UPDATE", self.messages.as_dispatched(told))

    def react(self, number: str, emoji: str, *, channel: str = GENERAL, sender: str = "7") -> None:
        """Somebody gives a message an emoji."""
        self.gateway.dispatch(
            "MESSAGE_REACTION_ADD",
            reaction_shape(self.messages.channel(channel), number, sender, emoji, by_bot=sender == BOT),
        )

    def add_thread(self, number: str, parent: str = GENERAL) -> str:
        """Somebody begins a thread; returns its id."""
        told = {"id": number, "type": 11, "name": f"thread {number}", "parent_id": parent, "guild_id": GUILD}
        self.messages.add_channel(told)
        self.gateway.dispatch("THREAD_CREATE", {**channel_shape(told), "newly_created": True})
        return number

    def add_direct(self, number: str, person: str) -> str:
        """Somebody else has a direct conversation with the bot; returns its id."""
        whom = user_shape(person, f"person{person}", f"Person {person}")
        self.messages.add_channel({"id": number, "type": 1, "recipients": [whom]})
        return number

    def guild(self) -> dict[str, Any]:
        """The server, as the gateway and the REST interface show it."""
        return guild_shape(GUILD, "The server", [role_shape(GUILD, "@everyone"), role_shape(ROLE, "bot", BOT)])

    async def wait_for(self, done: Callable[[], bool], within_s: float = 30.0) -> None:
        """Wait until something is so after a request or a frame; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(done)

    async def tell(self) -> None:
        """Let everybody who waits look again."""
        async with self._news:
            self._news.notify_all()

    async def _serve(self, connection: Connection) -> None:
        try:
            with suppress(GoneError):
                while True:
                    request = await connection.receive()
                    answer = self.cdn.send if self.cdn.serves(request) else self._answer
                    goes_on = await answer(connection, request)
                    await self.tell()
                    if not goes_on:
                        return
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, request: HttpRequest) -> bool:
        """Answer a request as mischief wants; returns whether the connection goes on."""
        name, numbers = _named(request)
        self.calls[name] = self.calls.get(name, 0) + 1
        act = self.mischief(name, sum(self.calls.values()))
        if act is Mischief.DROP:
            await connection.reset()
            return False
        headers = {"via": "1.1 scripted"}
        if act.does:
            status, told = self._done(name, numbers, request, headers)
        else:
            status, told = self._refusal(act, headers)
        await self.tell()
        if act is Mischief.RESET_AFTER:
            await connection.reset()
            return False
        if act is Mischief.GARBLE:
            await connection.send(200, b"<html>gateway</html>")
        elif act is Mischief.FAIL_AFTER:
            await connection.send(500, b'{"message": "500: Internal Server Error", "code": 0}')
        elif told is None:
            await connection.send(status, b"", "text/html; charset=utf-8", headers)
        else:
            await connection.send(status, json.dumps(told).encode(), extra=headers)
        return request.keep_alive

    def _done(
        self, name: str, numbers: tuple[str, ...], request: HttpRequest, headers: dict[str, str]
    ) -> tuple[int, Any]:
        """Do what a request asks for; returns the status and the JSON of the answer, and fills in its headers."""
        if request.headers.get("authorization") != f"Bot {self.token}":
            return 401, {"message": "401: Unauthorized", "code": 0}
        try:
            if numbers and name not in ("channel", "guild"):
                self.messages.limit(name, numbers[0], headers)
            return self._result(name, numbers, request)
        except DiscordFault as error:
            return error.status, error.as_json()

    def _result(self, name: str, numbers: tuple[str, ...], request: HttpRequest) -> tuple[int, Any]:
        if (about := self._about(name)) is not None:
            return 200, about
        match name:
            case "guild" if numbers[0] == GUILD:
                return 200, self.guild()
            case "channel":
                return 200, self.messages.channel(numbers[0])
            case "open direct":
                return 200, self.messages.direct_with(str(_body(request).get("recipient_id")))
            case "list messages":
                query = parse_qs(request.query)
                after, limit = (query.get(one, [""])[0] for one in ("after", "limit"))
                page = self.messages.listed(numbers[0], int(after or 0), int(limit or 50))
                return 200, [self.cdn.signed_now(one) for one in page]
            case "read message":
                return 200, self.cdn.signed_now(self.messages.read(*numbers))
            case "create message":
                return 200, self._create(numbers[0], _body(request))
            case "react":
                self._react(numbers[0], numbers[1], unquote(numbers[2]))
                return 204, None
            case "typing":
                self.typing.append(str(self.messages.channel(numbers[0])["id"]))
                return 204, None
        raise DiscordFault(404, 0, "404: Not Found")

    def _about(self, name: str) -> Any:
        """What the bot is shown of itself and of the gateway; None for other requests."""
        match name:
            case "me":
                return user_shape(BOT, "scripted_bot", is_bot=True)
            case "application":
                return application_shape(BOT, "scripted_bot", self.application_flags)
            case "guilds":
                about = {"id": GUILD, "name": "The server", "icon": None, "banner": None, "owner": False}
                return [{**about, "permissions": "0", "features": []}] if self.in_guild else []
            case "gateway":
                budget = {"total": 1_000, "remaining": self.identifies_left, "reset_after": 3_600_000}
                budget["max_concurrency"] = 1
                return {"url": self.gateway.url, "shards": 1, "session_start_limit": budget}
        return None

    def _react(self, channel: str, number: str, emoji: str) -> None:
        if self.messages.react(channel, number, emoji):
            self.react(number, emoji, channel=channel, sender=BOT)

    def _create(self, channel: str, given: Mapping[str, Any]) -> dict[str, Any]:
        files = uploads_in(given)
        kept = [self.cdn.take(self.url, channel, file) for file in files]
        told, is_new = self.messages.create(channel, given, kept, files)
        if is_new:
            self.gateway.dispatch("MESSAGE_CREATE", self.messages.as_dispatched(told))
        return told

    def _refusal(self, act: Mischief, headers: dict[str, str]) -> tuple[int, dict[str, Any]]:
        """The answer to a request that is not done."""
        if act is not Mischief.SLOW_DOWN:
            return 500, {"message": "500: Internal Server Error", "code": 0}
        headers["x-ratelimit-scope"] = "global" if self.throttles_all else "user"
        told = {"message": "You are being rate limited.", "retry_after": 0.65, "global": self.throttles_all}
        return 429, told


def _named(request: HttpRequest) -> tuple[str, tuple[str, ...]]:
    """The name of a request, and the ids in its path."""
    line = f"{request.method} {request.path.removeprefix('/api/v10')}"
    for name, pattern in _ROUTES:
        if (found := re.fullmatch(pattern, line)) is not None:
            return name, found.groups()
    return "unknown", ()


def _body(request: HttpRequest) -> dict[str, Any]:
    """The parameters of a request, with the files of a form; raises BadHttpError for what is neither."""
    form = read_form(request) if is_form(request) else None
    try:
        given = json.loads(request.body or b"{}" if form is None else form.fields.get("payload_json", "{}"))
    except ValueError as error:
        raise BadHttpError(400, "The body is not JSON.") from error
    files = {} if form is None else form.files
    return {**given, **files} if isinstance(given, dict) else {}
