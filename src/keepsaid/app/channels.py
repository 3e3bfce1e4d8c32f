"""Channels: every enabled one, made from its settings."""

from __future__ import annotations

from keepsaid.adapters.channels.github import GitHubHook
from keepsaid.adapters.channels.web import PullChannel, PushChannel, allowed
from keepsaid.config import Config
from keepsaid.ports.channel import Channel, Hook


def channels_of(config: Config) -> tuple[dict[str, Channel], dict[str, Hook]]:
    """Every enabled channel by name, and those that others call."""

    channels: dict[str, Channel] = {}
    hooks: dict[str, Hook] = {}
    for name, one in config.channels.items():
        if not one.enabled:
            continue
        if name == "github":
            secret = one.secret.get_secret_value() if one.secret else ""
            channels[name] = hooks[name] = GitHubHook(secret, priority=one.priority)
        elif one.reply_hosts:
            channels[name] = PushChannel(name, one.reply_hosts)
        else:
            channels[name] = PullChannel(name)
    return channels, hooks


def url_refused(url: str, hosts: tuple[str, ...]) -> str | None:
    """Why a reply must not be pushed to `url`; None when it may."""
    return allowed(url, hosts)
