"""The customer's endpoint behind `reply_url`, as bad as a test wants it: real HTTP, no framework.

In a test: `async with ReplyReceiver(scripted(ACCEPT_THEN_RESET)) as receiver: ... receiver.url`. As a process:
`python -m keepsaid.testing.reply_receiver --seed 7 --ledger FILE`. Each reaction is for one connection; the
receiver keeps none open, so that is one reaction for each try.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from keepsaid.domain.prompt import Json
from keepsaid.testing.listener import ListeningServer, serve
from keepsaid.testing.model_http import BadHttpError, Connection, GoneError, HttpRequest
from keepsaid.values import frozen

_CLOSE = {"connection": "close"}


class Act(StrEnum):
    """What the receiver does with a connection."""

    ANSWER = "answer"
    DROP = "drop"
    HANG = "hang"
    RESET = "reset"


@frozen
class ReceiverReaction:
    """One act; `status`, `body` and `retry_after` (a header's text) belong to an answer."""

    act: Act = Act.ANSWER
    status: int = 200
    body: bytes | None = None
    retry_after: str | None = None

    @property
    def accepts(self) -> bool:
        """Whether the post is taken, told or not."""
        return self.act is Act.RESET or (self.act is Act.ANSWER and 200 <= self.status < 300)


ACCEPT = ReceiverReaction()
"""Record the post and say so."""
DROP = ReceiverReaction(Act.DROP)
"""Reset the connection before reading anything."""
HANG = ReceiverReaction(Act.HANG)
"""Read the post, record nothing, and never answer."""
ACCEPT_THEN_RESET = ReceiverReaction(Act.RESET)
"""Record the post, then reset the connection without an answer: the doubtful case."""

Reactor = Callable[[int], ReceiverReaction]
"""Decides the reaction to the nth connection, counted from 0."""


def refuse(status: int, retry_after: str | None = None) -> ReceiverReaction:
    """Answer with an error and record nothing."""
    return ReceiverReaction(status=status, body=b'{"error": "refused"}', retry_after=retry_after)


def scripted(*reactions: ReceiverReaction) -> Reactor:
    """These reactions in order, then ACCEPT for ever."""
    return lambda number: reactions[number] if number < len(reactions) else ACCEPT


def seeded(seed: int, trouble: float = 0.4) -> Reactor:
    """Accept, but do something bad with the share `trouble` of connections; the same seed does the same."""
    bad = (refuse(500), refuse(503, "0"), refuse(503, "1"), DROP, HANG, ACCEPT_THEN_RESET, ACCEPT_THEN_RESET)

    def react(number: int) -> ReceiverReaction:
        chance = random.Random(f"{seed}:{number}")  # noqa: S311 - repeatable, not secret
        return chance.choice(bad) if chance.random() < trouble else ACCEPT

    return react


@frozen
class Posted:
    """An accepted post; `number` is its place among all that this process accepted, from 1."""

    number: int
    path: str
    headers: Mapping[str, str]
    json: Mapping[str, Json]

    @property
    def key(self) -> str:
        """Its idempotency key; "" without one."""
        return self.headers.get("idempotency-key", "")

    @property
    def possible_duplicate(self) -> bool:
        """Whether its header says that it may have come before."""
        return self.headers.get("keepsaid-possible-duplicate") == "true"

    def line(self) -> str:
        """It as one line of a ledger."""
        fields = {"number": self.number, "path": self.path, "headers": dict(self.headers), "json": dict(self.json)}
        return json.dumps(fields) + "\n"


class ReplyReceiver(ListeningServer):
    """A reply receiver on a loopback port; an async context manager.

    Every accepted post is recorded before it is answered: in `accepted`, and as a line of `ledger` if given,
    flushed, so that it outlives this process. A key is not looked up: what comes twice is recorded twice.
    """

    def __init__(self, react: Reactor | None = None, *, port: int = 0, ledger: Path | None = None) -> None:
        super().__init__(self._begin, port)
        self.react = react or scripted()
        self.accepted: list[Posted] = []
        self.connections = 0
        self._ledger = ledger
        self._news = asyncio.Condition()

    @property
    def url(self) -> str:
        """Where to post: `http://127.0.0.1:40123/replies`."""
        return f"{super().url}/replies"

    @property
    def host(self) -> str:
        """The host with its port, as an allow-list names it."""
        return f"127.0.0.1:{self._listener.port}"

    async def wait_for(self, count: int, within_s: float = 120.0) -> list[Posted]:
        """Wait until `count` posts were accepted, and return all; raises TimeoutError."""
        async with asyncio.timeout(within_s), self._news:
            await self._news.wait_for(lambda: len(self.accepted) >= count)
        return list(self.accepted)

    def _begin(self, connection: Connection) -> Coroutine[object, object, None]:
        self.connections += 1
        return self._serve(connection, self.react(self.connections - 1))

    async def _serve(self, connection: Connection, reaction: ReceiverReaction) -> None:
        try:
            with suppress(GoneError):
                if reaction.act is Act.DROP:
                    await connection.reset()
                    return
                await self._answer(connection, reaction)
        finally:
            await connection.close()

    async def _answer(self, connection: Connection, reaction: ReceiverReaction) -> None:
        try:
            request = await connection.receive()
            posted = self._read(request)
        except BadHttpError as error:
            await connection.send(error.status, _encode_json({"error": str(error)}), extra=_CLOSE)
            return
        if reaction.act is Act.HANG:
            await connection.pause(None)
        if reaction.accepts:
            await self._record(posted)
        if reaction.act is Act.RESET:
            await connection.reset()
            return
        body = reaction.body if reaction.body is not None else _encode_json({"id": f"post-{posted.number}"})
        extra = _CLOSE | ({"retry-after": reaction.retry_after} if reaction.retry_after is not None else {})
        await connection.send(reaction.status, body, extra=extra)

    def _read(self, request: HttpRequest) -> Posted:
        if request.method != "POST":
            raise BadHttpError(405, "Replies are posted here.")
        try:
            told = json.loads(request.body)
        except ValueError as error:
            raise BadHttpError(400, "The body is not JSON.") from error
        if not isinstance(told, dict):
            raise BadHttpError(400, "The body is not a JSON object.")
        return Posted(len(self.accepted) + 1, request.path, request.headers, told)

    async def _record(self, posted: Posted) -> None:
        if self._ledger is not None:
            with self._ledger.open("a", encoding="utf-8") as ledger:
                ledger.write(posted.line())
        self.accepted.append(posted)
        async with self._news:
            self._news.notify_all()


def _encode_json(fields: Mapping[str, Json]) -> bytes:
    return json.dumps(dict(fields)).encode()


def main(arguments: Sequence[str] | None = None) -> int:
    """Receive until SIGTERM or SIGINT; one line of JSON on stdout tells the URL once it listens."""
    parser = argparse.ArgumentParser(prog="python -m keepsaid.testing.reply_receiver", description=main.__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0 takes a free one")
    parser.add_argument("--seed", type=int, help="misbehave, as this number decides; accepts all without it")
    parser.add_argument("--trouble", type=float, default=0.4, help="the share of connections to misbehave on")
    parser.add_argument("--ledger", type=Path, help="a file that gets one JSON line for each accepted post")
    options = parser.parse_args(arguments)
    react = seeded(options.seed, options.trouble) if options.seed is not None else scripted()
    asyncio.run(serve(ReplyReceiver(react, port=options.port, ledger=options.ledger)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
