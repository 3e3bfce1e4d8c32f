"""Conversation: where the turn takes place, by what its first message says of it (seed 001, Conversation context)."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import cut
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import is_named

_NAME_CHARS_MAX = 120
_TOPIC = "topic:"


def conversation(scene: Scene) -> Layer:
    """Channel, account, conversation, topic, and whether more people than one may be heard."""
    lane = scene.claimed.batch.lane
    facts = [f"channel {_line(lane.channel)}", f"account {_line(lane.account)}"]
    facts.append(f"conversation {_line(lane.conversation)}")
    if lane.key.startswith(_TOPIC):
        facts.append(f"topic {_line(lane.key.rpartition(':')[2])}")
    who = "a group: each text begins with its speaker's name" if is_named(scene.claimed) else "a direct chat"
    return layer("conversation", f"[Conversation] {', '.join(facts)}; {who}.")


def _line(name: str) -> str:
    """A name from outside, on one line and short."""
    return cut(" ".join(name.replace("[", "(").replace("]", ")").split()), _NAME_CHARS_MAX)
