"""Catching up with Slack: after a time in which no socket was open, what was written meanwhile is read.

The history of each known channel is read from the last stored message on, and some minutes before it: an event that
was not acknowledged may have been older. A channel that is not known yet has no history to read.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.slack_api import SlackRefused, wait_ms
from keepsaid.adapters.channels.slack_cursors import SlackCursors, channel_of, order_of
from keepsaid.adapters.channels.slack_find import messages_in, next_cursor
from keepsaid.adapters.channels.slack_line import SlackAccount, SlackLine, SlackTrouble
from keepsaid.adapters.channels.slack_updates import SlackBot, incoming_of_event
from keepsaid.domain.line import Cursor
from keepsaid.errors import StoreError
from keepsaid.ports.channel import InboundSink, Incoming

_log = logging.getLogger("keepsaid.slack")
_OVERLAP_S = 600
"""Slack repeats an event for about six minutes."""

_LONGEST_S = 86_400
_THREAD_S = 7 * 86_400
"""An older thread is not read: each costs a request."""

_CONVERSATION_MAX, _ALL_MAX = 100, 500
_PAGE, _PAGES_MAX = 200, 5
_PATIENT_MS = 2_000
"""How long new messages wait for older ones."""

_UNSTORED_MAX = 1_000
"""Events that the store refused; Slack repeats each for some minutes only, and not all are in a history."""

_Found = dict[str, Mapping[str, object]]


class SlackCatchUp:
    """Stores messages of an account in `inbox`, and those that came by no socket once it was requested to.

    No cursor moves before the history is read: whatever ends the process, the same is read after the next start.
    """

    def __init__(
        self, account: SlackAccount, line: SlackLine, inbox: InboundSink, *, is_up: Callable[[], bool]
    ) -> None:
        self._account = account
        self._line = line
        self._inbox = inbox
        self._is_up = is_up
        self._cursors = SlackCursors(account, line.clock)
        self._requested = asyncio.Event()
        self._is_behind = False
        self._patient_until = 0.0
        self._waiting: set[asyncio.Event] = set()
        self._live: dict[str, str] = {}
        self._unstored: dict[str, Incoming] = {}
        self._room = _ALL_MAX

    def request(self) -> None:
        """Read the history: something may have come that nobody here received."""
        if not self._is_behind:
            self._patient_until = self._line.clock.monotonic_ms() + _PATIENT_MS
        self._is_behind = True
        self._requested.set()

    async def put(self, said: Sequence[Incoming]) -> None:
        """Store messages that came by sockets, after older ones if these are soon read. Raises StoreError."""
        await self._settle()
        is_behind = self._is_behind
        cursors = self._cursors.after(said, is_behind=is_behind)
        try:
            await self._inbox.put_all(said, cursors)
        except StoreError:
            self._keep_unstored(said)
            raise
        self._cursors.commit(cursors)
        if is_behind:
            for one in said:
                newest = max(self._live.get(channel_of(one), ""), one.provider_id or "", key=order_of)
                self._live[channel_of(one)] = newest

    def _keep_unstored(self, said: Sequence[Incoming]) -> None:
        """Keep messages until the store takes them: the newest, if there are too many."""
        self._unstored |= {str(one.external_id): one for one in said}
        for key in list(self._unstored)[:-_UNSTORED_MAX]:
            del self._unstored[key]

    async def run(self) -> None:
        """Read the history whenever that is requested, until it is cancelled; errors are waited out."""
        backoff = LineBackoff(self._line.clock)
        while True:
            await self._requested.wait()
            self._requested.clear()
            try:
                await self._catch_up(await self._account.bot())
            except SlackTrouble as error:
                self._requested.set()
                self._release()
                if isinstance(error, SlackRefused) and error.is_bad_token:
                    self._account.forget()
                await self._line.wait_out(error, backoff, is_up=self._is_up() and not isinstance(error, StoreError))
                continue
            backoff.up()
            if self._is_up():
                self._line.up()
            if not self._requested.is_set():
                self._is_behind = False
                self._release()

    def _release(self) -> None:
        """Let new messages wait no longer."""
        self._patient_until = 0.0
        for hint in self._waiting:
            hint.set()

    async def _settle(self) -> None:
        """Wait until the history is read, a moment at most."""
        left_ms = self._patient_until - self._line.clock.monotonic_ms()
        if self._is_behind and left_ms > 0:
            hint = asyncio.Event()
            self._waiting.add(hint)
            try:
                await self._line.clock.wait(hint, left_ms)
            finally:
                self._waiting.discard(hint)

    async def _catch_up(self, bot: SlackBot) -> None:
        """Store what the store refused; read every known channel, the one with the newest message first."""
        if refused := dict(self._unstored):
            await self._inbox.put_all(list(refused.values()))
            self._unstored = {key: one for key, one in self._unstored.items() if key not in refused}
        self._cursors.load(await self._inbox.cursors(self._account.id))
        self._room = _ALL_MAX
        for channel in self._cursors.channels():
            await self._read_channel(channel, bot)
        live, self._live = self._live, {}
        cursors = [cursor for channel, ts in live.items() for cursor in self._cursors.moved(channel, ts)]
        if cursors:
            await self._inbox.put_all((), cursors)
            self._cursors.commit(cursors)

    async def _read_channel(self, channel: str, bot: SlackBot) -> None:
        """Store what was written in a channel since its cursor, the oldest first, as far as there is room."""
        stored = self._cursors.read_to(channel)
        since = max(order_of(stored)[0] - _OVERLAP_S, self._line.clock.now_ms() // 1_000 - _LONGEST_S)
        found: _Found = {}
        query: dict[str, object] = {"channel": channel, "oldest": f"{since}.000000", "limit": _PAGE}
        try:
            await self._read_pages("conversations.history", query, found)
            for thread in self._threads(channel, found):
                await self._read_pages("conversations.replies", {**query, "ts": thread}, found)
        except SlackRefused as error:
            if error.is_throttled or error.is_in_doubt or (error.is_bad_token and error.error != "missing_scope"):
                raise
            _log.warning("the history of %s cannot be read: %s", channel, error)
        kept = self._bounded(channel, stored, sorted(found, key=order_of))
        said = [_incoming(found[ts], channel, bot) for ts in kept]
        newest = max((*found, stored), key=order_of)
        cursors = [*self._cursors.moved(channel, newest)]
        await self._put([one for one in said if one is not None], cursors)

    async def _put(self, said: list[Incoming], cursors: list[Cursor]) -> None:
        if said or cursors:
            await self._inbox.put_all(said, cursors)
            self._cursors.commit(cursors)

    def _bounded(self, channel: str, stored: str, found: list[str]) -> list[str]:
        """The messages that are stored: those before the cursor, which may be there, and the oldest after it."""
        before = [ts for ts in found if order_of(ts) <= order_of(stored)]
        after = found[len(before) :]
        taken = after[: min(_CONVERSATION_MAX, self._room)]
        self._room -= len(taken)
        if left := len(after) - len(taken):
            _log.warning("messages in %s that were written while no socket was open are not read: %d", channel, left)
        return before + taken

    def _threads(self, channel: str, found: _Found) -> Iterable[str]:
        """The threads in which something may have been written: those known, and those of what was found."""
        since = self._line.clock.now_ms() // 1_000 - _THREAD_S
        known = (ts for ts in self._cursors.threads(channel) if order_of(ts)[0] >= since)
        begun = (ts for ts, message in found.items() if message.get("reply_count"))
        return dict.fromkeys((*known, *begun))

    async def _read_pages(self, method: str, query: Mapping[str, object], found: _Found) -> None:
        """Read the messages of a channel or thread, a thousand at most; a rate limit is waited out."""
        parameters, pages = dict(query), 0
        while pages < _PAGES_MAX:
            try:
                answer = await self._account.api.call(method, parameters)
            except SlackRefused as error:
                if error.error == "thread_not_found":
                    return
                if not error.is_throttled:
                    raise
                await self._line.clock.wait(asyncio.Event(), wait_ms(error.retry_after_s))
                continue
            pages += 1
            for message in messages_in(answer):
                ts = message.get("ts")
                if isinstance(ts, str) and order_of(ts) >= order_of(str(query["oldest"])):
                    found[ts] = message
            if not (cursor := next_cursor(answer)):
                return
            parameters["cursor"] = cursor
        _log.warning("only the newest messages of %s are read, and not those before", query["channel"])


def _incoming(message: Mapping[str, object], channel: str, bot: SlackBot) -> Incoming | None:
    """A message of the history as the event that nobody received."""
    kind = "im" if channel.startswith("D") else "channel"
    event = {**message, "channel": channel, "channel_type": kind}
    return incoming_of_event({"type": "event_callback", "event": event}, bot)
