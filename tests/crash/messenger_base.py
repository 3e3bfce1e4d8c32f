"""Messengers that are killed: what each scripted provider has, who writes where, and what the bot sent there."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import ClassVar, Protocol, Self

from keepsaid.testing.providers.mischief import MischiefMaker, harmless
from keepsaid.values import frozen


@frozen
class Arrival:
    """A message of the bot: its words, and the bytes of the files that it brought."""

    text: str
    files: tuple[bytes, ...] = ()


class ScriptedServer(Protocol):
    """What all scripted providers have."""

    mischief: MischiefMaker

    @property
    def calls(self) -> dict[str, int]: ...

    async def __aenter__(self) -> Self: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...
    async def wait_for(self, done: Callable[[], bool], within_s: float) -> None: ...


class ServerPair:
    """Two servers as one provider, such as where mail is read and where it is sent."""

    def __init__(self, first: ScriptedServer, second: ScriptedServer) -> None:
        self._servers = first, second

    @property
    def mischief(self) -> MischiefMaker:
        return self._servers[0].mischief

    @mischief.setter
    def mischief(self, made: MischiefMaker) -> None:
        for one in self._servers:
            one.mischief = made

    @property
    def calls(self) -> dict[str, int]:
        return {**self._servers[0].calls, **self._servers[1].calls}

    async def __aenter__(self) -> Self:
        for one in self._servers:
            await one.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for one in reversed(self._servers):
            await one.__aexit__(kind, error, trace)

    async def wait_for(self, done: Callable[[], bool], within_s: float) -> None:
        waits = [asyncio.ensure_future(one.wait_for(done, within_s)) for one in self._servers]
        try:
            await next(asyncio.as_completed(waits))
        finally:
            for one in waits:
                one.cancel()
            await asyncio.gather(*waits, return_exceptions=True)


class Messenger:
    """A provider: its chats, how somebody writes in one, and the texts that the bot sent there."""

    name: ClassVar[str]
    chats: ClassVar[tuple[str, ...]]
    sending: ClassVar[tuple[str, ...]]
    """The methods by which a message and a file are sent, as the server counts them."""

    each: ClassVar[int] = 12
    """Messages that are said between two kills."""

    share: ClassVar[int] = 1
    """One of so many files is sent by the agent."""

    hands_out: ClassVar[bool] = True
    """Whether a runtime downloads what is sent to it: from Nostr it does by TLS from a public address alone."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server

    @property
    def variables(self) -> dict[str, str]:
        """The settings of the bot, as variables of the environment."""
        raise NotImplementedError

    def say(self, text: str, chat: str) -> None:
        """Somebody writes in a chat."""
        raise NotImplementedError

    def send(self, text: str, chat: str, name: str, content: bytes) -> None:
        """Somebody sends a file with a text in a chat, where `hands_out` is true."""
        raise NotImplementedError

    def arrived(self) -> Mapping[str, Sequence[Arrival]]:
        """What was sent to each chat, in order."""
        raise NotImplementedError

    @property
    def requests(self) -> int:
        """How many requests came."""
        return sum(self.server.calls.values())

    @property
    def tries(self) -> int:
        """How often the bot tried to send a message or a file."""
        return sum(self.server.calls.get(one, 0) for one in self.sending)

    @property
    def downloads(self) -> int:
        """How often the bot tried to download a file."""
        return 0

    async def wait_for_requests(self, count: int, within_s: float) -> None:
        """Wait until so many came."""
        await self.server.wait_for(lambda: self.requests >= count, within_s)

    async def wait_for_tries(self, count: int, within_s: float) -> None:
        """Wait until the bot tried so often to send something, or to download a file."""
        await self.server.wait_for(lambda: self.tries + self.downloads >= count, within_s)

    def calm(self) -> None:
        """From now on nothing goes wrong."""
        self.server.mischief = harmless
