"""The objects of the scripted Discord with all the fields that its documentation marks as always present."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

_JOINED = "2025-01-01T00:00:00.000000+00:00"
_DIRECT, _THREADS = 1, (10, 11, 12)
_NOTHING_OF_GUILD = (
    *("icon", "splash", "discovery_splash", "banner", "description", "afk_channel_id", "application_id"),
    *("system_channel_id", "rules_channel_id", "public_updates_channel_id", "vanity_url_code"),
)
_ZERO_OF_GUILD = (
    *("verification_level", "default_message_notifications", "explicit_content_filter", "mfa_level"),
    *("premium_tier", "nsfw_level", "system_channel_flags"),
)


def user_shape(number: str, name: str, shown: str | None = None, *, is_bot: bool = False) -> dict[str, Any]:
    """A user; `shown` is the name that people see, if it is not `name`."""
    user = {"id": number, "username": name, "discriminator": "0", "global_name": shown, "avatar": None}
    return user | {"public_flags": 0} | ({"bot": True} if is_bot else {})


def member_shape(user: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A member of a server; without the user, as messages have it."""
    member: dict[str, Any] = {
        "nick": None,
        "avatar": None,
        "roles": [],
        "joined_at": _JOINED,
        "deaf": False,
        "mute": False,
        "flags": 0,
    }
    return member if user is None else {"user": user, **member}


def channel_shape(told: Mapping[str, Any]) -> dict[str, Any]:
    """A channel, thread or direct conversation, filled up with what is not given."""
    if told["type"] == _DIRECT:
        return {"last_message_id": None, "flags": 0, **told}
    whole = {"last_message_id": None, "rate_limit_per_user": 0, "flags": 0}
    if told["type"] in _THREADS:
        open_thread = {"archived": False, "auto_archive_duration": 1_440, "archive_timestamp": _JOINED, "locked": False}
        counts = {"message_count": 0, "total_message_sent": 0, "member_count": 1}
        return whole | {"owner_id": "7", **counts, "thread_metadata": open_thread} | dict(told)
    return whole | {"position": 0, "permission_overwrites": [], "parent_id": None, "topic": None, "nsfw": False, **told}


def message_shape(told: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """A message that is written now (milliseconds UTC), filled up with what is not given."""
    at = datetime.fromtimestamp(now_ms / 1_000, UTC).isoformat(timespec="microseconds")
    lists: dict[str, Any] = {name: [] for name in ("mentions", "mention_roles", "attachments", "embeds", "components")}
    plain = {"type": 0, "flags": 0, "tts": False, "pinned": False, "mention_everyone": False}
    return {"timestamp": at, "edited_timestamp": None, **plain, **lists, **told}


def role_shape(number: str, name: str, bot: str = "") -> dict[str, Any]:
    """A role of a server; that of a bot is made by Discord."""
    colors = {"primary_color": 0, "secondary_color": None, "tertiary_color": None}
    role = {"id": number, "name": name, "color": 0, "colors": colors, "hoist": False, "icon": None, "flags": 0}
    role |= {"unicode_emoji": None, "position": 0, "permissions": "0", "managed": bool(bot), "mentionable": False}
    return role | ({"tags": {"bot_id": bot}} if bot else {})


def guild_shape(number: str, name: str, roles: list[dict[str, Any]]) -> dict[str, Any]:
    """A server as the REST interface shows it."""
    guild: dict[str, Any] = dict.fromkeys(_NOTHING_OF_GUILD) | dict.fromkeys(_ZERO_OF_GUILD, 0)
    guild |= {"emojis": [], "features": [], "stickers": [], "premium_progress_bar_enabled": False}
    return guild | {
        "id": number,
        "name": name,
        "owner_id": "7",
        "roles": roles,
        "afk_timeout": 300,
        "preferred_locale": "en-US",
    }


def guild_create_shape(guild: Mapping[str, Any], bot: Mapping[str, Any]) -> dict[str, Any]:
    """What GUILD_CREATE adds to a server, but for its channels and threads; of members only the bot is shown."""
    lists = ("voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds")
    added: dict[str, Any] = {one: [] for one in lists}
    added |= {"joined_at": _JOINED, "large": False, "unavailable": False, "member_count": 2}
    return {**guild, **added, "members": [member_shape(bot)]}


def application_shape(number: str, name: str, flags: int) -> dict[str, Any]:
    """The application of a bot."""
    about = {"id": number, "name": name, "icon": None, "description": "", "team": None, "flags": flags}
    owner = user_shape("7", "person7", "Person 7")
    return {**about, "bot_public": True, "bot_require_code_grant": False, "owner": owner, "verify_key": "0" * 64}


def reaction_shape(channel: Mapping[str, Any], number: str, sender: str, emoji: str, *, by_bot: bool) -> dict[str, Any]:
    """A reaction to a message of a channel, as the gateway dispatches it."""
    told = {"channel_id": channel["id"], "message_id": number, "user_id": sender, "emoji": {"id": None, "name": emoji}}
    guild = channel.get("guild_id")
    person = {"id": sender, "username": f"person{sender}", **({"bot": True} if by_bot else {})}
    return {**told, **({"guild_id": guild, "member": {"user": person}} if guild is not None else {})}
