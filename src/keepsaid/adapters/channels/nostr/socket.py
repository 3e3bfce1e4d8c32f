"""One connection to a relay (NIP-01, NIP-42): frames that come, answers to what is published, and why it ended."""

from __future__ import annotations

import asyncio
import importlib
import json
import logging
from collections import deque
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

from keepsaid.adapters.channels.certificates import socket_options
from keepsaid.adapters.channels.nostr.keys import AUTH, Event, NostrForged, NostrKeys
from keepsaid.errors import ChannelError, installation
from keepsaid.ports.channel import check_may_send
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

if TYPE_CHECKING:
    from websockets.asyncio.client import ClientConnection

_FRAME_BYTES_MAX = 8_000_000
"""An event may not be larger than 64 kB; a larger limit keeps one oversized event from ending every connection."""

_ITEMS_MAX, _TAKEN_MAX, _FOUND_MAX = 512, 64, 50
_OPEN_WITHIN_S, _CLOSE_WITHIN_S, _PING_S = 10.0, 1.0, 20.0
_ANSWER_WITHIN_MS = 15_000
_REASON_CHARS_MAX = 200
_FIELDS = 7
"""Fields of an event: id, pubkey, created_at, kind, tags, content and sig (NIP-01)."""


_wire = logging.getLogger("keepsaid.nostr.wire")
_wire.setLevel(logging.WARNING)
"""The library logs every frame at lower levels."""


class NostrDown(Exception):
    """A relay cannot be reached, or the connection ended. `is_sent`: the event may have arrived."""

    def __init__(self, what: str, *, is_sent: bool = False) -> None:
        super().__init__(what)
        self.is_sent = is_sent


class NostrRefused(Exception):
    """A relay refuses: `prefix` is the machine-readable word of its reason, such as `blocked` (NIP-01); "" if none."""

    def __init__(self, reason: str) -> None:
        text = "".join(one if one.isprintable() else " " for one in reason[:_REASON_CHARS_MAX])
        super().__init__(text or "the relay refuses without a reason")
        word = text.partition(":")[0].strip()
        self.prefix = word if word and " " not in word and ":" in text else ""


@frozen
class RelayItem:
    """An item of a subscription: an event, its end of stored events (neither), or the reason why it was closed."""

    subscription: str
    event: Event | None = None
    closed: str | None = None


async def open_relay(
    url: str, keys: NostrKeys, clock: Clock, *, address: str | None = None, authenticates: bool = False
) -> NostrSocket:
    """Connect to a relay, at `address` if that is given. Raises NostrDown, and ChannelError without `websockets`.

    With `authenticates` the account proves who it is as soon as the relay sends a challenge, else only on demand.
    """
    try:
        # the first import takes 200 ms, too long for the loop
        client = await asyncio.to_thread(importlib.import_module, "websockets.asyncio.client")
        errors = await asyncio.to_thread(importlib.import_module, "websockets.exceptions")
    except ImportError as error:
        raise ChannelError("Nostr needs the package websockets", hint=installation("channels")) from error
    options: dict[str, Any] = {} if address is None else {"host": address}
    try:
        connection = await client.connect(
            url,
            open_timeout=_OPEN_WITHIN_S,
            close_timeout=_CLOSE_WITHIN_S,
            ping_interval=_PING_S,
            ping_timeout=_PING_S,
            max_size=_FRAME_BYTES_MAX,
            max_queue=16,
            compression=None,
            proxy=None,
            user_agent_header="keepsaid",
            logger=_wire,
            **await socket_options(url),
            **options,
        )
    except (errors.WebSocketException, OSError, ValueError) as error:
        raise NostrDown(f"{url} cannot be reached: {type(error).__name__}: {error}"[:_REASON_CHARS_MAX]) from None
    return NostrSocket(url, connection, keys, clock, authenticates=authenticates)


class NostrSocket:
    """An open connection; it is read in the background until `close`."""

    def __init__(
        self, url: str, connection: ClientConnection, keys: NostrKeys, clock: Clock, *, authenticates: bool
    ) -> None:
        from websockets.exceptions import ConnectionClosed  # noqa: PLC0415 - optional, and loaded by now

        self.url = url
        self._connection, self._closed_error = connection, ConnectionClosed
        self._keys, self._clock, self._authenticates = keys, clock, authenticates
        self._items: deque[RelayItem] = deque()
        self._news, self._room = asyncio.Event(), asyncio.Event()
        self._requests: dict[str, str] = {}
        self._answers: dict[str, asyncio.Future[str | None]] = {}
        self._searches: dict[str, tuple[list[Event], asyncio.Future[str | None]]] = {}
        self._proof = _Proof()
        self._numbers = count()
        self._end: NostrDown | None = None
        self._reading = asyncio.create_task(self._read())

    @property
    def is_open(self) -> bool:
        """Whether frames can still come."""
        return self._end is None

    async def subscribe(self, subscription: str, query: Mapping[str, object]) -> None:
        """Ask for events, stored ones first; they come by `take`. Raises NostrDown."""
        self._requests[subscription] = _frame("REQ", subscription, query)
        await self._send(self._requests[subscription])

    async def unsubscribe(self, subscription: str) -> None:
        """End a subscription: its events are not sent any longer. Raises NostrDown."""
        if self._requests.pop(subscription, None) is not None:
            await self._send(_frame("CLOSE", subscription))

    async def take(self, within_ms: float) -> list[RelayItem]:
        """The next items of all subscriptions, 64 at most; none if none came in time.

        Raises what ended the connection, once all items are taken.
        """
        if not self._items and self._end is None:
            await self._clock.wait(self._news, within_ms)
        if not self._items and self._end is not None:
            raise self._end
        taken = [self._items.popleft() for _ in range(min(len(self._items), _TAKEN_MAX))]
        self._room.set()
        return taken

    async def search(self, query: Mapping[str, object]) -> list[Event]:
        """The stored events that match, 50 at most, not verified. Raises NostrDown and NostrRefused."""
        name = f"search-{next(self._numbers)}"
        found: list[Event] = []
        ended: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self._searches[name] = (found, ended)
        self._requests[name] = _frame("REQ", name, query)
        try:
            await self._send(self._requests[name])
            reason = await self._wait_for(ended)
            await self.unsubscribe(name)
        finally:
            self._requests.pop(name, None)
            self._searches.pop(name, None)
        if reason is not None:
            raise NostrRefused(reason)
        return found

    async def publish(self, number: str, event: str) -> None:
        """Publish an event, given as JSON, and wait for the relay's OK; a duplicate is one.

        Raises NostrRefused if the relay says no, and NostrDown.
        """
        reason = await self._publish_once(number, event)
        if reason is not None and reason.startswith("auth-required") and await self._authenticated():
            reason = await self._publish_once(number, event)
        if reason is not None and not reason.startswith("duplicate:"):
            raise NostrRefused(reason)

    async def close(self) -> None:
        """Close the connection, within a second."""
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self._finish(NostrDown(f"{self.url} was closed", is_sent=True))
        try:
            await self._connection.close()
        finally:
            self._connection.transport.abort()

    async def _publish_once(self, number: str, event: str) -> str | None:
        """Publish once; returns why the relay says no, None if it says yes."""
        answered: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        answered = self._answers.setdefault(number, answered)
        try:
            check_may_send()
            await self._send(f'["EVENT",{event}]')
            return await self._wait_for(answered)
        finally:
            self._answers.pop(number, None)

    async def _wait_for(self, future: asyncio.Future[str | None]) -> str | None:
        """The result of a future; raises NostrDown if the connection ends, or after 15 s without it."""
        done = asyncio.Event()
        future.add_done_callback(lambda _: done.set())
        if not future.done():
            if self._end is not None:
                raise NostrDown(str(self._end), is_sent=True)
            await self._clock.wait(done, _ANSWER_WITHIN_MS)
        if not future.done():
            self._finish(NostrDown(f"{self.url} does not answer within {_ANSWER_WITHIN_MS // 1_000} s", is_sent=True))
        return await future

    async def _send(self, frame: str) -> None:
        if self._end is not None:
            raise NostrDown(str(self._end))
        try:
            async with asyncio.timeout(_OPEN_WITHIN_S):
                await self._connection.send(frame)
        except self._closed_error:
            raise NostrDown(self._reason(), is_sent=True) from None
        except TimeoutError:
            self._connection.transport.abort()
            raise NostrDown(f"{self.url} does not read", is_sent=True) from None

    async def _read(self) -> None:
        """Read frames until the connection ends; answers and challenges are handled here."""
        try:
            while True:
                await self._handle(_frame_of(await self._connection.recv()))
        except self._closed_error:
            self._finish(NostrDown(self._reason(), is_sent=True))
        except NostrDown as error:
            self._finish(error)

    async def _handle(self, frame: list[Any]) -> None:
        match frame:
            case ["EVENT", str(name), dict(event), *_] if name in self._requests and _is_event(event):
                await self._found(name, event)
            case ["EOSE", str(name), *_] if name in self._requests:
                await self._ended(name)
            case ["CLOSED", str(name), *rest] if name in self._requests:
                await self._closed(name, _word(rest))
            case ["OK", str(number), bool(is_kept), *rest]:
                await self._answered(number, None if is_kept else _word(rest))
            case ["AUTH", str(challenge), *_]:
                self._proof.begin(challenge)
                if self._authenticates or self._proof.is_wanted:
                    await self._prove()

    async def _found(self, name: str, event: Event) -> None:
        if name not in self._searches:
            await self._keep(RelayItem(name, event))
        elif len(found := self._searches[name][0]) < _FOUND_MAX:
            found.append(event)

    async def _ended(self, name: str) -> None:
        """The stored events of a request are over, unless it is sent again once the proof is accepted."""
        if name in self._searches:
            _settle(self._searches[name][1], None)
        elif self._authenticates and self._proof.is_pending:
            self._proof.ended.add(name)
        else:
            await self._keep(RelayItem(name))

    async def _closed(self, name: str, reason: str) -> None:
        """The relay closed a request; if it wants to know who asks, the request is sent again after the proof."""
        proof = self._proof
        if reason.startswith("auth-required") and proof.challenge and not proof.is_refused and not proof.is_accepted:
            proof.waiting.add(name)
            if not proof.event_id:
                await self._prove()
            return
        if name in self._searches:
            _settle(self._searches[name][1], reason)
        else:
            self._requests.pop(name, None)
            await self._keep(RelayItem(name, closed=reason))

    async def _answered(self, number: str, reason: str | None) -> None:
        proof = self._proof
        if number != proof.event_id or not number:
            if (future := self._answers.get(number)) is not None:
                _settle(future, reason)
            return
        proof.is_accepted, proof.is_refused = reason is None, reason is not None
        waiting, proof.waiting = proof.waiting, set()
        proof.done.set()
        ended, proof.ended = proof.ended, set()
        if reason is None:
            for name in (*self._requests,) if self._authenticates else waiting & self._requests.keys():
                await self._send(self._requests[name])
            return
        for name in waiting:
            await self._closed(name, reason)
        for name in ended & self._requests.keys():
            await self._keep(RelayItem(name))

    async def _prove(self) -> None:
        """Send the event that proves who the account is (NIP-42)."""
        proof, challenge = self._proof, self._proof.challenge
        tags = [["relay", self.url], ["challenge", challenge]]
        try:
            event = await asyncio.to_thread(self._keys.sign, AUTH, "", tags, self._clock.now_ms() // 1_000)
        except NostrForged:
            proof.is_refused = True
            proof.done.set()
            return
        except ChannelError as error:
            raise NostrDown(f"the account cannot prove to {self.url} who it is: {error.what}; {error.hint}") from error
        if proof.event_id or proof.challenge != challenge:  # it was proved meanwhile, or is asked for another proof
            return
        proof.event_id = str(json.loads(event)["id"])
        await self._send(f'["AUTH",{event}]')

    async def _authenticated(self) -> bool:
        """Prove who the account is, unless that was done; returns whether the relay accepts it."""
        proof = self._proof
        proof.is_wanted = True
        if proof.challenge and not proof.event_id:
            await self._prove()
        if not proof.is_accepted and not proof.is_refused and self._end is None:
            await self._clock.wait(proof.done, _ANSWER_WITHIN_MS)
        return proof.is_accepted

    async def _keep(self, item: RelayItem) -> None:
        """Add an item to those that can be taken; waits while there are too many."""
        while len(self._items) >= _ITEMS_MAX:
            self._room.clear()
            await self._room.wait()
        self._items.append(item)
        self._news.set()

    def _finish(self, error: NostrDown) -> None:
        if self._end is None:
            self._end = error
        self._news.set()
        self._proof.done.set()
        for future in (*self._answers.values(), *(ended for _, ended in self._searches.values())):
            if not future.done():
                future.set_exception(NostrDown(str(error), is_sent=True))
                future.exception()

    def _reason(self) -> str:
        return f"{self.url} closed the connection (close code {self._connection.close_code or 1_006})"


class _Proof:
    """How far the account has proved to a relay who it is (NIP-42)."""

    def __init__(self) -> None:
        self.challenge = self.event_id = ""
        self.is_wanted = self.is_accepted = self.is_refused = False
        self.waiting: set[str] = set()
        self.ended: set[str] = set()
        self.done = asyncio.Event()

    def begin(self, challenge: str) -> None:
        """The relay asks for a proof; an earlier one does not count for it."""
        self.challenge, self.event_id, self.is_accepted, self.is_refused = challenge, "", False, False
        self.done.clear()

    @property
    def is_pending(self) -> bool:
        """Whether the proof was sent, and the relay has not answered."""
        return bool(self.event_id) and not self.is_accepted and not self.is_refused


def _settle(future: asyncio.Future[str | None], reason: str | None) -> None:
    if not future.done():
        future.set_result(reason)


def _is_event(event: Event) -> bool:
    """Whether an object has the fields of an event; others cannot be signed, and may be nested without end."""
    tags = event.get("tags")
    return (
        all(isinstance(event.get(name), str) for name in ("id", "pubkey", "content", "sig"))
        and all(isinstance(event.get(name), int) for name in ("kind", "created_at"))
        and len(event) == _FIELDS
        and isinstance(tags, list)
        and all(isinstance(tag, list) and all(isinstance(word, str) for word in tag) for tag in tags)
    )


def _word(rest: list[Any]) -> str:
    return rest[0] if rest and isinstance(rest[0], str) else ""


def _frame(*parts: object) -> str:
    return json.dumps(parts, ensure_ascii=False)


def _frame_of(raw: str | bytes) -> list[Any]:
    """The array in a frame; an empty one where it cannot be read."""
    try:
        frame = json.loads(raw)
    except (ValueError, RecursionError):
        return []
    return frame if isinstance(frame, list) else []
