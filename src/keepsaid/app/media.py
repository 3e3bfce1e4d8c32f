"""Media: whose raw objects can be read, by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from keepsaid.adapters.channels.media import discord, nostr, slack, telegram
from keepsaid.domain.attachment import Posted, Unsaid

MEDIA: Mapping[str, Callable[[Mapping[str, object]], Posted | Unsaid]] = {
    "telegram": telegram.read,
    "discord": discord.read,
    "nostr": nostr.read,
    "slack": slack.read,
}
"""Every medium whose bots can hand over what they were sent."""
