"""Lanes: ordered strands inside a conversation, by key (seed 003, ThreadKey)."""

from __future__ import annotations

from typing import NamedTuple

FORGOTTEN = "forgotten"


class Lane(NamedTuple):
    """An ordered strand of a conversation; its identity is all four fields, never the key alone."""

    channel: str
    account: str
    conversation: str
    key: str

    def __str__(self) -> str:
        """Name the lane for people: `terminal:me root:me`."""
        return f"{self.conversation} {self.key}"


class LaneRules(NamedTuple):
    """How a lane is found where a message answers another.

    `join`: a reply to something that has a lane joins it; without, it always has the lane of a reply (seed 003).
    `infer`: what a message of a group answers is inferred where nothing says it, and strands get lanes of their own.
    """

    join: bool = True
    infer: bool = False


def lane_key(chat: str, topic: str | None = None, reply_to: str | None = None) -> str:
    """The key of a strand: topic before reply before root (seed 003).

    `chat` is the conversation's id. A reply whose target is known joins the lane of its target instead of
    opening one; that is decided in the commit of `receive`, where the target can be looked up.
    """
    if topic:
        return f"topic:{chat}:{topic}"
    if reply_to:
        return f"reply:{chat}:{reply_to}"
    return f"root:{chat}"


def forgotten_lane(lane: Lane, conversation: int, number: int) -> Lane:
    """The name of a lane whose conversation was forgotten: numbers, in the place of every name but the channel's."""
    return Lane(lane.channel, lane.account, f"{FORGOTTEN}:{conversation}", f"{FORGOTTEN}:{number}")


def topic_of(lane: Lane) -> str | None:
    """The topic that a lane is named after; None for every other lane."""
    start = f"topic:{lane.conversation}:"
    return lane.key.removeprefix(start) if lane.key.startswith(start) else None
