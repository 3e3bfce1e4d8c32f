"""Conversation: where the turn takes place, by what its first message says of it (seed 001, Conversation context)."""

from __future__ import annotations

from keepsaid.domain.prompt import Layer
from keepsaid.domain.scene import Scene
from keepsaid.domain.text import named_short
from keepsaid.pipeline.context.layer import layer
from keepsaid.pipeline.context.speech import is_named

_TOPIC = "topic:"


def conversation(scene: Scene) -> Layer:
    """Channel, account, conversation, topic, and whether more people than one may be heard."""
    lane = scene.claimed.batch.lane
    facts = [f"channel {named_short(lane.channel)}", f"account {named_short(lane.account)}"]
    facts.append(f"conversation {named_short(lane.conversation)}")
    if lane.key.startswith(_TOPIC):
        facts.append(f"topic {named_short(lane.key.rpartition(':')[2])}")
    who = "a group: each text begins with its speaker's name" if is_named(scene.claimed) else "a direct chat"
    return layer("conversation", f"[Conversation] {', '.join(facts)}; {who}.")
