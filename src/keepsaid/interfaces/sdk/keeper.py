"""The library's door: one home, opened."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from keepsaid.app.instance import Outside, opened
from keepsaid.app.models import model_of_agent
from keepsaid.config import Home, load
from keepsaid.domain.ids import read
from keepsaid.errors import InputError
from keepsaid.interfaces.sdk.events import EventBook
from keepsaid.interfaces.sdk.inbox import Inbox
from keepsaid.interfaces.sdk.memory import MemoryBook
from keepsaid.interfaces.sdk.values import Message, Reply, reply_of
from keepsaid.interfaces.shapes import turn_shape
from keepsaid.ports.model import AgentFunction, AgentPrompt, Model

__all__ = ["AgentPrompt", "Keepsaid"]

if TYPE_CHECKING:
    from pydantic_ai.agent import AbstractAgent

    Agent = AgentFunction | AbstractAgent[Any, Any]


class Keepsaid:
    """A home in use by this process, its only runtime until it is closed.

    `inbox` is the durable inbox, `memory` what is remembered, `events` what happens.
    Use it as `async with Keepsaid.open() as ks`.
    """

    inbox: Inbox
    memory: MemoryBook
    events: EventBook

    def __init__(
        self, home: Home, *, answering: bool, settings: Mapping[str, Any] | None = None, answerer: Model | None = None
    ) -> None:
        self._home = home
        self._answering = answering
        self._settings = settings or {}
        self._answerer = answerer
        self._closing = AsyncExitStack()

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
        still writes summaries and extracts. Without either you take batches
        and answer yourself. `settings` replaces top-level sections of the config, e.g. `{"buffer": {"window_ms": 0}}`.
        Raises InputError for an agent that is neither. Entering raises HomeBusy, ConfigError or StoreError with
        nothing changed.
        """
        place = Home.at(Path(home) if home is not None else None)
        answerer = None if agent is None else model_of_agent(agent)
        return cls(place, answering=answering or answerer is not None, settings=settings, answerer=answerer)

    async def __aenter__(self) -> Keepsaid:
        config, _ = load(self._home.config_file, self._settings)
        async with AsyncExitStack() as closing:
            self._instance = await closing.enter_async_context(
                opened(self._home, config, outside=Outside(answerer=self._answerer))
            )
            await self._instance.start(answering=self._answering)
            self._closing = closing.pop_all()
        self.inbox, self.memory = Inbox(self._instance), MemoryBook(self._instance)
        self.events = EventBook(self._instance, self.inbox)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._closing.__aexit__(kind, error, trace)

    async def ask(self, message: Message | str, heard: Callable[[str], object] | None = None) -> Reply:
        """Put a message in and wait for what becomes of it; `heard` takes each piece of the answer as it is written.

        A text alone is said by `user` in the conversation `main`, where nobody else is. Cancelled while it waits, the
        message stays and is answered. Raises InputError with nothing stored, and StoreError when the disk refuses.
        """
        said = Message(message, "user", "main", direct=True) if isinstance(message, str) else message
        asked = await self._instance.services.asking.ask(self.inbox.inbound_of(said), heard)
        return reply_of(asked.received, asked.story)

    async def why(self, turn: str) -> dict[str, Any]:
        """Why a turn answered as it did: batch and messages, context with recalled memories and reasons, cost.

        Steps are named without what they returned, replies with where they stand. Raises InputError when there is no
        such turn.
        """
        number = read("turn", turn)
        story = None if number is None else await self._instance.operations.turn(number)
        if story is None:
            raise InputError(f"there is no turn {turn!r}", hint="keepsaid why")
        return turn_shape(story)
