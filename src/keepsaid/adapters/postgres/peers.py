"""Processes that share a database: wake-ups go between them by NOTIFY, and each takes its time from the server.

Where there is a relay, wake-ups go by that as long as it answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import os
import re
import secrets
import selectors
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from typing import Any

import psycopg

from keepsaid.adapters.postgres.connection import PostgresPlace, connect, in_our_words
from keepsaid.adapters.postgres.dialect import PACKAGE
from keepsaid.adapters.postgres.session import PostgresSession
from keepsaid.adapters.sql.query import load, only, scalar
from keepsaid.errors import StoreError
from keepsaid.ports.runtime import Hint, NumberedHints, Relay

_log = logging.getLogger("keepsaid.store")
SQL, PLACE = load("peers", PACKAGE), load("place", PACKAGE)

NODES = 512
"""How many processes may share a database: ids have room for this many nodes."""

NODE_LOCK = 0x6B65656E
"""The first key of the advisory locks by which no two processes have the same node; the second is the node."""

_PAUSE_S, _AGAIN_S = 0.01, 1.0
"""What is published within the pause goes in one NOTIFY; a connection that broke is made again after a second."""

_MEASURE_S = 60.0
"""How often the clock of the server is read again."""

_PAYLOAD_MAX, _RELAYED_MAX = 200, 1_000
_NUMBER = re.compile(r"[0-9]{1,19}")


class PostgresPeers:
    """What this process has with the others at its database: a number of its own in ids, wake-ups, and the time.

    One connection serves all three, on a thread of its own. While it is broken no wake-up comes or goes: every stage
    looks by itself from time to time, and all are woken when the connection is there again.
    """

    def __init__(self, place: PostgresPlace, relay: Relay | None = None) -> None:
        """Connect; raises a StoreError."""
        self._place, self._relay = place, relay
        self._hints: dict[str, Hint] = {}
        self._numbered: dict[str, NumberedHints] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pending: set[str] = set()
        self._guard = threading.Lock()
        self._is_closing = self._is_relayed = False
        with in_our_words(place), ExitStack() as undo:
            self._connection = self._connect()
            undo.callback(self._connection.close)
            self.node = self._take_node(secrets.randbelow(NODES))
            self._ahead_ms = self._measure()
            undo.pop_all()
        self._woken, self._wake = os.pipe()
        self._thread = threading.Thread(target=self._run, name="keepsaid-peers", daemon=True)

    def now_ms(self) -> int:
        """The wall time of the server, milliseconds UTC."""
        return self._ahead_ms + time.monotonic_ns() // 1_000_000

    def join(self, hints: Mapping[str, Hint], numbered: Mapping[str, NumberedHints]) -> None:
        """Publish these wake-ups from now on, and let those of other processes wake them."""
        self._loop = asyncio.get_running_loop()
        self._hints, self._numbered = dict(hints), dict(numbered)
        for name, hint in hints.items():
            hint.publish = partial(self._publish, name)
        for name, hints_of in numbered.items():
            hints_of.publish = partial(self._publish, name)
        self._thread.start()

    async def close(self) -> None:
        """Send what is to be sent, and disconnect."""
        self._is_closing = True
        if self._thread.ident is not None:
            os.write(self._wake, b".")
            await asyncio.to_thread(self._thread.join)
        if self._relay is not None:
            await asyncio.to_thread(self._relay.close)
        self._connection.close()
        os.close(self._wake)
        os.close(self._woken)

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._place, "keepsaid peers")
        connection.add_notify_handler(self._notified)
        connection.execute(SQL["listen"])
        return connection

    def _take_node(self, first: int) -> int:
        """Return a number that no other process has, `first` if it can be had; kept as long as it is connected."""
        db = PostgresSession(self._connection)
        for step in range(NODES):
            node = (first + step) % NODES
            if scalar(db, SQL["take_node"], (NODE_LOCK, node)):
                return node
        raise StoreError(f"{NODES} processes work with {self._place}, and no more can", safe="Nothing was changed.")

    def _measure(self) -> int:
        """Return how far the server's clock is ahead of this process's monotonic one, in milliseconds."""
        before = time.monotonic_ns()
        [there] = only(PostgresSession(self._connection), SQL["now_ms"])
        return int(there) - (before + time.monotonic_ns()) // 2_000_000

    def _publish(self, name: str, number: int | None = None) -> None:
        with self._guard:
            is_first = not self._pending
            self._pending.add(name if number is None else f"{name}:{number}")
        if is_first and not self._is_closing:
            os.write(self._wake, b".")

    def _run(self) -> None:
        """Listen and publish until the end; a connection that broke is made again."""
        is_again = is_told = False
        while True:
            try:
                with in_our_words(self._place):
                    if is_again:
                        self._connection.close()
                        self._connection = self._connect()
                        self.node = self._take_node(self.node)
                    is_told = False
                    self._listen(is_again=is_again)
                return
            except StoreError as error:
                if self._is_closing:
                    return
                if not is_told:  # an outage is one line, however often it is tried
                    _log.warning("no wake-ups from other processes: %s", error.what, extra={"code": error.code})
                time.sleep(_AGAIN_S)
                is_again = is_told = True

    def _listen(self, *, is_again: bool) -> None:
        connection = self._connection
        connection.execute(SQL["look"])  # what came since it was made is read
        if is_again:
            self._call(self._hear_all)
        self._begin_relay(connection)
        with selectors.DefaultSelector() as ready:
            ready.register(connection.fileno(), selectors.EVENT_READ)
            ready.register(self._woken, selectors.EVENT_READ)
            measure_at = time.monotonic() + _MEASURE_S
            while not self._is_closing:
                for key, _ in ready.select(max(0.0, measure_at - time.monotonic())):
                    if key.fd == self._woken:
                        os.read(self._woken, 64)
                        self._send(connection)
                    else:
                        self._look(connection)
                if time.monotonic() >= measure_at:
                    self._ahead_ms = self._measure()
                    measure_at = time.monotonic() + _MEASURE_S
            self._send(connection)

    def _look(self, connection: psycopg.Connection[Any]) -> None:
        """Hear what the server has sent, without asking it for anything."""
        connection.pgconn.consume_input()
        while (notice := connection.pgconn.notifies()) is not None:
            self._notified(psycopg.Notify(notice.relname.decode(), notice.extra.decode(), notice.be_pid))

    def _begin_relay(self, connection: psycopg.Connection[Any]) -> None:
        """Listen to the relay, once; its group is that of the database's key."""
        if self._relay is not None and not self._is_relayed:
            proof = scalar(PostgresSession(connection), PLACE["key_proof"])
            group = hashlib.sha256(bytes(proof or b"")).hexdigest()[:16]
            self._relay.begin(group, self._relayed, partial(self._call, self._hear_all))
            self._is_relayed = True

    def _send(self, connection: psycopg.Connection[Any]) -> None:
        """Notify the other processes of what is pending, then wait, so that the next ones go together."""
        with self._guard:
            names, self._pending = sorted(self._pending), set()
        payload = ""
        for name in names:
            if payload and len(payload) + len(name) >= _PAYLOAD_MAX:
                self._send_one(connection, payload)
                payload = ""
            payload = f"{payload},{name}" if payload else name
        if payload:
            self._send_one(connection, payload)
        if not self._is_closing:
            time.sleep(_PAUSE_S)

    def _send_one(self, connection: psycopg.Connection[Any], payload: str) -> None:
        if self._relay is None or not self._relay.send(payload):
            PostgresSession(connection).execute(SQL["notify"], (payload,))

    def _relayed(self, names: str) -> None:
        """Hear those of the names that a process has, on the relay's thread: there may be anything among them."""
        known = [one for one in names.split(",") if one in self._hints or one.partition(":")[0] in self._numbered]
        if known:
            self._call(partial(self._hear, ",".join(known[:_RELAYED_MAX])))

    def _notified(self, notice: psycopg.Notify) -> None:
        if self._loop is not None and notice.pid != self._connection.info.backend_pid:
            self._call(partial(self._hear, notice.payload))

    def _call(self, work: Callable[[], None]) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop ended
                self._loop.call_soon_threadsafe(work)

    def _hear(self, payload: str) -> None:
        for one in payload.split(","):
            name, _, number = one.partition(":")
            if name in self._numbered and _NUMBER.fullmatch(number):
                self._numbered[name].hear(int(number))
            elif name in self._hints:
                self._hints[name].hear()

    def _hear_all(self) -> None:
        for hint in self._hints.values():
            hint.hear()
