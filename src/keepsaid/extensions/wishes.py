"""Wishes: the subscriptions that a manifest names, each with what is done when it is told."""

from __future__ import annotations

import json

from keepsaid.domain.event import Event
from keepsaid.errors import ExtensionError
from keepsaid.extensions.given import Tell
from keepsaid.extensions.guest import Guest
from keepsaid.extensions.manifest import Subscription


async def wish_all(guest: Guest) -> None:
    """Let an extension wish for all that its manifest names. Raises ExtensionError where nobody could be told."""
    assert guest.context is not None, "what is initialized has a context"
    for one in guest.manifest.events.subscribes:
        named = one.method if one.handler == "custom" else one.handler
        await guest.context.subscribe(one.topic, _tell(guest, one), named)


def _tell(guest: Guest, one: Subscription) -> Tell:
    context, agent = guest.context, guest.provided.agent
    assert context is not None, "what is initialized has a context"
    if one.handler == "custom":
        method: Tell = getattr(guest.made, one.method)
        return method
    if one.handler == "notify_user":
        return lambda event: context.notify_user(_text(event, "text"), f"{event.id}")
    if agent is None:
        raise ExtensionError(f"nobody can be invoked for {one.topic}: there is no agent")
    return lambda event: agent.invoke(_text(event, "prompt"))


def _text(event: Event, field: str) -> str:
    """What an event says in a field, else all it holds."""
    said = event.payload.get(field)
    return said if isinstance(said, str) and said.strip() else f"{event.topic}: {json.dumps(dict(event.payload))}"
