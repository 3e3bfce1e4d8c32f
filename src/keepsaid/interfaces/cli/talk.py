"""Talk: one conversation of the terminal with a running instance, and the commands that may be typed in it."""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from difflib import get_close_matches
from functools import partial
from typing import Any, TypeVar

import httpx2

from keepsaid.domain import ids
from keepsaid.domain.command import COMMANDS, is_talk, read_command
from keepsaid.domain.message import SYSTEM, Lane, lane_key
from keepsaid.domain.route import PAUSED
from keepsaid.errors import InputError, KeepsaidError, NotRunning
from keepsaid.interfaces.cli.console import say, session, show, wrapped
from keepsaid.interfaces.cli.remote import Remote, running
from keepsaid.interfaces.problems import problem_in
from keepsaid.interfaces.shapes import turn_shape
from keepsaid.values import frozen

HELP = {
    "/help": "this list",
    "/why": "explain the last turn: what was recalled, what was left out, and why",
    "/stop": "cancel the answer that this chat no longer waits for: Ctrl-C, then /stop or Ctrl-C again",
    **{f"/{name}": meaning for name, meaning in COMMANDS.items() if name not in ("help", "join", "why")},
    "/quit": "end the chat, as Ctrl-D does",
}
"""The commands and what they do. The owner, who sits at the terminal, joins people by `keepsaid memory people join`."""

ARGUMENTS = {
    "/forget": ("that", "yes"),
    "/wrong": ("undo",),
    "/incognito": ("off",),
    "/personality": ("show", "set", "reset", "show --person", "show --global", "reset --person", "reset --global"),
}
"""Words that may follow a command, for completion."""

_HERE = ("/help", "/why", "/stop", "/quit")
"""Those that the chat carries out itself."""

_ITS_OWN = ("/why", "/stop", "/quit")
"""Of these, those that are not the runtime's here: its `/why` is shorter."""


@frozen
class SlashCommand:
    """A slash command as it was typed."""

    name: str

    @staticmethod
    def parse(line: str) -> SlashCommand | str:
        """The command of the chat that a whole line is, or the line as a message: the runtime carries out the others.

        What a program or a person sends may begin with a slash. What looks like a mistyped command is one that
        `run_slash_command` refuses: nobody means to send it to the agent. A second slash before it sends it.
        """
        text = line.strip()
        if text.casefold() in _HERE:
            return SlashCommand(text.casefold())
        name, _, rest = text.partition(" ")
        is_ours = name.casefold() in _ITS_OWN or read_command(text) is None
        if _NAME.fullmatch(name) and is_ours and (not rest or _is_mistyped(name.casefold(), rest)):
            return SlashCommand(text)
        is_refused = isinstance(SlashCommand.parse(text[1:]), SlashCommand) if text.startswith("//") else False
        return text[1:] if is_refused and read_command(text[1:]) is None else line


_NAME, _ALIKE = re.compile(r"/[A-Za-z]+"), 0.75


def _is_mistyped(name: str, rest: str) -> bool:
    """Whether a name with words behind it is meant as a command; `/why not?` and `/reset it` are for the agent."""
    if name in HELP:
        return name in _HERE and not is_talk(rest)
    return bool(get_close_matches(name, HELP, 1, _ALIKE))


async def run_slash_command(command: SlashCommand, conversation: str) -> bool:
    """Run a slash command; returns False if the chat is to end. Raises InputError for one that does not exist."""
    if command.name not in _HERE:
        name, _, rest = command.name.partition(" ")
        if rest and name.casefold() in _HERE:
            what = f"{name} takes nothing after it"
            raise InputError(what, safe="Nothing was sent.", hint=f"{name}, or /{command.name} to send it as it is")
        near = [one for one in get_close_matches(name.casefold(), HELP, 1, _ALIKE) if one != command.name]
        meant = f"; did you mean {near[0]}?" if near else ""
        what = f"there is no command {command.name}{meant}"
        raise InputError(what, safe="Nothing was sent.", hint=f"/help, or /{command.name} to send it as it is")
    if command.name == "/quit":
        return False
    if command.name == "/help":
        show({"commands": HELP}, wrapped(HELP.items(), 13), "")
    elif command.name == "/stop":
        say("Nothing of this chat is being answered.")
    else:
        await _why(conversation)
    return True


async def _why(conversation: str) -> None:
    from keepsaid.app.stores import reading  # noqa: PLC0415
    from keepsaid.interfaces.cli.why import explained, turn_named  # noqa: PLC0415

    lane = Lane("terminal", "default", conversation, lane_key(conversation))
    try:
        async with reading(session().home, session().config()) as stores:
            turn = await turn_named(stores, None, lane)
    except InputError as none:
        say(f"{none.what} in this conversation")
        return
    show({"turn": turn_shape(turn)}, *explained(turn), "")


async def question_of(reply: dict[str, Any]) -> str:
    """What a person said that a reply answers; "" where nobody did, and for an instance elsewhere."""
    from keepsaid.app.stores import reading  # noqa: PLC0415

    number = None if session().url else ids.read("turn", reply.get("turn") or "")
    if number is None:
        return ""
    with suppress(KeepsaidError):  # the reply is shown without its question
        async with reading(session().home, session().config()) as stores:
            turn = await stores.views.turn(number)
        said = [one.text for one in turn.messages if one.inbound.origin.sender != SYSTEM] if turn else []
        return "\n".join(said)
    return ""


T = TypeVar("T")
_UNKNOWN_TOKEN = 401
_CONNECT_S = 5.0
_PAGE = 100
"""Replies that are asked for at once."""

_READ_S = 60.0
"""The server says that it is still there every second."""


@frozen
class Piece:
    """An event of an answer: `delta` and `waiting` carry a text, `tool` a name, `settled` the message's story."""

    kind: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a delta or a wait, or the name of a tool."""
        return str(self.data.get("text", self.data.get("name", "")))


class ChatClient:
    """HTTP client for one conversation between the terminal and a running instance."""

    def __init__(
        self,
        client: httpx2.AsyncClient,
        conversation: str,
        found: Callable[[], Remote | None],
        host: Callable[[], Awaitable[Remote]] | None = None,
    ) -> None:
        self._client = client
        self._conversation = conversation
        self._found = found
        self._host = host

    async def kept_on(self, work: Callable[[], Awaitable[T]]) -> T:
        """Do something that may be repeated; when the runtime goes meanwhile, once more with the next one."""
        try:
            return await work()
        except NotRunning:
            if self._host is None:
                raise
            await self.take_over()
            return await work()

    async def take_over(self) -> None:
        """Go on with the runtime that is up now, or with one that this process starts."""
        if self._host is not None:
            self._use(await self._host())

    def _use(self, remote: Remote) -> None:
        self._client.base_url = remote.url
        self._client.headers["Authorization"] = f"Bearer {remote.token}"

    async def put(self, text: str, key: str = "") -> str:
        """Say something; returns the message's id once it is on disk. Raises NotRunning, or why it was refused.

        Under the same `key` it is stored once, however often it is put.
        """
        place = {"channel": "terminal", "sender": "owner", "conversation": self._conversation, "direct": True}
        body = {**place, "text": text.replace("\0", "\ufffd")}
        told = await self._call("POST", "/v1/messages", body, key or f"cli-{secrets.token_hex(12)}")
        return str(told["id"])

    async def story(self, message_id: str) -> dict[str, Any]:
        """A message, its state and its replies."""
        return dict(await self._call("GET", f"/v1/messages/{message_id}"))

    async def stop(self, message_id: str) -> bool:
        """Cancel the turn that answers a message, with its call of the model; False if none does."""
        return bool((await self._call("POST", f"/v1/messages/{message_id}/stop"))["stopped"])

    async def answer(self, message_id: str) -> AsyncGenerator[Piece, None]:
        """The answer as it is written, and at its end the settled story, or that the conversation is paused.

        Raises NotRunning when the runtime goes.
        """
        try:
            async with self._client.stream("GET", f"/v1/messages/{message_id}/events") as response:
                self._refuse(response.status_code, await response.aread() if response.is_error else b"")
                async with aclosing(_pieces(response)) as pieces:
                    async for piece in pieces:
                        yield piece
                        if piece.kind == "settled" or piece.data.get("paused"):
                            return
        except httpx2.TransportError as error:
            raise self._gone(error) from error
        raise self._gone(None)

    async def unseen(self) -> AsyncIterator[dict[str, Any]]:
        """Replies of this conversation that nobody has seen, in order; mark each as seen before the next."""
        while replies := await self._unseen(_PAGE):
            for reply in replies:
                yield reply
            if len(replies) < _PAGE:
                return

    async def any_unseen(self) -> bool:
        """Whether there is a reply in this conversation that nobody has seen."""
        return bool(await self._unseen(1))

    async def _unseen(self, limit: int) -> list[dict[str, Any]]:
        query = {"channel": "terminal", "conversation": self._conversation, "limit": str(limit)}
        return list((await self._call("GET", "/v1/replies", query))["replies"])

    async def seen(self, reply_id: str) -> None:
        """A person has seen a reply."""
        await self._call("POST", f"/v1/replies/{reply_id}/seen")

    async def _call(self, method: str, path: str, data: dict[str, Any] | None = None, key: str | None = None) -> Any:
        """One request; when nobody answered, once more to the runtime that is up by now, which has another token.

        The answer to the first may have been lost on its way: under the same key nothing is stored twice.
        """
        try:
            return await self._once(method, path, data, key)
        except NotRunning:
            if (remote := await asyncio.to_thread(self._found)) is not None:
                self._use(remote)
            return await self._once(method, path, data, key)

    async def _once(self, method: str, path: str, data: dict[str, Any] | None, key: str | None) -> Any:
        headers = {} if key is None else {"Idempotency-Key": key}
        try:
            if method == "GET":
                response = await self._client.get(path, params=data)
            else:
                response = await self._client.post(path, json=data or {}, headers=headers)
        except httpx2.TransportError as error:
            raise self._gone(error) from error
        self._refuse(response.status_code, response.content)
        try:
            return response.json()
        except ValueError as error:
            raise self._gone(error) from error

    def _refuse(self, status: int, body: bytes) -> None:
        """Raise what an answer refuses with: NotRunning when whoever listens now does not know the token."""
        if status == _UNKNOWN_TOKEN:
            raise self._gone(None)
        if status >= 400:
            raise problem_in(body, status)

    def _gone(self, error: Exception | None) -> NotRunning:
        how = f" ({type(error).__name__})" if error else ""
        safe = "What was acknowledged is on disk, and is answered at the next start."
        return NotRunning(f"the runtime stopped answering{how}", safe=safe, hint="keepsaid chat")


async def _pieces(response: httpx2.Response) -> AsyncGenerator[Piece, None]:
    """The server-sent events of a response. Lines end at LF alone: text may hold what Unicode calls a line end."""
    kind, rest = "", b""
    async for chunk in response.aiter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            name, _, value = line.partition(b": ")
            if name == b"event":
                kind = value.decode()
            elif name == b"data":
                yield Piece(kind, json.loads(value))


@asynccontextmanager
async def open_chat(host: Callable[[], Awaitable[Remote]], conversation: str) -> AsyncIterator[ChatClient]:
    """Open a chat client for the running instance, which `host` finds or starts.

    If another runtime replaces it in this home, the client continues with that one.
    """
    remote = await host()
    url, headers = remote.url, {"Authorization": f"Bearer {remote.token}"}
    wait, is_tls = httpx2.Timeout(_READ_S, connect=_CONNECT_S), url.startswith("https:")
    found = (lambda: remote) if session().url else partial(running, session().home)
    async with httpx2.AsyncClient(
        base_url=url, headers=headers, timeout=wait, trust_env=False, verify=is_tls
    ) as client:  # without TLS the certificates, which take 30 ms, are not loaded
        yield ChatClient(client, conversation, found, host)


async def settled(talk: ChatClient, message_id: str) -> dict[str, Any]:
    """The story of a message once it is settled, or waits for /resume; what it waits for is said once.

    Raises NotRunning when the runtime goes.
    """
    said = ""
    async with aclosing(talk.answer(message_id)) as pieces:
        async for last in pieces:
            if last.kind == "waiting" and last.text != said:
                said = last.text
                say(f"waiting: {said}")
    return last.data if last.kind == "settled" else await talk.story(message_id)


def say_unanswered(story: dict[str, Any]) -> None:
    """Say why a settled message has no reply, if it has none."""
    if not story["replies"] and story["state"] == "batched":
        say(f"{story['id']} waits: {PAUSED}")
    elif story.get("silent"):
        say(f"{story['id']} is {story['state']}, without a reply: {story['silent']}")
    elif not story["replies"]:
        reason = (story["batch"] or {}).get("reason", "")
        say(f"{story['id']} is {story['state']}, without a reply: {reason}")
