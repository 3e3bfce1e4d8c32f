"""Reactions of a bot of Telegram: `setMessageReaction`, and what its refusals mean for the model.

Source: Bot API, setMessageReaction: a bot sets one reaction to a message, which replaces its former one.
"""

from __future__ import annotations

from typing import Final

from keepsaid.adapters.channels.telegram_api import TelegramApi, TelegramRefused, TelegramUnreachable
from keepsaid.errors import ToolError

_LOOK: Final = "\ufe0f"
"""The sign that has an emoji shown in colours; Telegram's own emoji are without it."""

_KNOWN: Final = "👍 👎 ❤ 🔥 🥰 👏 😁 🤔 😱 😢 🎉 🤩 🙏 👌 💯 🤣 ⚡ 🏆 💔 🤝 ✍ 👀 🤗 🫡 😎 🤷"
_GONE: Final = ("message to react not found", "message not found", "message_id_invalid")


async def set_reaction(api: TelegramApi, chat: int | str, number: int, emoji: str) -> None:
    """Give a message an emoji. Raises ToolError."""
    reaction = [{"type": "emoji", "emoji": emoji.replace(_LOOK, "")}]
    try:
        await api.call("setMessageReaction", {"chat_id": chat, "message_id": number, "reaction": reaction})
    except TelegramUnreachable:
        raise ToolError("Telegram did not answer; whether the message has the reaction is not known") from None
    except TelegramRefused as error:
        raise ToolError(_reason(error)) from None


def _reason(error: TelegramRefused) -> str:
    """Why Telegram refused a reaction."""
    what = error.what.casefold()
    if "reaction_invalid" in what:
        return f"Telegram refuses this emoji: a bot may use {_KNOWN} and some others, and a group may allow fewer"
    if error.migrated_to is not None or any(words in what for words in _GONE):
        return "the message is gone"
    if error.code == 429:
        return "Telegram wants fewer requests now; nothing was done"
    if error.code in (400, 403):
        return f"the bot may not react there (Telegram's code {error.code})"
    return f"Telegram failed (code {error.code}); whether the message has the reaction is not known"
