"""Reactions of a bot of Slack: `reactions.add` with the name of an emoji, and what its refusals mean for the model.

Source: Web API, reactions.add. Slack has names for emoji, of which only the common ones are known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from keepsaid.adapters.channels.slack_api import SlackApi, SlackRefused, SlackUnreachable
from keepsaid.errors import ToolError
from keepsaid.text.emoji import plain_emoji

_DONE: Final = "already_reacted"
_NAME: Final = re.compile(r":?([a-z0-9_+'-]{1,100}(?:::skin-tone-[2-6])?):?", re.ASCII)
_TONES: Final = "\U0001f3fb\U0001f3fc\U0001f3fd\U0001f3fe\U0001f3ff"
"""Skin tones: at Slack the first has the number 2."""

_NAMES: Final[Mapping[str, str]] = {
    "👍": "+1", "👎": "-1", "❤": "heart", "🔥": "fire", "🥰": "smiling_face_with_3_hearts", "👏": "clap", "😁": "grin",
    "😀": "grinning", "😃": "smiley", "😄": "smile", "🙂": "slightly_smiling_face", "😉": "wink", "😂": "joy",
    "🤣": "rolling_on_the_floor_laughing", "🤔": "thinking_face", "🤯": "exploding_head", "😱": "scream", "😢": "cry",
    "😭": "sob", "🎉": "tada", "🤩": "star-struck", "🙏": "pray", "👌": "ok_hand", "😍": "heart_eyes", "💯": "100",
    "⚡": "zap", "🏆": "trophy", "💔": "broken_heart", "🤨": "face_with_raised_eyebrow", "😐": "neutral_face",
    "😴": "sleeping", "🤓": "nerd_face", "👻": "ghost", "👀": "eyes", "🙈": "see_no_evil", "😇": "innocent",
    "🤝": "handshake", "✍": "writing_hand", "🤗": "hugging_face", "🫡": "saluting_face", "😎": "sunglasses",
    "🤷": "shrug", "😡": "rage", "✅": "white_check_mark", "✔": "heavy_check_mark", "☑": "ballot_box_with_check",
    "❌": "x", "⚠": "warning", "❓": "question", "❗": "exclamation", "⭐": "star", "🌟": "star2", "✨": "sparkles",
    "🚀": "rocket", "💡": "bulb", "📌": "pushpin", "⏳": "hourglass_flowing_sand", "⌛": "hourglass", "👋": "wave",
    "💪": "muscle", "🙌": "raised_hands", "🫶": "heart_hands", "😊": "blush", "😅": "sweat_smile", "🎂": "birthday",
    "☕": "coffee", "📎": "paperclip", "📅": "date", "🔒": "lock", "🔑": "key", "🐛": "bug", "🌱": "seedling",
    "💙": "blue_heart", "💚": "green_heart", "💛": "yellow_heart", "💜": "purple_heart", "👉": "point_right",
}  # fmt: skip
"""Names of emoji at Slack."""

_REASONS: Final[Mapping[str, str]] = {
    "invalid_name": "Slack does not know this emoji: give the name that it has at Slack, such as :tada:",
    "message_not_found": "the message is gone",
    "bad_timestamp": "that message cannot get a reaction: it has no id of Slack",
    "not_reactable": "that message cannot get a reaction",
    "channel_not_found": "the conversation is gone, or the bot cannot see it",
    "is_archived": "the channel is archived",
    "thread_locked": "the thread is locked",
    "too_many_emoji": "the message has as many different emoji as Slack allows: use one of those",
    "too_many_reactions": "the bot has given the message as many emoji as Slack allows",
    "missing_scope": "the app may not react: its scope reactions:write is missing",
    "no_permission": "the app may not react there",
}


async def add_reaction(api: SlackApi, channel: str, ts: str, emoji: str) -> None:
    """Give a message an emoji; one that the bot has given it before counts as done. Raises ToolError."""
    try:
        await api.call("reactions.add", {"channel": channel, "timestamp": ts, "name": name_of(emoji)})
    except SlackUnreachable:
        raise ToolError("Slack did not answer; whether the message has the reaction is not known") from None
    except SlackRefused as error:
        if error.error != _DONE:
            raise ToolError(_reason(error)) from None


def name_of(emoji: str) -> str:
    """The name of an emoji at Slack, also where the name is given. Raises ToolError if it is not known here."""
    if (given := _NAME.fullmatch(emoji)) is not None:
        return given[1]
    if (name := _NAMES.get(plain_emoji(emoji))) is None:
        raise ToolError(_REASONS["invalid_name"])
    tone = next((f"::skin-tone-{_TONES.index(one) + 2}" for one in emoji if one in _TONES), "")
    return f"{name}{tone}"


def _reason(error: SlackRefused) -> str:
    """Why Slack refused a reaction."""
    if (known := _REASONS.get(error.error)) is not None:
        return known
    if error.is_throttled:
        return "Slack wants fewer requests now; nothing was done"
    if error.is_bad_token:
        return "Slack does not accept slack.bot_token; nothing was done"
    if error.is_in_doubt:
        return "Slack failed; whether the message has the reaction is not known"
    return "Slack refuses the reaction"
