"""Talk: one conversation of the terminal with a running instance, and the commands that may be typed in it."""

from __future__ import annotations

import asyncio
import json
import secrets
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import httpx2
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory
from prompt_toolkit.patch_stdout import patch_stdout

from keepsaid.domain.command import COMMANDS, read_command
from keepsaid.domain.message import Lane, lane_key
from keepsaid.errors import InputError, KeepsaidError, NotRunning, StoreError
from keepsaid.interfaces.cli.console import coloured, say, session, show
from keepsaid.interfaces.cli.escapes import VisibleStream, visible
from keepsaid.interfaces.cli.remote import Remote, problem, running
from keepsaid.interfaces.shapes import turn_shape
from keepsaid.values import frozen

HELP = {
    "/help": "this list",
    "/why": "explain the last turn: what was recalled, what was left out, and why",
    **{f"/{name}": meaning for name, meaning in COMMANDS.items() if name != "help"},
    "/quit": "end the chat, as Ctrl-D does",
}
"""The commands and what they do."""

_HERE = ("/help", "/why", "/quit")
"""Those that the chat carries out itself."""


@frozen
class SlashCommand:
    """A slash command as it was typed."""

    name: str

    @staticmethod
    def parse(line: str) -> SlashCommand | str:
        """The command of the chat that a whole line is, or the line as a message: the runtime carries out the others.

        What a program or a person sends may begin with a slash. `//` before the name of a command sends the name.
        """
        text = line.strip()
        if text in _HERE:
            return SlashCommand(text)
        sends_name = text.startswith("/") and text[1:] in _HERE and read_command(text[1:]) is None
        return text[1:] if sends_name else line


async def run_slash_command(command: SlashCommand, conversation: str) -> bool:
    """Run a slash command; returns False if the chat is to end."""
    if command.name == "/quit":
        return False
    if command.name == "/help":
        show({"commands": HELP}, *(f"{name:14}{meaning}" for name, meaning in HELP.items()), "")
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


_UNKNOWN_TOKEN = 401
_CONNECT_S = 5.0
_PAGE = 100
"""Replies that are asked for at once."""

_READ_S = 60.0
"""The server says that it is still there every second."""


@frozen
class Piece:
    """Something heard of an answer: `delta` and `waiting` carry a text, `settled` the message's story."""

    kind: str
    data: dict[str, Any]

    @property
    def text(self) -> str:
        """The text of a delta or a wait."""
        return str(self.data.get("text", ""))


class ChatClient:
    """HTTP client for one conversation between the terminal and a running instance."""

    def __init__(self, client: httpx2.AsyncClient, conversation: str, found: Callable[[], Remote | None]) -> None:
        self._client = client
        self._conversation = conversation
        self._found = found

    async def put(self, text: str) -> str:
        """Say something; returns the message's id once it is on disk. Raises NotRunning, or why it was refused."""
        place = {"channel": "terminal", "sender": "owner", "conversation": self._conversation, "direct": True}
        body = {**place, "text": text.replace("\0", "\ufffd")}
        told = await self._call("POST", "/v1/messages", body, f"cli-{secrets.token_hex(12)}")
        return str(told["id"])

    async def answer(self, message_id: str) -> AsyncGenerator[Piece, None]:
        """The answer as it is written, and at its end the settled story. Raises NotRunning when the runtime goes."""
        try:
            async with self._client.stream("GET", f"/v1/messages/{message_id}/events") as response:
                self._refuse(response.status_code, await response.aread() if response.is_error else b"")
                async with aclosing(_pieces(response)) as pieces:
                    async for piece in pieces:
                        yield piece
                        if piece.kind == "settled":
                            return
        except httpx2.TransportError as error:
            raise self._gone(error) from error
        raise self._gone(None)

    async def unseen(self) -> AsyncIterator[dict[str, Any]]:
        """Replies of this conversation that nobody has seen, in order; mark each as seen before the next."""
        query = {"channel": "terminal", "conversation": self._conversation, "limit": str(_PAGE)}
        while replies := (await self._call("GET", "/v1/replies", query))["replies"]:
            for reply in replies:
                yield reply
            if len(replies) < _PAGE:
                return

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
                self._client.base_url = remote.url
                self._client.headers["Authorization"] = f"Bearer {remote.token}"
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
            raise problem(body, status)

    def _gone(self, error: Exception | None) -> NotRunning:
        how = f" ({type(error).__name__})" if error else ""
        safe = "What was stored is on disk; the next start answers it."
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
async def open_chat(remote: Remote, conversation: str) -> AsyncIterator[ChatClient]:
    """Open a chat client for a running instance.

    If another runtime replaces it in this home, the client continues with that one.
    """
    home, url, headers = session().home, remote.url, {"Authorization": f"Bearer {remote.token}"}
    wait = httpx2.Timeout(_READ_S, connect=_CONNECT_S)
    async with httpx2.AsyncClient(base_url=url, headers=headers, timeout=wait, trust_env=False, verify=False) as client:
        yield ChatClient(client, conversation, lambda: running(home))


async def settled(talk: ChatClient, message_id: str) -> dict[str, Any]:
    """The story of a message once it is settled. Raises NotRunning when the runtime goes before."""
    async with aclosing(talk.answer(message_id)) as pieces:
        return [piece.data async for piece in pieces][-1]  # the last piece of an answer is the settled one


_LATE_S = 1.0


async def converse(talk: ChatClient, conversation: str) -> None:
    """Ask, answer, ask again, until the person ends it."""
    typed = session().home.typed_file
    typed.touch(mode=0o600)
    prompt: PromptSession[str] = PromptSession(history=FileHistory(str(typed)))
    while True:
        await _show_unseen(talk)
        if (text := await _read_line(prompt, talk)) is None:
            return
        if not text.strip():
            continue
        command = SlashCommand.parse(text)
        try:
            if isinstance(command, str):
                await _interruptible(_answer(talk, command))
            elif not await run_slash_command(command, conversation):
                return
        except (InputError, StoreError) as error:
            say(f"{error.what}. {error.safe} Try: {error.hint}")


async def _read_line(prompt: PromptSession[str], talk: ChatClient) -> str | None:
    """Read the next line of the person; None at Ctrl-D. Late replies are printed above the prompt."""
    late = asyncio.create_task(_watch(talk))
    try:
        with patch_stdout(raw=True):  # replies are made visible before, labels have styles
            return await prompt.prompt_async("you > ", handle_sigint=False)
    except EOFError:
        return None
    except KeyboardInterrupt:
        say("Ctrl-D or /quit ends the chat.")
        return ""
    finally:
        late.cancel()
        with suppress(asyncio.CancelledError):
            await late


async def _watch(talk: ChatClient) -> None:
    """Show late replies; what goes wrong is told of when something is next asked for, and costs no typed line."""
    with suppress(KeepsaidError):
        while True:
            await asyncio.sleep(_LATE_S)
            await _show_unseen(talk)


async def _show_unseen(talk: ChatClient) -> None:
    async for reply in talk.unseen():
        print(f"{_label('earlier >')} {visible(reply['text'])}", flush=True)
        await talk.seen(reply["id"])


async def _interruptible(work: Any) -> None:
    """Wait for work; Ctrl-C ends the waiting and nothing else."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        print("\n", end="")
        say("Not waiting any longer. The message stays; its reply is shown when it is there.")
    finally:
        loop.remove_signal_handler(signal.SIGINT)


async def _answer(talk: ChatClient, text: str) -> None:
    """Put the message, print the answer as it is written, and at last the stored reply where it differs."""
    message_id = await talk.put(text)
    written, stream = "", VisibleStream()
    async with aclosing(talk.answer(message_id)) as pieces:
        async for piece in pieces:
            if piece.kind == "delta":
                _write(stream.feed(piece.text), "" if written else "bot >")
                written += piece.text
            elif piece.kind == "waiting":
                _write(stream.end())
                say(f"{chr(10) if written else ''}waiting: {piece.text}")
                written = ""
            elif piece.kind == "settled":
                _write(stream.end())
                await _finish(talk, piece.data, written)


async def _finish(talk: ChatClient, story: dict[str, Any], written: str) -> None:
    if written:
        _write("\n")
    for reply in story["replies"]:
        if reply["text"] != written:
            _write(f"{visible(reply['text'])}\n", "bot (as it was stored) >" if written else "bot >")
        await talk.seen(reply["id"])
    say_unanswered(story)


def say_unanswered(story: dict[str, Any]) -> None:
    """Say why a settled message has no reply, if it has none."""
    if not story["replies"]:
        reason = (story["batch"] or {}).get("reason", "")
        say(f"{story['id']} is {story['state']}, without a reply: {reason}")


def _write(shown: str, label: str = "") -> None:
    """Print text that was made visible already."""
    sys.stdout.write(f"{_label(label)} {shown}" if label else shown)
    sys.stdout.flush()


def _label(text: str) -> str:
    return f"\x1b[1m{text}\x1b[0m" if coloured() else text
