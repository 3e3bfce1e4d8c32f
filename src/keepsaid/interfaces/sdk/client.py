"""The library's client: one home, opened, for async programs and for others."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import replace
from functools import wraps
from pathlib import Path
from threading import Event, Thread
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, NamedTuple, ParamSpec, TypeVar

from keepsaid.app import instance, models
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.domain.ids import read
from keepsaid.domain.message import Trust
from keepsaid.domain.principal import Principal, Scope
from keepsaid.errors import ConfigError, HomeBusy, InputError
from keepsaid.interfaces.agent_calls import CALLS, CallSite
from keepsaid.interfaces.sdk.agents import AgentMemory, RunningAgent, connect
from keepsaid.interfaces.sdk.inbox import EventClient, Inbox
from keepsaid.interfaces.sdk.memory import MemoryClient
from keepsaid.interfaces.sdk.remote import RemoteInstance
from keepsaid.interfaces.sdk.values import CHANNEL, Message, Receipt, Reply, reply_of
from keepsaid.interfaces.shapes import turn_shape
from keepsaid.interfaces.status_shape import status_shape
from keepsaid.ports.model import AgentFunction, AgentPrompt, Model

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent

    Agent = AgentFunction | AbstractAgent[Any, Any]


__all__ = ["AgentPrompt", "BlockingKeepsaid", "Keepsaid"]

_log = logging.getLogger("keepsaid")


class Keepsaid:
    """A home in use by this process, its only runtime until it is closed.

    `inbox` is the durable inbox, `memory` what is remembered, `events` what happens.
    Use it as `async with Keepsaid.open() as ks`.
    """

    def __init__(
        self, home: Home, *, answering: bool, settings: Mapping[str, Any] | None = None, answerer: Model | None = None
    ) -> None:
        self._home = home
        self._answering = answering
        self._settings = settings or {}
        self._answerer = answerer
        self._closing = AsyncExitStack()
        self._parts: _Parts | None = None
        self._remote: RemoteInstance | None = None

    @classmethod
    def open(
        cls,
        home: str | Path | None = None,
        *,
        answering: bool = False,
        settings: Mapping[str, Any] | None = None,
        agent: Agent | None = None,
    ) -> Keepsaid:
        """Open a home: the directory `home`, else KEEPSAID_HOME, else the XDG directories.

        With `answering` the configured model answers; with `agent` your own function (prompt in, text out) or your
        agent of pydantic-ai does, with what memory brings to mind in its prompt; the configured model, if there is one,
        still writes summaries and extracts. Without either you take batches and answer yourself. `settings` replaces
        top-level sections of the config, e.g. `{"buffer": {"window_ms": 0}}`. Raises InputError for an agent that is
        neither. Entering raises HomeBusy, ConfigError or StoreError with nothing changed.

        Where `keepsaid serve` or `chat` runs in another process, that instance is asked instead, if this is opened
        without `answering`, `agent` and `settings`. Then `events.subscribe` raises InputError; so does
        `inbox.batches`, unless the instance leaves batches to workers.
        """
        place = Home.at(Path(home) if home is not None else None)
        answerer = None if agent is None else models.model_of_agent(agent)
        return cls(place, answering=answering or answerer is not None, settings=settings, answerer=answerer)

    @staticmethod
    def connect(home: str | Path | None = None, *, key: str, url: str = "") -> RunningAgent:
        """Memory of an instance that runs in another process, in the name of one of its keys.

        That of a home, by the name of the key; or at `url`, by the token of the key. Use it as
        `async with Keepsaid.connect(key="claude") as memory`. Raises NotRunning and ConfigError.
        """
        return connect(home, key=key, url=url)

    async def __aenter__(self) -> Keepsaid:
        config, warnings = load(self._home.config_file, self._settings)
        if self._settings and warnings:
            _refuse_unknown(warnings, load(self._home.config_file)[1])
        async with AsyncExitStack() as closing:
            opening = opened(self._home, config, outside=instance.Outside(answerer=self._answerer))
            try:
                there = await closing.enter_async_context(opening)
            except HomeBusy as busy:
                if self._answering or self._settings:
                    raise  # another process answers, by its own settings
                self._remote = await closing.enter_async_context(RemoteInstance.of(self._home, busy))
                self._closing = closing.pop_all()
                return self
            await there.start(answering=self._answering)
            self._closing = closing.pop_all()
        inbox = Inbox(there)
        events, loop = EventClient(there, inbox), asyncio.get_running_loop()
        self._parts = _Parts(there, inbox, MemoryClient(there), events, loop)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._parts = self._remote = None
        await self._closing.__aexit__(kind, error, trace)

    def _opened(self) -> _Parts:
        if self._parts is None:
            raise _not_open()
        return self._parts

    @property
    def inbox(self) -> Inbox:
        """The durable inbox. Raises InputError where this is not open."""
        return self._remote.inbox if self._remote is not None else self._opened().inbox

    @property
    def memory(self) -> MemoryClient:
        """What is remembered. Raises InputError where this is not open."""
        return self._remote.memory if self._remote is not None else self._opened().memory

    @property
    def events(self) -> EventClient:
        """What happens. Raises InputError where this is not open."""
        return self._remote.events if self._remote is not None else self._opened().events

    async def ask(self, message: Message | str, heard: Callable[[str], object] | None = None) -> Reply:
        """Send a message and wait for its outcome; `heard` receives each piece of the answer as it is written.

        A text alone is said by `user` in the conversation `main`, where nobody else is. Cancelled while it waits, the
        message stays and is answered. Opened without an agent and without `answering`, it waits until your program
        answers the batch. Raises InputError with nothing stored, and StoreError when the disk refuses.
        """
        if self._remote is not None:
            return await self._remote.ask(_message_of(message), heard)
        parts = self._opened()
        if not self._answering and not parts.inbox.is_read:
            _log.warning("nothing answers here: open it with agent= or answering=True, or take ks.inbox.batches()")
        said = _message_of(message)
        asked = await parts.instance.services.asking.ask(parts.inbox.inbound_of(said), heard)
        return reply_of(asked.received, asked.story)

    def agent(self, sender: str, *, account: str = "default", direct: bool = True) -> AgentMemory:
        """Memory for an agent of yours that talks with one sender, in conversations of one account.

        Where others read what is said there, `direct` is false: then only what was said in a conversation is read
        there. What a key of the same account says and saves is read here too, if its sender has this name.
        """
        if self._remote is not None:
            return self._remote.agent(sender, account, direct=direct)
        here, loop = self._opened().instance, self._opened().loop
        who = Principal(account, CHANNEL, sender, frozenset(Scope), Trust.KNOWN, direct)
        if here.config.trust_of(who.origin("")) is Trust.OWNER:
            who = replace(who, trust=Trust.OWNER)
        site = CallSite(here)

        async def ask(name: str, fields: Mapping[str, object]) -> dict[str, Any]:
            self._opened()
            return await CALLS[name](site, who, fields)

        return AgentMemory(ask, loop)

    async def status(self) -> dict[str, Any]:
        """Return what waits, what was answered and what is remembered; `warnings` say what is beyond its limit."""
        if self._remote is not None:
            return await self._remote.status()
        return status_shape(await self._opened().instance.services.status.read())

    async def why(self, turn: str) -> dict[str, Any]:
        """Why a turn answered as it did: batch and messages, context with recalled memories and reasons, cost.

        Steps are named without what they returned, replies with where they stand. Raises InputError when there is no
        such turn.
        """
        if self._remote is not None:
            return await self._remote.why(turn)
        number = read("turn", turn)
        operations = self._opened().instance.operations
        story = None if number is None else await operations.turn(number)
        if story is None:
            raise InputError(f"there is no turn {turn!r}", hint="keepsaid why")
        return turn_shape(story)


class _Parts(NamedTuple):
    """What an open home gives."""

    instance: instance.Instance
    inbox: Inbox
    memory: MemoryClient
    events: EventClient
    loop: asyncio.AbstractEventLoop


def _message_of(said: Message | str) -> Message:
    return Message(said, "user", "main", direct=True) if isinstance(said, str) else said


def _not_open() -> InputError:
    """The error for one that was not entered, or was left."""
    what = "this home is not open: use it inside `async with Keepsaid.open(...)`, or `with BlockingKeepsaid(...)`"
    return InputError(what, hint="see the library's how-to")


def _refuse_unknown(warnings: Sequence[str], of_file: Sequence[str]) -> None:
    """Raise ConfigError for settings that nobody reads, if the program gave them."""
    known = frozenset(of_file)
    if wrong := [one for one in warnings if one not in known]:
        raise ConfigError(f"settings: {'; '.join(wrong)}", hint="correct the settings given to Keepsaid.open")


P = ParamSpec("P")
T = TypeVar("T")


class _Blocking:
    """Calls methods of an object on a loop that runs elsewhere."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop


def _waits(method: Callable[Concatenate[Any, P], Coroutine[Any, Any, T]]) -> Callable[Concatenate[_Blocking, P], T]:
    """The method as a plain call, which returns when it is done and raises what it raises."""

    @wraps(method)
    def wait(self: _Blocking, /, *args: P.args, **kwargs: P.kwargs) -> T:
        if not self._loop.is_running():
            raise _not_open()
        # the method of its own class: the memory may be that of another process
        bound: Callable[P, Coroutine[Any, Any, T]] = getattr(self._target, method.__name__)
        return asyncio.run_coroutine_threadsafe(bound(*args, **kwargs), self._loop).result()

    return wait


class BlockingMemory(_Blocking):
    """The memory of one home, behind plain calls."""

    record, recall, search = _waits(MemoryClient.record), _waits(MemoryClient.recall), _waits(MemoryClient.search)
    get, list, history = _waits(MemoryClient.get), _waits(MemoryClient.list), _waits(MemoryClient.history)
    add, edit, pin = _waits(MemoryClient.add), _waits(MemoryClient.edit), _waits(MemoryClient.pin)
    forget, undo = _waits(MemoryClient.forget), _waits(MemoryClient.undo)


class BlockingKeepsaid(_Blocking):
    """A home in use by this process. Use it as `with BlockingKeepsaid(Keepsaid.open(agent=answer)) as ks`."""

    ask, status, why = _waits(Keepsaid.ask), _waits(Keepsaid.status), _waits(Keepsaid.why)

    def __init__(self, opened: Keepsaid) -> None:
        super().__init__(opened, asyncio.new_event_loop())
        self._thread = Thread(target=self._loop.run_forever, name="keepsaid", daemon=True)

    @property
    def memory(self) -> BlockingMemory:
        """What is remembered. Raises InputError where this is not open."""
        return BlockingMemory(self._target.memory, self._loop)

    def agent(self, sender: str, *, account: str = "default", direct: bool = True) -> AgentMemory:
        """Memory of one sender for an adapter of `keepsaid.frameworks`, as `Keepsaid.agent` gives it."""
        given: AgentMemory = self._target.agent(sender, account=account, direct=direct)
        return given

    def put(self, message: Message) -> Receipt:
        """Store a message; returns once it is on disk. Raises as `Inbox.put` does."""
        inbox: Inbox = self._target.inbox
        return asyncio.run_coroutine_threadsafe(inbox.put(message), self._loop).result()

    def __enter__(self) -> BlockingKeepsaid:
        with ExitStack() as undoing:
            self._thread.start()
            undoing.callback(self._stop)
            runs = Event()
            self._loop.call_soon_threadsafe(runs.set)
            runs.wait()
            self._enter()
            undoing.pop_all()
        return self

    _enter, _exit = _waits(Keepsaid.__aenter__), _waits(Keepsaid.__aexit__)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._exit(kind, error, trace)
        finally:
            self._stop()

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
