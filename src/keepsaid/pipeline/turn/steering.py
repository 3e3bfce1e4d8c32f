"""Steering: messages that arrive while a turn runs are added to it between two steps (busy: steer)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

from keepsaid.domain import busy, turn
from keepsaid.domain.batch import Window
from keepsaid.domain.message import StoredMessage, described
from keepsaid.domain.prompt import Record, Role
from keepsaid.ports import runtime, store_views


@dataclass(slots=True, eq=False)
class SteeringInbox:
    """Batches that are added to one turn; without a `window` only those that its recorded steps were shown.

    `claimed` is the turn's batch with all that has joined it, `spoken` renders a message for the prompt.
    """

    operations: store_views.Operations
    claimed: turn.ClaimedBatch
    window: Window | None
    spoken: Callable[[StoredMessage], str]
    offload: runtime.Offload = runtime.inline
    _shown: dict[str, str] = field(default_factory=dict, init=False)

    async def before(self, n: int, *, replayed: bool) -> list[Record]:
        """What joins before step `n`: one that is replayed is shown again what it was shown, and no more."""
        if not replayed and self.window is not None:
            batch = self.claimed.batch
            steer = busy.Steer(self.claimed.turn_id, batch.id, batch.fence, n, self.window)
            fresh = await self.operations.apply(steer)
            self.claimed = replace(self.claimed, steered=(*self.claimed.steered, *fresh))
        return [record for one in self.claimed.steered if one.n == n for record in await self._records(one)]

    async def _records(self, steered: turn.Steered) -> list[Record]:
        records = []
        for message in steered.messages:
            ref, origin = f"message:{message.id}", message.inbound.origin
            self._shown[ref] = await self.offload(len(message.text), partial(self.spoken, message))
            who, attached = origin.name or origin.sender, described(message.inbound.content)
            records.append(Record(Role.USER, message.text, speaker=who, ref=ref, attached=attached, trust=origin.trust))
        return records

    def sent(self, exchange: tuple[Record, ...]) -> tuple[Record, ...]:
        """The exchange as it is sent."""
        return tuple(
            replace(one, text=self._shown.get(one.ref, one.text), attached="") if one.ref else one for one in exchange
        )
