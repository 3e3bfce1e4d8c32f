"""`keepsaid chat`: talk in the terminal, line by line over a pipe, or once."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from queue import SimpleQueue
from shlex import quote
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from keepsaid.domain.message import Lane, lane_key
from keepsaid.errors import HomeBusy, HomeError, InputError, NotRunning
from keepsaid.interfaces.cli import program, serve
from keepsaid.interfaces.cli import talk as talks
from keepsaid.interfaces.cli.console import say, session, show
from keepsaid.interfaces.cli.remote import Remote, elsewhere, recorded, running
from keepsaid.text.normal import counted, cut

if TYPE_CHECKING:
    from keepsaid.config import Config

_CHUNK = 65_536
_QUESTION_CHARS_MAX = 80


class LineReader:
    """Reads a file descriptor on a thread of its own, a line when one is asked for.

    The thread is a daemon and takes no lock of Python's own streams, so that a program that stops
    while nothing is typed need not wait for it.
    """

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._loop = asyncio.get_running_loop()
        self._asked: SimpleQueue[asyncio.Future[bytes | None]] = SimpleQueue()
        self._rest = bytearray()
        self._ended = False
        Thread(target=self._work, name="keepsaid-stdin", daemon=True).start()

    async def next(self) -> bytes | None:
        """The next line without its end; None when there is no more."""
        future: asyncio.Future[bytes | None] = self._loop.create_future()
        self._asked.put(future)
        return await future

    def _work(self) -> None:
        while True:
            future = self._asked.get()
            line = self._read()
            try:
                self._loop.call_soon_threadsafe(_tell, future, line)
            except RuntimeError:
                return  # the loop has ended, and with it everyone who asked

    def _read(self) -> bytes | None:
        searched = 0
        while (end := self._rest.find(b"\n", searched)) < 0 and not self._ended:
            searched = len(self._rest)
            chunk = os.read(self._descriptor, _CHUNK)
            self._rest += chunk
            self._ended = not chunk
        if end < 0:
            line = bytes(self._rest)
            self._rest.clear()
            return line or None
        line = bytes(self._rest[:end])
        del self._rest[: end + 1]
        return line


def _tell(future: asyncio.Future[bytes | None], line: bytes | None) -> None:
    if not future.done():
        future.set_result(line)


_LOOPBACK = "127.0.0.1"
_START_S = 10.0
_POLL_S = 0.05
_QUIET_S = 1.5
_STOPPING = "stopping: a running turn gets a while to end. Ctrl-C ends at once; the message stays."


@dataclass
class _Once:
    """A message given on the command line, and how far it came before the program was stopped."""

    text: str
    put: bool = False
    message_id: str = ""
    printed: bool = False

    def cut_off(self) -> int:
        """Print the outcome of the message; returns the exit code."""
        if self.printed:
            return 0
        if self.message_id:
            say(f"stopped before the reply. {self.message_id} is stored: keepsaid inbox show {self.message_id}")
        elif self.put:
            say("stopped before the message was acknowledged; it may be stored: keepsaid inbox ls")
        else:
            say("stopped; the message was not stored")
        return program.TERMINATED


def chat(
    conversation: Annotated[str, typer.Option(help="Conversation to chat in.")] = "terminal",
    message: Annotated[
        str | None, typer.Option("-m", "--message", help="Send this message, print the reply, and exit.")
    ] = None,
) -> None:
    """Chat in the terminal, send lines through a pipe, or ask once with -m.

    Piped, each line is a message, and each reply a block with an empty line after it.
    """
    once = None if message is None else _Once(message)
    try:
        code = asyncio.run(_chat(None if session().url else session().config(), conversation, once))
    except asyncio.CancelledError:  # SIGTERM: everything was stopped in order
        code = once.cut_off() if once else 0
    if code:
        raise typer.Exit(code)


async def _chat(config: Config | None, conversation: str, once: _Once | None) -> int:
    work = asyncio.current_task()
    assert work is not None, "a coroutine runs in a task"
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, work.cancel)
    async with Host(config) as host, talks.open_chat(host.remote, conversation) as talk:
        if once is not None:
            return await _answered_once(talk, conversation, once)
        if config is None:
            say(f"{session().url}   lane {lane_key(conversation)}   /help for commands")
        else:
            remote = await host.remote()
            await _greet(config, conversation, remote.model)
            if host.is_here:
                say(f"Other programs reach this home at {remote.url} until this chat ends.")
        if sys.stdin.isatty() and not session().json:
            from keepsaid.interfaces.cli.converse import converse  # noqa: PLC0415 - a pipe needs no prompt

            await converse(talk, conversation)
            where = [f"--url {quote(session().url)}"] if session().url else []
            where += [] if conversation == "terminal" else [f"--conversation {quote(conversation)}"]
            say(" ".join(["To continue: keepsaid chat", *where]))
            return 0
        return await _piped(talk, conversation)


class Host:
    """Finds the running instance of the home, or runs one in a task of its own, whichever task of the chat asks.

    If the disk of that instance fails, the chat ends with StoreBroken. Without `config` it is the one that --url names.
    """

    def __init__(self, config: Config | None) -> None:
        self._config = config
        self._over = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None
        self._work: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Self:
        self._work = asyncio.current_task()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._over.set()
        if self._serving is not None:
            await asyncio.wait((self._serving,))
        if self._failure is not None and self._work is not None:
            self._work.uncancel()
            raise self._failure from None

    @property
    def is_here(self) -> bool:
        """Whether this process runs the instance."""
        return self._serving is not None

    async def remote(self) -> Remote:
        """The running instance, or one that this process starts; another that is starting is waited for."""
        if self._config is None:
            return self._elsewhere
        home = session().home
        until = asyncio.get_running_loop().time() + _START_S
        while True:
            if (remote := await asyncio.to_thread(running, home)) is not None:
                return remote
            try:
                return await self._started()
            except HomeBusy:
                if asyncio.get_running_loop().time() > until:
                    raise
                await asyncio.sleep(_POLL_S)

    @cached_property
    def _elsewhere(self) -> Remote:
        remote = elsewhere()
        assert remote is not None, "without --url there are settings"
        return remote

    async def _started(self) -> Remote:
        up: asyncio.Future[Remote] = asyncio.get_running_loop().create_future()
        self._serving = asyncio.create_task(self._serve(up), name="keepsaid-host")
        self._serving.add_done_callback(partial(self._ended, up))
        return await up

    async def _serve(self, up: asyncio.Future[Remote]) -> None:
        async with AsyncExitStack() as closing:
            assert self._config is not None, "none is started for an instance elsewhere"
            remote = await _own(self._config, closing)
            if not up.done():  # whoever asked may have been stopped meanwhile
                up.set_result(remote)
            await self._over.wait()

    def _ended(self, up: asyncio.Future[Remote], serving: asyncio.Task[None]) -> None:
        """Give an error to whoever waits for the instance; one that comes later ends the chat."""
        if serving.cancelled() or (error := serving.exception()) is None:
            return
        if not up.done():
            up.set_exception(error)
        elif self._work is not None and not self._over.is_set():
            self._failure = error
            self._work.cancel()


async def _own(config: Config, closing: AsyncExitStack) -> Remote:
    """This process as the runtime, for itself and commands beside it: on loopback, whatever `serve` listens on."""
    from keepsaid.app.opening import opened  # noqa: PLC0415 - beside a runtime nobody needs it
    from keepsaid.interfaces.cli.logs import keep_log  # noqa: PLC0415
    from keepsaid.interfaces.http import gate, server  # noqa: PLC0415

    home = session().home
    config = config if gate.is_loopback(config.server.host) else serve.bound_to(config, _LOOPBACK)
    instance = await closing.enter_async_context(opened(home, config))
    keep_log(home.log_file, config.log.level, instance.redactor, text=config.log.text)
    instance.reloading.given = ("server.host",)
    for line in await serve.recovered(instance):
        say(line)
    try:
        await closing.enter_async_context(server.listening(instance))
    except HomeError:
        await closing.enter_async_context(server.listening(instance, 0))
    await closing.enter_async_context(serve.unbroken(instance))
    closing.callback(asyncio.get_running_loop().call_later, _QUIET_S, partial(say, _STOPPING))
    remote = recorded(home)
    assert remote is not None, "a server that listens has written its address"
    return remote


async def _greet(config: Config, conversation: str, model: str) -> None:
    """The first line: lane, the runtime's model, memory and where help is."""
    from keepsaid.app.stores import reading  # noqa: PLC0415

    async with reading(session().home, config) as stores:
        memories = sum((await stores.memories.counts()).values())
        line = await stores.views.line(Lane("terminal", "default", conversation, lane_key(conversation)))
    remembered = counted(memories, "memory", "memories")
    say(f"lane {lane_key(conversation)}   model {model}   {remembered}   /help for commands")
    if line is not None and line.incognito:
        say("Incognito is on: nothing said here is remembered. /incognito off ends it.")
    if line is not None and line.paused:
        say("This conversation is paused: messages wait without an answer. /resume ends that.")
    if model == "none":
        say("No model is set: answers quote what memory holds. To set one: keepsaid init")


async def _answered_once(talk: talks.ChatClient, conversation: str, once: _Once) -> int:
    line = talks.SlashCommand.parse(once.text)
    if not isinstance(line, str):
        await talks.run_slash_command(line, conversation)
        return 0
    once.put = True
    once.message_id = await talk.put(line)
    story = await talks.settled(talk, once.message_id)
    await _show(talk, story, once)
    return 0 if story["state"] == "done" else 1


async def _piped(talk: talks.ChatClient, conversation: str) -> int:
    """One message a line; the next is put only after the reply to the former. Returns 1 when one was refused."""
    await _earlier(talk)
    refused = 0
    lines = LineReader(sys.stdin.fileno())
    while (line := await lines.next()) is not None:
        text = line.decode("utf-8", "replace").rstrip("\r")
        if not text.strip():
            continue
        try:
            command = talks.SlashCommand.parse(text)
            if isinstance(command, str):
                await _show(talk, await talks.settled(talk, await talk.put(command)))
            elif not await talks.run_slash_command(command, conversation):
                break
        except InputError as error:
            say(f"refused: {error.what.rstrip('?')}. {error.safe}", always=True)
            refused = 1
    await _earlier(talk)
    return refused


async def _show(talk: talks.ChatClient, story: dict[str, Any], once: _Once | None = None) -> None:
    """Print replies, then note that they were seen: one can be shown twice, and none never."""
    show({"message": story}, *(part for reply in story["replies"] for part in (reply["text"], "")))
    if not session().json:
        talks.say_unanswered(story)
    if once is not None:
        once.printed = True
    with suppress(NotRunning):  # it went right after its reply: the next one shows that again
        for reply in story["replies"]:
            await talk.seen(reply["id"])


async def _earlier(talk: talks.ChatClient) -> None:
    """Replies nobody has seen yet, on stderr: stdout holds the replies to these lines and nothing else."""
    async for reply in talk.unseen():
        question = " ".join((await talks.question_of(reply)).split())
        answers = f" to {cut(question, _QUESTION_CHARS_MAX)!r}" if question else ""
        say(f"earlier reply{answers}, {reply['created_at']}: {reply['text']}")
        await talk.seen(reply["id"])
