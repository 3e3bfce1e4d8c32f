"""The inbox, as channels outside the core need it: what was said is handed over, and is kept from then on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Incoming:
    """What somebody said on a medium. `sender` and `conversation` are what the medium calls them.

    `external_id` names this delivery: one that comes twice is kept once. `provider_id` is what replies refer to,
    `reply_to` the one this answers, `topic` the strand it is in. `direct` says that nobody else is in the
    conversation, `payload` is what came, as it came.
    """

    text: str
    sender: str
    conversation: str
    external_id: str | None = None
    provider_id: str | None = None
    reply_to: str | None = None
    topic: str | None = None
    name: str = ""
    direct: bool = False
    payload: bytes | None = None


class Inbox(Protocol):
    """Takes in what was said on one channel."""

    async def put(self, incoming: Incoming) -> bool:
        """Keep a message; returns once it is on disk, False when it was there before.

        Only then tell the medium that it arrived. Raises InputError for what cannot be taken, StoreError when the disk
        refuses: hand it over again later.
        """
        ...
