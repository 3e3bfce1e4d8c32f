"""The history of a scripted Slack: messages by channel, read in pages, the newest first, as Slack pages them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_PAGE_MAX = 200
_EMOJI = frozenset((
    "+1", "-1", "heart", "fire", "clap", "grin", "smile", "joy", "thinking_face", "scream", "cry", "sob",
    "tada", "pray", "ok_hand", "heart_eyes", "100", "zap", "eyes", "wave", "handshake", "hugging_face",
    "sunglasses", "shrug", "rage", "white_check_mark", "heavy_check_mark", "x", "warning", "question", "star",
    "sparkles", "rocket", "bulb", "hourglass_flowing_sand", "raised_hands", "muscle", "birthday", "lock",
    "key", "bug", "thumbsup", "thumbsdown",
))  # fmt: skip
"""Names of emoji that the scripted workspace has."""

_EMOJI_MAX = 23
_TRUE = ("true", "1")


class SlackHistory:
    """The messages of all channels, and the `reactions` of the bot, by channel and message.

    `now_ms` is the time of a new message, milliseconds UTC; `page_max` bounds a page.
    """

    def __init__(self, bot: str, now_ms: Callable[[], int]) -> None:
        self.page_max = _PAGE_MAX
        self.reactions: dict[tuple[str, str], list[str]] = {}
        self._bot = bot
        self._now_ms = now_ms
        self._channels: dict[str, list[dict[str, Any]]] = {}
        self._number = 0

    def add(self, channel: str, message: Mapping[str, Any], thread: str | None) -> dict[str, Any]:
        """Keep a message of a channel, or of a thread in it; returns it with its `ts`."""
        self._number += 1
        made: dict[str, Any] = {**message, "ts": f"{self._now_ms() // 1_000}.{self._number:06d}"}
        messages = self._channels.setdefault(channel, [])
        if thread is not None:
            root = next((one for one in messages if one["ts"] == thread), None)
            made |= {"thread_ts": thread, "parent_user_id": root["user"] if root else self._bot}
            if root is not None:
                replies = int(root.get("reply_count", 0)) + 1
                root |= {"thread_ts": thread, "reply_count": replies, "latest_reply": made["ts"]}
        messages.append(made)
        return made

    def react(self, form: Mapping[str, str]) -> None:
        """The bot gives a message an emoji; raises KeyError with the error that Slack names."""
        channel, ts, name = (form.get(one, "") for one in ("channel", "timestamp", "name"))
        if channel not in self._channels:
            raise KeyError("channel_not_found")
        if all(one["ts"] != ts for one in self._channels[channel]):
            raise KeyError("message_not_found")
        base, _, tone = name.partition("::")
        if base not in _EMOJI or tone not in ("", *(f"skin-tone-{n}" for n in range(2, 7))):
            raise KeyError("invalid_name")
        given = self.reactions.setdefault((channel, ts), [])
        if name in given:
            raise KeyError("already_reacted")
        if len(given) >= _EMOJI_MAX:
            raise KeyError("too_many_reactions")
        given.append(name)

    def page(self, form: Mapping[str, str], *, is_thread: bool) -> dict[str, Any]:
        """A page of a channel, the newest first, or of a thread, the oldest first, after its root.

        Raises KeyError with the error that Slack names.
        """
        if form["channel"] not in self._channels:
            raise KeyError("channel_not_found")
        messages = self._channels[form["channel"]]
        if is_thread:
            found = self._thread(messages, form)
        else:
            found = [one for one in reversed(messages) if one.get("thread_ts") in (None, one["ts"])]
            found = [one for one in found if _is_since(one, form)]
        start, size = int(form.get("cursor", "0")), min(int(form.get("limit", "100")), self.page_max)
        shown = [_shown(one, form) for one in found[start : start + size]]
        end = start + size
        following = str(end) if end < len(found) else ""
        return {"messages": shown, "has_more": bool(following), "response_metadata": {"next_cursor": following}}

    def _thread(self, messages: list[dict[str, Any]], form: Mapping[str, str]) -> list[dict[str, Any]]:
        root = [one for one in messages if one["ts"] == form["ts"]]
        replies = [one for one in messages if one.get("thread_ts") == form["ts"] and one["ts"] != form["ts"]]
        if not root and not replies:
            raise KeyError("thread_not_found")
        return root + [one for one in replies if _is_since(one, form)]


def _is_since(message: Mapping[str, Any], form: Mapping[str, str]) -> bool:
    """Whether a message is of the time that is asked for."""
    oldest = float(form.get("oldest", "0"))
    return float(message["ts"]) >= oldest if form.get("inclusive") in _TRUE else float(message["ts"]) > oldest


def _shown(message: Mapping[str, Any], form: Mapping[str, str]) -> dict[str, Any]:
    """A message as the history shows it: with its metadata only if these are asked for."""
    hidden = () if form.get("include_all_metadata") in _TRUE else ("metadata",)
    return {name: one for name, one in message.items() if name not in hidden}
