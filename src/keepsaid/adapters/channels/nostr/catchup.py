"""Reading of stored messages from a relay: page by page, bounded, oldest first (spec channels, C19)."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from keepsaid.adapters.channels.nostr.keys import Event
from keepsaid.adapters.channels.nostr.opening import OpenedEvent
from keepsaid.adapters.channels.nostr.people import participants_of
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused, NostrSocket
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.nostr")
BACKDATED_S = 2 * 86_400 + 3_600
"""How much earlier than it was made the time of a wrap may be (NIP-59), and an hour for clocks that differ."""

_LONGEST_S = 86_400
_CONVERSATION_MAX, _ALL_MAX = 100, 500
_PAGE, _EVENTS_MAX = 500, 5_000
_ANSWER_WITHIN_MS = 30_000
_OLDER = "keepsaid-older"


@frozen
class CatchUpLimits:
    """Bounds of a catch-up: when it began, the first contact, and the cursor of the relay (None if it has none).

    Times are seconds UTC.
    """

    began: int
    first: int
    cursor: int | None

    def choose(self, opened: Sequence[OpenedEvent]) -> list[OpenedEvent]:
        """The messages to store, the oldest first; the rest are named in the log.

        Messages from before the first contact are history. Those from before the cursor may be stored already; they
        are handed over again, and do not count.
        """
        known = [(one.rumor, one) for one in opened if one.rumor is not None and one.rumor.created_at >= self.first]
        known.sort(key=lambda pair: pair[0].created_at)
        chosen: list[OpenedEvent] = []
        counts: Counter[str] = Counter()
        left = 0
        for rumor, one in known:
            room = " ".join(sorted(participants_of(rumor)))
            if rumor.created_at <= (self.cursor or self.first):
                chosen.append(one)
            elif self._is_over(rumor.created_at, counts[room], counts.total()):
                left += 1
            else:
                counts[room] += 1
                chosen.append(one)
        if left:
            _log.warning("messages of Nostr that were written while no relay was connected are not read: %d", left)
        return chosen

    def _is_over(self, at: int, in_room: int, in_all: int) -> bool:
        """Whether a missed message is too old, or one too many of its conversation or of all."""
        return at < self.began - _LONGEST_S or in_room >= _CONVERSATION_MAX or in_all >= _ALL_MAX


class StoredEvents:
    """Reads what a relay has stored: `stored` are those events, `live` those that came meanwhile.

    Both are complete once `read` returns; if it raises, they hold what was read up to then.
    """

    def __init__(self, socket: NostrSocket, name: str, query: Mapping[str, object]) -> None:
        self.live: list[Event] = []
        self._socket = socket
        self._name = name
        self._query = query
        self._found: dict[str, Event] = {}

    @property
    def stored(self) -> Sequence[Event]:
        """The stored events, each once."""
        return list(self._found.values())

    async def read(self, is_new: Callable[[Event], bool]) -> None:
        """Subscribe, and read until a page holds nothing new, as a relay limits its pages as it likes.

        At most 5,000 events are read. Times of wraps are made up: what is sent meanwhile may be in an older page, and
        what was sent before it not. Then all is asked for once more. Raises NostrDown and NostrRefused.
        """
        await self._socket.subscribe(self._name, {**self._query, "limit": _PAGE})
        page = await self._read_page(self._name)
        is_short = len(page) < _PAGE
        while any(is_new(event) for event in page) and len(self._found) < _EVENTS_MAX:
            until = min((at for event in page if isinstance(at := event.get("created_at"), int)), default=0)
            page = await self._ask({**self._query, "until": until, "limit": _PAGE})
            if is_short and page:
                is_short = False
                page += await self._ask({**self._query, "limit": _PAGE})

    async def _ask(self, query: Mapping[str, object]) -> list[Event]:
        """The events of a page beside the subscription that stays."""
        await self._socket.subscribe(_OLDER, query)
        page = await self._read_page(_OLDER)
        await self._socket.unsubscribe(_OLDER)
        return page

    async def _read_page(self, name: str) -> list[Event]:
        """The events of a page that no page before it had."""
        page: list[Event] = []
        is_ended = False
        while not is_ended:
            items = await self._socket.take(_ANSWER_WITHIN_MS)
            if not items:
                raise NostrDown(f"{self._socket.url} does not answer")
            for item in items:
                if item.closed is not None:
                    raise NostrRefused(item.closed)
                if item.event is None:
                    is_ended = is_ended or item.subscription == name
                elif item.subscription != name or is_ended:
                    self.live.append(item.event)
                else:
                    self._add(item.event, page)
            if len(page) > _EVENTS_MAX:
                raise NostrDown(f"{self._socket.url} does not end its stored events")
        return page

    def _add(self, event: Event, page: list[Event]) -> None:
        # a forged copy has the id of the genuine event, and another signature or content
        key = json.dumps(event, sort_keys=True)
        if key not in self._found:
            self._found[key] = event
            page.append(event)
