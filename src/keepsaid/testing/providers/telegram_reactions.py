"""Reactions of the scripted Telegram, of the emoji that a bot may use (short: a list, and one method)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

ALLOWED: Final = frozenset((
    "👍", "👎", "❤", "🔥", "🥰", "👏", "😁", "🤔", "🤯", "😱", "🤬", "😢", "🎉", "🤩", "🤮",
    "💩", "🙏", "👌", "🕊", "🤡", "🥱", "🥴", "😍", "🐳", "❤\u200d🔥", "🌚", "🌭", "💯", "🤣",
    "⚡", "🍌", "🏆", "💔", "🤨", "😐", "🍓", "🍾", "💋", "🖕", "😈", "😴", "😭", "🤓", "👻",
    "👨\u200d💻", "👀", "🎃", "🙈", "😇", "😨", "🤝", "✍", "🤗", "🫡", "🎅", "🎄", "☃", "💅",
    "🤪", "🗿", "🆒", "💘", "🙉", "🦄", "😘", "💊", "🙊", "😎", "👾", "🤷\u200d♂", "🤷",
    "🤷\u200d♀", "😡",
))  # fmt: skip
"""Every emoji that the real one takes of a bot, without variation selectors."""


class TelegramReactions:
    """The reactions of the bot, by chat and message; `messages` are those that can get one."""

    def __init__(self) -> None:
        self.given: dict[tuple[int, int], str] = {}
        self.messages: set[tuple[int, int]] = set()
        self.refused_in: set[int] = set()

    def set(self, parameters: Mapping[str, Any]) -> str:
        """Do what `setMessageReaction` asks for; returns why it is refused, "" if it is not."""
        place = (parameters.get("chat_id"), parameters.get("message_id"))
        chat, number = place
        if not isinstance(chat, int) or not isinstance(number, int) or (chat, number) not in self.messages:
            return "Bad Request: message to react not found"
        wanted = parameters.get("reaction") or []
        if chat in self.refused_in or len(wanted) > 1 or any(one.get("emoji") not in ALLOWED for one in wanted):
            return "Bad Request: REACTION_INVALID"
        self.given.pop((chat, number), None)
        if wanted:
            self.given[chat, number] = str(wanted[0]["emoji"])
        return ""
