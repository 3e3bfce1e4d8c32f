"""Values in, values out: what the library takes and gives."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.ids import show
from keepsaid.domain.memory import Hit

CHANNEL = "library"
"""Where what a program says itself comes in."""


@dataclass(frozen=True, slots=True)
class Message:
    """Something said to the agent.

    `external_id` names this delivery: the same id with the same content is stored once. `provider_id` is
    what replies refer to, `reply_to` the provider id of the message this one answers. `direct` says that
    only the sender and the agent are in the conversation.
    """

    text: str
    sender: str
    conversation: str
    channel: str = CHANNEL
    external_id: str | None = None
    provider_id: str | None = None
    reply_to: str | None = None
    direct: bool = False


@dataclass(frozen=True, slots=True)
class Receipt:
    """Proof that a message is on disk; `duplicate` says it was there before."""

    id: str
    conversation: str
    lane: str
    number: int
    duplicate: bool


@dataclass(frozen=True, slots=True)
class Episode:
    """Something that was said, to be remembered word for word.

    `said_at` is milliseconds UTC. `external_id` names it within its conversation: recording it again
    changes nothing. `kind` is `episode`, or one of fact, preference, decision, identity, event,
    observation, goal, todo for what is known already.
    """

    text: str
    speaker: str
    conversation: str
    said_at: int
    lane: str = ""
    kind: str = "episode"
    external_id: str | None = None


@dataclass(frozen=True, slots=True)
class Remembered:
    """A recalled memory: its rank (from 1) and score in the leg that found it."""

    id: str
    text: str
    kind: str
    speaker: str
    said_at: int
    conversation: str
    external_id: str
    rank: int
    score: float


def remembered(hit: Hit) -> Remembered:
    """A hit as the library shows it."""
    new = hit.memory.new
    external = next((source.ref for source in new.sources if source.kind == "external"), "")
    conversation = new.lane.conversation if new.lane else ""
    place = (new.speaker, new.said_at, conversation, external)
    return Remembered(show("memory", hit.memory.id), new.text, str(new.kind), *place, hit.rank, hit.score)
