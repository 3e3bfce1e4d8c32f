"""Steering: messages that arrive while a turn runs are added to it between two steps (busy: steer)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Protocol

from keepsaid.domain.batch import Window
from keepsaid.domain.busy import Steer
from keepsaid.domain.message import StoredMessage, described
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.turn import ClaimedBatch, Steered
from keepsaid.ports.runtime import Offload, inline
from keepsaid.ports.store_views import Operations


class SteeringSource(Protocol):
    """Source of the messages that are added to a turn between its steps."""

    async def before(self, n: int, *, replayed: bool) -> list[Record]:
        """What joins before step `n`."""
        ...

    def sent(self, exchange: tuple[Record, ...]) -> tuple[Record, ...]:
        """The exchange as it is sent."""
        ...


class NoSteering:
    """Null object for turns that cannot be steered, such as those of workers."""

    async def before(self, n: int, *, replayed: bool) -> list[Record]:  # noqa: ARG002 - the protocol's signature
        return []

    def sent(self, exchange: tuple[Record, ...]) -> tuple[Record, ...]:
        return exchange


class SteeringInbox:
    """Batches that are added to one turn; without a `window` only those that its recorded steps were shown.

    `spoken` renders a message for the prompt.
    """

    def __init__(
        self,
        operations: Operations,
        claimed: ClaimedBatch,
        window: Window | None,
        spoken: Callable[[StoredMessage], str],
        offload: Offload = inline,
    ) -> None:
        self._operations = operations
        self._claimed = claimed
        self._window = window
        self._spoken = spoken
        self._offload = offload
        self._shown: dict[str, str] = {}

    @property
    def claimed(self) -> ClaimedBatch:
        """The turn's batch, with all that has joined it."""
        return self._claimed

    async def before(self, n: int, *, replayed: bool) -> list[Record]:
        """What joins before step `n`: one that is replayed is shown again what it was shown, and no more."""
        if not replayed and self._window is not None:
            batch = self._claimed.batch
            steer = Steer(self._claimed.turn_id, batch.id, batch.fence, n, self._window)
            fresh = await self._operations.apply(steer)
            self._claimed = replace(self._claimed, steered=(*self._claimed.steered, *fresh))
        return [record for one in self._claimed.steered if one.n == n for record in await self._records(one)]

    async def _records(self, steered: Steered) -> list[Record]:
        records = []
        for message in steered.messages:
            ref, origin = f"message:{message.id}", message.inbound.origin
            self._shown[ref] = await self._offload(len(message.text), partial(self._spoken, message))
            who, attached = origin.name or origin.sender, described(message.inbound.content)
            records.append(Record(Role.USER, message.text, speaker=who, ref=ref, attached=attached, trust=origin.trust))
        return records

    def sent(self, exchange: tuple[Record, ...]) -> tuple[Record, ...]:
        return tuple(
            replace(one, text=self._shown.get(one.ref, one.text), attached="") if one.ref else one for one in exchange
        )
