"""Settings of channels: who may talk there, how messages are collected, and where replies may go."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator

from keepsaid.config import conversations
from keepsaid.config.section import ConfigSection
from keepsaid.domain import batch, message, route
from keepsaid.domain.busy import BusyPolicy
from keepsaid.domain.pairing import Access, AccessRule
from keepsaid.domain.reply import GITHUB_ISSUE


class OwnerIdentity(ConfigSection):
    """One identity of the owner."""

    channel: str
    """The channel it is on; not github, where everybody is external."""
    account: str = "default"
    """The login or bot there."""
    sender: str
    """The sender id, as the channel gives it."""

    @field_validator("channel")
    @classmethod
    def validate_channel(cls, channel: str) -> str:
        """Refuse a channel whose messages would never count as the owner's."""
        if channel in UNOWNED:
            raise ValueError(f"nobody can be the owner there: {UNOWNED[channel]}")
        return channel


class ChannelConfig(ConfigSection):
    """One channel."""

    enabled: bool = True
    """Whether it is open."""
    priority: int = Field(10, ge=0, le=1_000)
    """10 people, 50 webhooks, 100 schedules; lower is served first."""
    window_ms: int | None = Field(None, ge=0, le=600_000)
    """Instead of buffer.window_ms."""
    quiet_ms: int | None = Field(None, ge=0, le=600_000)
    """Instead of buffer.quiet_ms."""
    max_wait_ms: int | None = Field(None, ge=0, le=3_600_000)
    """Instead of buffer.max_wait_ms."""
    trust: message.Trust = message.Trust.KNOWN
    """What its senders are trusted as: owner, known or external. GitHub's are external whatever it says."""
    unmatched: conversations.Unmatched | None = None
    """Instead of routes.default."""
    answer: Literal["always", "addressed"] | None = None
    """What of a group is answered. addressed: messages that name the agent (routes.names), answer it, or are commands;
    the rest is kept and remembered. Direct chats are always answered. By default addressed for channels called
    telegram, discord, nostr, matrix, slack, signal, whatsapp or irc, and always for others."""
    access: Literal["owner", "paired", "listed", "anyone"] | None = None
    """Who is answered in direct chats besides you: owner (nobody), listed (those in allow, and whom you let in), paired
    (the same, and strangers are sent a code: `keepsaid channel approve CODE`) or anyone. By default paired for channels
    that listen by a token, listed for email, anyone for others. What others say is kept, in no prompt and no memory."""
    group_access: Literal["owner", "listed", "anyone"] | None = None
    """The same in groups: listed answers everybody in the groups that allow names. By default as access; listed for
    paired."""
    allow: tuple[str, ...] = ()
    """Ids of people, for direct chats, and of groups, as the medium gives them; names are not unique there."""
    bots: bool = False
    """Whether messages of other bots are taken in. One that wrote 20 within a minute in a conversation is not answered
    there for a minute."""
    edits: route.Edits | None = None
    """What an edit does that comes after its message was answered or dropped: note (it is kept and remembered),
    answer or ignore. By default note where answer is addressed by default, and answer for others."""
    feedback: bool = False
    """Whether a thumbs-down on an answer marks the memory that the answer rests on as wrong, as `/wrong` does. Only if
    the turn was shown exactly one, beside pinned ones."""
    busy: BusyPolicy = BusyPolicy.QUEUE
    """What comes while its lane is being answered: queue (answered next), steer (shown to the running turn
    between its steps) or interrupt (the turn restarts with it)."""
    stale_after_s: float = Field(3_600.0, ge=0, le=31_536_000)
    """Seconds after which a message counts as late: its answer says so, to model and person. 0 for never."""
    secret: SecretStr | None = None
    """GitHub's webhook secret; without it the hook is closed. Other channels have no use for one."""
    dedupe_content_ms: int = Field(0, ge=0, le=31_536_000_000)
    """Milliseconds in which the same payload under another delivery id is a duplicate; 0 for never. A webhook's
    signature covers its body alone, so a replay may carry any delivery id and event name."""
    reply_hosts: tuple[str, ...] = ()
    """Hosts (or host:port) that replies may be pushed to. Replies to GitHub are comments: github.token."""
    on_unknown_delivery: Literal["resend", "dead_letter"] = "resend"
    """A pushed reply that may have arrived: resend sends it again, marked as a possible duplicate; dead_letter gives
    it up."""

    @field_validator("on_unknown_delivery", mode="before")
    @classmethod
    def value_of_today(cls, value: object) -> object:
        """Read a value of the release before."""
        return {"repeat": "resend", "give_up": "dead_letter"}.get(value, value) if isinstance(value, str) else value

    def answers_only_addressed(self, name: str) -> bool:
        """Whether what nobody addressed to the agent gets no answer in groups of the channel with this name."""
        return self.answer == "addressed" if self.answer is not None else name in _WITH_GROUPS

    def heeds_edits(self, name: str) -> route.Edits:
        """What a late edit does on the channel with this name."""
        return self.edits or (route.Edits.NOTE if name in _WITH_GROUPS else route.Edits.ANSWER)

    def window(self, usual: batch.Window) -> batch.Window:
        """The channel's window, where it differs from the usual one."""
        window_ms = usual.window_ms if self.window_ms is None else self.window_ms
        quiet_ms = usual.quiet_ms if self.quiet_ms is None else self.quiet_ms
        wait_ms = usual.wait_ms_max if self.max_wait_ms is None else self.max_wait_ms
        return batch.Window(window_ms, quiet_ms, wait_ms)

    def access_rule(self, otherwise: Access) -> AccessRule | None:
        """Who may talk on the channel, `otherwise` where nothing is set; None where everybody may."""
        direct = Access(self.access or otherwise)
        usual = Access.LISTED if direct is Access.PAIRED else direct
        group = Access(self.group_access) if self.group_access else usual
        if direct is group is Access.ANYONE:
            return None
        return AccessRule(direct, group, frozenset(self.allow))


LISTENING = ("telegram", "discord", "slack", "nostr", "matrix", "email")
"""The built-in channels that listen by themselves, once they have a token."""


def usual_access(name: str, listening: Collection[str]) -> Access:
    """Who may talk on a channel in direct chats where nothing is set. Mail with a code would go to forged addresses."""
    if name not in listening:
        return Access.ANYONE
    return Access.LISTED if name == "email" else Access.PAIRED


_WITH_GROUPS = frozenset(["telegram", "discord", "nostr", "matrix", "slack", "signal", "whatsapp", "irc"])
"""Media on which groups talk among themselves."""

CHANNELS: dict[str, dict[str, Any]] = {
    "terminal": {"priority": 10, "window_ms": 0, "trust": "owner"},
    "http": {"priority": 10, "trust": "known"},
    "library": {"priority": 10, "trust": "known"},
    "github": {
        "priority": 50,
        "window_ms": 3_000,
        "quiet_ms": 3_000,
        "max_wait_ms": 15_000,
        "trust": "external",
        "unmatched": "drop",
        "stale_after_s": 86_400.0,
        "dedupe_content_ms": 604_800_000,
    },
}
"""The built-in channels with what differs from the defaults."""

_ELSEWHERE = {"secret": "only channels.github has a use for it"}
CLAIMED = frozenset(["http"])
"""Channels where whoever may post names the sender: the owner is known there by the operator's token alone."""

UNOWNED = {"github": "what comes from there is external, whoever wrote it"}
"""Channels whose messages never count as the owner's, and why."""

_AT_GITHUB = {
    "trust": UNOWNED["github"],
    "reply_hosts": "replies are sent as comments (github.token)",
    "on_unknown_delivery": "what may have been posted is looked for there",
}


NOT_AT_GITHUB = route.Answerable("", "github.token is not set, so nothing can be sent there")
AT_GITHUB_ONLY = route.Answerable(GITHUB_ISSUE, "only issues and pull requests can be answered")


def ignored(channel: str) -> Mapping[str, str]:
    """The settings that a channel has no use for, each with the reason."""
    return _AT_GITHUB if channel == "github" else _ELSEWHERE


def with_builtin(value: object) -> object:
    if not isinstance(value, dict):
        return value
    merged = {name: dict(defaults) for name, defaults in CHANNELS.items()}
    for name, given in value.items():
        # A value that is not a mapping stays as it is, to be refused under its own key.
        merged[name] = {**merged.get(name, {}), **(given or {})} if isinstance(given, dict | None) else given
    return merged
