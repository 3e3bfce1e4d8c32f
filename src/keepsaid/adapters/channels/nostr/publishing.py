"""Publishing an event to its receiver: it is delivered when one relay says OK; the others get it in the background."""

from __future__ import annotations

import asyncio
import contextvars
import logging
from collections.abc import Sequence
from enum import StrEnum

from keepsaid.adapters.channels.backoff import LineBackoff
from keepsaid.adapters.channels.nostr.parts import NostrEvent
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused
from keepsaid.errors import ChannelError
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.nostr")
_REST_MS = 86_400_000
_REST_MAX = 500
_PASSING = ("rate-limited", "error", "")
"""Prefixes of reasons after which a relay may take the same event later."""


class PublishState(StrEnum):
    """The state of an event after a try, the best first."""

    KEPT = "kept"
    THROTTLED = "throttled"
    DOUBTFUL = "doubtful"
    UNSENT = "unsent"
    REFUSED = "refused"


@frozen
class Published:
    """The state of an event at the relays of its receiver, and why it is not kept there."""

    state: PublishState
    detail: str = ""


class NostrPublisher:
    """Publishes events, each to several relays at once."""

    def __init__(self, pool: NostrPool) -> None:
        self._pool = pool
        self._rest: set[asyncio.Task[None]] = set()

    async def publish(self, event: NostrEvent, relays: Sequence[str]) -> Published:
        """Publish an event; returns once one relay keeps it, or none does. Never raises."""
        tries = {asyncio.create_task(self._try(event, url)): url for url in relays}
        pending = set(tries)
        results: list[Published] = []
        try:
            while pending:
                done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
                results += [task.result() for task in done]
                if any(one.state is PublishState.KEPT for one in results):
                    self._go_on(event, tries, pending)
                    pending = set()
                    return Published(PublishState.KEPT)
        finally:
            for task in pending:
                task.cancel()
        return _worst(results)

    def publish_later(self, event: NostrEvent, relays: Sequence[str]) -> None:
        """Publish an event to each of some relays in the background, until it is kept there, or for 24 hours."""
        for url in relays:
            self._begin(event, url)

    async def close(self) -> None:
        """Give up what is published in the background."""
        for task in self._rest:
            task.cancel()
        await asyncio.gather(*self._rest, return_exceptions=True)

    def _go_on(
        self, event: NostrEvent, tries: dict[asyncio.Task[Published], str], pending: set[asyncio.Task[Published]]
    ) -> None:
        """Leave the relays that have not said OK to the background."""
        for task, url in tries.items():
            if task in pending:
                task.cancel()
            if task in pending or task.result().state not in (PublishState.KEPT, PublishState.REFUSED):
                self._begin(event, url)

    def _begin(self, event: NostrEvent, url: str) -> None:
        if len(self._rest) >= _REST_MAX:
            _log.warning("too many events wait for relays that are down; %s does not get one", url)
            return
        # a context of its own: whether the reply may be sent was decided when it was sent
        context = contextvars.Context()
        task = asyncio.get_running_loop().create_task(self._publish_until_kept(event, url), context=context)
        self._rest.add(task)
        task.add_done_callback(self._rest.discard)

    async def _publish_until_kept(self, event: NostrEvent, url: str) -> None:
        clock = self._pool.clock
        until, backoff = clock.monotonic_ms() + _REST_MS, LineBackoff(clock)
        while clock.monotonic_ms() < until:
            if (await self._try(event, url)).state in (PublishState.KEPT, PublishState.REFUSED):
                return
            await clock.wait(asyncio.Event(), backoff.next_ms())

    async def _try(self, event: NostrEvent, url: str) -> Published:
        """Publish an event to one relay; never raises."""
        try:
            await (await self._pool.open(url)).publish(event.id, event.text)
        except NostrDown as error:
            return Published(PublishState.DOUBTFUL if error.is_sent else PublishState.UNSENT, str(error))
        except NostrRefused as error:
            if error.prefix == "rate-limited":
                return Published(PublishState.THROTTLED, f"{url}: {error}")
            state = PublishState.DOUBTFUL if error.prefix in _PASSING else PublishState.REFUSED
            return Published(state, f"{url}: {error}")
        except ChannelError as error:
            return Published(PublishState.UNSENT, error.what)
        except InterruptedError as error:
            return Published(PublishState.UNSENT, str(error))
        return Published(PublishState.KEPT)


def _worst(results: Sequence[Published]) -> Published:
    """The state of an event that no relay keeps: doubt before anything else, and refused only if all refuse."""
    for state in (PublishState.DOUBTFUL, PublishState.THROTTLED, PublishState.UNSENT, PublishState.REFUSED):
        found = [one.detail for one in results if one.state is state]
        if found:
            return Published(state, found[0] if state is not PublishState.REFUSED else "; ".join(found))
    return Published(PublishState.REFUSED, "the receiver has no relays")
