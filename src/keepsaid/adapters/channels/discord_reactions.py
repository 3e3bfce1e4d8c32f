"""Reactions of a bot of Discord: `PUT .../reactions/EMOJI/@me`, and what its refusals mean for the model.

Source: Discord API, Create Reaction: a second one with the same emoji changes nothing.
"""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from keepsaid.adapters.channels.discord_api import DiscordApi, DiscordRefused, DiscordUnreachable
from keepsaid.errors import ToolError

_WORDS: Final = (
    ("unknown emoji", "Discord does not know this emoji: use one emoji of Unicode"),
    ("unknown message", "the message is gone"),
    ("unknown channel", "the channel is gone"),
    ("reaction was blocked", "who wrote the message lets the bot give it no reaction"),
    ("maximum number of reactions", "the message has 20 different reactions already: use one of those"),
)
"""What Discord says, and what it means."""


async def add_reaction(api: DiscordApi, channel: str, number: str, emoji: str) -> None:
    """Give a message an emoji. Raises ToolError."""
    path = f"/channels/{channel}/messages/{number}/reactions/{quote(emoji, safe='')}/@me"
    try:
        await api.call("PUT", path)
    except DiscordUnreachable:
        raise ToolError("Discord did not answer; whether the message has the reaction is not known") from None
    except DiscordRefused as error:
        raise ToolError(_reason(error)) from None


def _reason(error: DiscordRefused) -> str:
    """Why Discord refused a reaction."""
    what = error.what.casefold()
    if (known := next((told for words, told in _WORDS if words in what), None)) is not None:
        return known
    if error.status == 429:
        return "Discord wants fewer requests now; nothing was done"
    if error.status == 403:
        return "the bot may not react there: it needs the permissions Add Reactions and Read Message History"
    if error.status >= 500:
        return f"Discord failed (status {error.status}); whether the message has the reaction is not known"
    return f"Discord refuses the reaction (status {error.status})"
