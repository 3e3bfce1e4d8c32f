"""How far Slack's messages were stored: for each channel the time of the newest, and the threads written in last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keepsaid.adapters.channels.slack_line import SlackAccount
from keepsaid.domain.line import Cursor
from keepsaid.ports.channel import Incoming
from keepsaid.ports.runtime import Clock

_READ, _THREADS = "ts:", "threads:"
_THREADS_MAX = 10
_SKEW_S = 60
"""By how much the clock of Slack may be ahead of the one here."""

_TS = re.compile(r"[0-9]{1,12}\.[0-9]{1,6}", re.ASCII)


def order_of(ts: str) -> tuple[int, int]:
    """The place of a message among others, by its `ts`: seconds since 1970, and a number that counts in the second."""
    if not _TS.fullmatch(ts):
        return 0, 0
    seconds, _, number = ts.partition(".")
    return int(seconds), int(number.ljust(6, "0"))


class SlackCursors:
    """The cursors of one account, as they are stored; at most two of them for a channel. `is_loaded` once they are.

    None is ahead of the present: after a message whose time is in the future, others with the right time may follow.
    """

    def __init__(self, account: SlackAccount, clock: Clock) -> None:
        self._account = account
        self._clock = clock
        self.is_loaded = False
        self._values: dict[str, str] = {}

    def load(self, values: Mapping[str, str]) -> None:
        """Take the stored cursors, none of which is ahead of those known here."""
        self.is_loaded = True
        self._values = {**values, **self._values}

    def commit(self, cursors: Sequence[Cursor]) -> None:
        """These are stored now."""
        self._values |= {cursor.name: cursor.value for cursor in cursors}

    def channels(self) -> Sequence[str]:
        """The channels that are known, the one with the newest message first."""
        names = [name for name in self._values if name.startswith(_READ)]
        return [
            name.removeprefix(_READ)
            for name in sorted(names, key=lambda one: order_of(self._values[one]), reverse=True)
        ]

    def read_to(self, channel: str) -> str:
        """The `ts` up to which a channel was stored; "" of one that is not known."""
        return self._values.get(f"{_READ}{channel}", "")

    def threads(self, channel: str) -> Sequence[str]:
        """The threads of a channel that were written in last."""
        return self._values.get(f"{_THREADS}{channel}", "").split()

    def moved(self, channel: str, ts: str) -> Iterator[Cursor]:
        """The cursor of a channel that is stored up to a message; none if it is there already."""
        ts = min(ts, f"{self._clock.now_ms() // 1_000 + _SKEW_S}.000000", key=order_of)
        if order_of(ts) > order_of(self.read_to(channel)):
            yield Cursor(self._account.id, f"{_READ}{channel}", ts)

    def after(self, said: Iterable[Incoming], *, is_behind: bool) -> Sequence[Cursor]:
        """The cursors once some messages are stored; while the history is not read, those of threads alone."""
        newest: dict[str, str] = {}
        threads: dict[str, list[str]] = {}
        for one in said:
            channel, thread = channel_of(one), one.topic
            newest[channel] = max(newest.get(channel, ""), one.provider_id or "", key=order_of)
            known = threads.setdefault(channel, [*self.threads(channel)])
            if thread is not None and thread not in known and _TS.fullmatch(thread):
                known.insert(0, thread)
        cursors: list[Cursor] = []
        for channel, ts in newest.items():
            kept = threads[channel][:_THREADS_MAX]
            if self.is_loaded and kept != [*self.threads(channel)]:
                cursors.append(Cursor(self._account.id, f"{_THREADS}{channel}", " ".join(kept)))
            if not is_behind:
                cursors += self.moved(channel, ts)
        return cursors


def channel_of(said: Incoming) -> str:
    """The id of the channel of a message."""
    return said.conversation.partition(":")[2]
