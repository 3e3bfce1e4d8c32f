"""Channels: every enabled one, made from its settings, and the media whose raw messages can be read."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Container, Mapping

from keepsaid.adapters.channels import github, pull
from keepsaid.adapters.channels.media import discord, nostr, slack, telegram
from keepsaid.config import Config
from keepsaid.domain.message import IgnoredUpdate, Inbound, MediaMessage
from keepsaid.ports.channel import Channel, Hook

MEDIA: Mapping[str, Callable[[Mapping[str, object]], MediaMessage | IgnoredUpdate]] = {
    "telegram": telegram.read,
    "discord": discord.read,
    "nostr": nostr.read,
    "slack": slack.read,
}
"""Every medium whose bots can hand over what they were sent."""


_SAMPLE = "sample"
"""Secret and delivery of a webhook that is only tried."""


def channels_of(config: Config, names: Container[str]) -> tuple[dict[str, Channel], dict[str, Hook]]:
    """The enabled ones among some channels, by name, and those of them that others call."""
    channels: dict[str, Channel] = {}
    hooks: dict[str, Hook] = {}
    for name, one in config.channels.items():
        if not one.enabled or name not in names:
            continue
        if name == "github":
            secret = one.secret.get_secret_value() if one.secret else ""
            channels[name] = hooks[name] = github.GitHubHook(secret, priority=one.priority)
        elif one.reply_hosts:
            from keepsaid.adapters.channels.push import PushChannel  # noqa: PLC0415 - its client costs a start 60 ms

            channels[name] = PushChannel(name, one.reply_hosts)
        else:
            channels[name] = pull.PullChannel(name)
    return channels, hooks


def channels_without_resend(config: Config) -> frozenset[str]:
    """Return the channels where a reply that may have arrived is not sent again."""
    return frozenset(name for name, one in config.channels.items() if one.on_unknown_delivery == "dead_letter")


def url_refused(url: str, hosts: tuple[str, ...]) -> str | None:
    """Why a reply must not be pushed to `url`; None when it may."""
    return pull.allowed(url, hosts)


def github_sample(config: Config, event: str, body: bytes) -> Inbound | None:
    """The message that a raw GitHub webhook would be, signed here; None for a ping. Raises InputError."""
    hook = github.GitHubHook(_SAMPLE, priority=config.channels["github"].priority)
    signature = hmac.digest(_SAMPLE.encode(), body, "sha256").hex()
    headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-event": event, "x-github-delivery": _SAMPLE}
    return hook.read(headers, body)


async def close_channels(channels: Mapping[str, Channel]) -> None:
    for channel in channels.values():
        await channel.close()
