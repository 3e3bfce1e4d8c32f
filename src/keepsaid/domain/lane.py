"""Lanes: ordered strands inside a conversation, by key (seed 003, ThreadKey)."""

from __future__ import annotations

from typing import NamedTuple


class Lane(NamedTuple):
    """An ordered strand of a conversation; its identity is all four fields, never the key alone."""

    channel: str
    account: str
    conversation: str
    key: str

    def __str__(self) -> str:
        """Name the lane for people: `terminal:me root:me`."""
        return f"{self.conversation} {self.key}"


def lane_key(chat: str, topic: str | None = None, reply_to: str | None = None) -> str:
    """The key of a strand: topic before reply before root (seed 003).

    `chat` is the channel's own id of the chat. A reply whose target is known joins the lane of its
    target instead; that is decided in the commit of `receive`, where the target can be looked up.
    """
    if topic:
        return f"topic:{chat}:{topic}"
    if reply_to:
        return f"reply:{chat}:{reply_to}"
    return f"root:{chat}"
