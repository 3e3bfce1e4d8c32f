"""Opening of wraps: each once, checked; wraps that fail a check are counted and not stored (NIP-17, NIP-59)."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import blake2b

from keepsaid.adapters.channels.nostr.keys import LEGACY, Event, NostrForged, NostrKeys, NostrRumor
from keepsaid.ports.runtime import Clock
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.nostr")
_EVENT_CHARS_MAX = 64_000
_A_MINUTE_MAX, _MINUTE_MS = 20, 60_000
_FUTURE_S = 600
_SEEN_MAX, _ADDRESSES_MAX = 20_000, 2_000
_LOGGED_EACH = 100


@frozen
class OpenedEvent:
    """A rumor, and the digest of the event that held it; the rumor is None if the event failed a check."""

    digest: bytes
    rumor: NostrRumor | None


class WrapOpener:
    """Opens the wraps of an account. `failures` counts those that failed, by the reason."""

    def __init__(self, keys: NostrKeys, clock: Clock, *, legacy: bool = False) -> None:
        self._keys = keys
        self._clock = clock
        self._legacy = legacy
        self._seen: OrderedDict[bytes, None] = OrderedDict()
        self._addresses: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self.failures: Counter[str] = Counter()

    def is_new(self, event: Event) -> bool:
        """Whether the messages of an event were not stored yet by this process."""
        return _digest_of(event) not in self._seen

    def commit(self, opened: Sequence[OpenedEvent]) -> None:
        """Do not open these again: their messages are stored."""
        for one in opened:
            self._seen[one.digest] = None
        while len(self._seen) > _SEEN_MAX:
            self._seen.popitem(last=False)

    async def open_all(self, events: Sequence[Event]) -> list[OpenedEvent]:
        """Open events in their order, in a thread; those that are not new are left out."""
        wanted = {_digest_of(event): event for event in events}
        wanted = {digest: event for digest, event in wanted.items() if digest not in self._seen}
        if not wanted:
            return []
        refused = {digest: self._refusal_of(event) for digest, event in wanted.items()}
        allowed = {digest: event for digest, event in wanted.items() if not refused[digest]}
        found = await asyncio.to_thread(self._open_each, allowed)
        return [OpenedEvent(one, self._checked(found.get(one) or refused[one])) for one in wanted]

    def _open_each(self, events: Mapping[bytes, Event]) -> dict[bytes, NostrRumor | str]:
        """Open events; one that fails is replaced by the reason."""
        opened: dict[bytes, NostrRumor | str] = {}
        for digest, event in events.items():
            try:
                is_legacy = self._legacy and event.get("kind") == LEGACY
                opened[digest] = self._keys.open_legacy(event) if is_legacy else self._keys.open_wrap(event)
            except NostrForged as error:
                opened[digest] = str(error)
        return opened

    def _checked(self, found: NostrRumor | str) -> NostrRumor | None:
        """The rumor unless it comes from the future."""
        if isinstance(found, str):
            self._fail(found)
            return None
        if found.created_at > self._clock.now_ms() // 1_000 + _FUTURE_S:
            self._fail("the message is from the future")
            return None
        return found

    def _refusal_of(self, event: Event) -> str:
        """Why an event is not to be decrypted: its size, or more than 20 a minute under one key; "" if it is."""
        if len(json.dumps(event, ensure_ascii=False)) > _EVENT_CHARS_MAX:
            return "the event is larger than 64 kB"
        if event.get("kind") == LEGACY:  # its author is a person, and a person may write 20 messages while we are off
            return ""
        address, now = str(event.get("pubkey")), self._clock.monotonic_ms()
        began, count = self._addresses.pop(address, (now, 0))
        if now - began >= _MINUTE_MS:
            began, count = now, 0
        self._addresses[address] = (began, count + 1)
        while len(self._addresses) > _ADDRESSES_MAX:
            self._addresses.popitem(last=False)
        return "too many events under one key" if count >= _A_MINUTE_MAX else ""

    def _fail(self, reason: str) -> None:
        self.failures[reason] += 1
        if self.failures[reason] % _LOGGED_EACH == 1:
            _log.warning("events of Nostr that are refused (%s): %d", reason, self.failures[reason])


def _digest_of(event: Event) -> bytes:
    """A digest of all of an event: the id alone may be claimed by a forged one."""
    text = json.dumps(event, sort_keys=True)
    return blake2b(text.encode(), digest_size=16).digest()
