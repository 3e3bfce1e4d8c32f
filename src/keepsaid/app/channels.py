"""What an instance uses of the outside: its channels, made from settings, and the tools of MCP servers."""

from __future__ import annotations

import asyncio
import hmac
import secrets
from collections.abc import Callable, Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.adapters.channels import github, pull
from keepsaid.adapters.channels.media import discord, nostr, slack, telegram
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.adapters.tools.mcp import ACCEPTED_FILE, SERVERS_FILE, WAITING_FILE, McpServer, ServerTroubles, ToolPins
from keepsaid.config import Config, Home
from keepsaid.config.home import write_file
from keepsaid.domain import message, trust
from keepsaid.domain.reply import SendLimits
from keepsaid.engine.supervisor import ServiceLoop
from keepsaid.errors import ConfigError, HomeError, ToolError
from keepsaid.ports import model, runtime
from keepsaid.ports.channel import Channel, Hook
from keepsaid.values import frozen

if TYPE_CHECKING:
    from keepsaid.adapters.channels.github_api import GitHubApi
    from keepsaid.adapters.channels.github_sweep import RedeliverySweep

MEDIA: Mapping[str, Callable[[Mapping[str, object]], message.MediaMessage | message.IgnoredUpdate]] = {
    "telegram": telegram.read,
    "discord": discord.read,
    "nostr": nostr.read,
    "slack": slack.read,
}
"""Every medium whose bots can hand over what they were sent."""


SWEEP_FILE = "github-sweep.json"
"""In the state directory of a home how far failed deliveries were looked for."""

_SAMPLE = "sample"
"""Secret and delivery of a webhook that is only tried."""


def channels_of(
    config: Config, names: Container[str], clock: runtime.Clock | None = None
) -> tuple[dict[str, Channel], dict[str, Hook]]:
    """The enabled ones among some channels, by name, and those of them that others call."""
    channels: dict[str, Channel] = {}
    hooks: dict[str, Hook] = {}
    for name, one in config.channels.items():
        if not one.enabled or name not in names:
            continue
        if name == "github":
            channels[name] = hooks[name] = _github(config, clock or SystemClock())
        elif one.reply_hosts:
            from keepsaid.adapters.channels.push import PushChannel  # noqa: PLC0415 - it costs a start 60 ms

            channels[name] = PushChannel(name, one.reply_hosts)
        else:
            channels[name] = pull.PullChannel(name)
    return channels, hooks


def _github(config: Config, clock: runtime.Clock) -> github.GitHubHook:
    """The webhook of GitHub, which also posts comments where the settings have a token."""
    settings = config.channels["github"]
    secret = settings.secret.get_secret_value() if settings.secret else ""
    if config.github.token is None:
        return github.GitHubHook(secret, priority=settings.priority)
    from keepsaid.adapters.channels.github_comments import GitHubChannel  # noqa: PLC0415 - it costs a start 60 ms

    return GitHubChannel(secret, github_api_of(config), clock, settings.priority)


def github_api_of(config: Config) -> GitHubApi:
    """The API of GitHub, with the token of the settings."""
    from keepsaid.adapters.channels.github_api import GitHubApi  # noqa: PLC0415 - it costs a start 60 ms

    token = config.github.token.get_secret_value() if config.github.token else ""
    return GitHubApi(token, config.github.api_url)


def github_sweep_of(config: Config, clock: runtime.Clock, state: Path) -> RedeliverySweep | None:
    """What has failed deliveries repeated; None without a token, or without hooks in the settings."""
    settings = config.github
    if settings.token is None or not settings.hooks or not config.channels["github"].enabled:
        return None
    from keepsaid.adapters.channels.github_sweep import RedeliverySweep  # noqa: PLC0415 - it costs a start 60 ms

    return RedeliverySweep(github_api_of(config), settings.hooks, clock, state / SWEEP_FILE, settings.sweep_s)


def send_limits(config: Config) -> SendLimits:
    """When replies are given up; on some channels once one may have arrived."""
    without = (name for name, one in config.channels.items() if one.on_unknown_delivery == "dead_letter")
    return config.replies.limits(frozenset(without))


def url_refused(url: str, hosts: tuple[str, ...]) -> str | None:
    """Why a reply must not be pushed to `url`; None when it may."""
    return pull.allowed(url, hosts)


def github_sample(config: Config, event: str, body: bytes) -> message.Inbound | None:
    """The message that a raw GitHub webhook would be, signed here; None for a ping. Raises InputError."""
    hook = github.GitHubHook(_SAMPLE, priority=config.channels["github"].priority)
    signature = hmac.digest(_SAMPLE.encode(), body, "sha256").hex()
    headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-event": event, "x-github-delivery": _SAMPLE}
    return hook.read(headers, body)


async def close_channels(channels: Mapping[str, Channel]) -> None:
    for channel in channels.values():
        await channel.close()


FENCE_FILE = "fence.key"
_KEY_BYTES = 32


def fence_of(home: Home) -> trust.Fence:
    """The fence of a home, with the key in its data directory, which is made (mode 0600) if there is none.

    A file of another size is replaced: only the numbers in later prompts change. Raises HomeError.
    """
    file = home.data / FENCE_FILE
    try:
        key = file.read_bytes() if file.exists() else b""
        if len(key) != _KEY_BYTES:
            key = secrets.token_bytes(_KEY_BYTES)
            write_file(file, key)
    except OSError as error:
        what, hint = f"{file} cannot be read or written ({error.strerror})", "make its directory yours and writable"
        raise HomeError(what, safe="What is stored is untouched.", hint=hint) from error
    return trust.Fence(key)


_AGAIN_MS = 60_000


@frozen
class QueriedServer:
    """A server that was asked for its tools: each with its standing, and why it could not be asked."""

    name: str
    served: Sequence[tuple[model.Served, trust.ToolStanding]] = ()
    trouble: str = ""

    @property
    def waiting(self) -> Sequence[tuple[model.Served, trust.ToolStanding]]:
        """The tools that are allowed and wait for acceptance."""
        return [(one, each) for one, each in self.served if one.allowed and each is not trust.ToolStanding.ACCEPTED]


async def query_servers(home: Home, config: Config) -> list[QueriedServer]:
    return await asyncio.gather(*(_ask(home, server) for server in servers_of(home, config, SystemClock())))


async def query_server(home: Home, config: Config, name: str) -> QueriedServer:
    """Query one MCP server for its tools; raises ConfigError if the config names no such server."""
    if name not in config.tools.mcp:
        names = ", ".join(config.tools.mcp) or "none"
        raise ConfigError(f"tools.mcp names no server {name} (servers: {names})", hint="keepsaid ext tools ls")
    [server] = [one for one in servers_of(home, config, SystemClock()) if one.name == name]
    return await _ask(home, server)


async def _ask(home: Home, server: McpServer) -> QueriedServer:
    pins = pins_of(home)
    try:
        return QueriedServer(server.name, [(one, pins.standing(server.name, one)) for one in await server.served()])
    except ToolError as error:
        return QueriedServer(server.name, trouble=error.what)


def accept(home: Home, one: QueriedServer) -> None:
    """Accept the texts of all tools of a server that wait, as they are given. Raises HomeError."""
    home.make()
    pins_of(home).accept(one.name, [served for served, _ in one.waiting])


def accepted_before(home: Home, server: str, name: str) -> trust.Described | None:
    """The text of a tool that was accepted last; None where none was."""
    return pins_of(home).accepted(server, name)


def waiting_in(home: Home, config: Config) -> Mapping[str, Mapping[str, trust.ToolStanding]]:
    """By server, the tools that wait for acceptance, as the runtime saw them last; no server is asked."""
    return {name: tools for name, tools in pins_of(home).waiting().items() if name in config.tools.mcp}


class Toolbox:
    """The tools of every server that is there."""

    def __init__(self, sources: Sequence[model.ToolSource]) -> None:
        self.sources = sources

    def tools(self) -> tuple[model.Tool, ...]:
        """What may be used now, by name."""
        return tuple(sorted((tool for one in self.sources for tool in one.tools()), key=lambda tool: tool.name))

    def stages(self) -> Sequence[ServiceLoop]:
        """One for each server, so that one that hangs holds up nobody else."""
        return [
            ServiceLoop(f"tools of {one.name}", one.keep, asyncio.Event(), poll_ms=_AGAIN_MS, vital=False)
            for one in self.sources
        ]


def pins_of(home: Home) -> ToolPins:
    """What the owner accepted of the tools of a home."""
    return ToolPins(home.data / ACCEPTED_FILE, home.state / WAITING_FILE)


def servers_of(home: Home, config: Config, clock: runtime.Clock) -> tuple[McpServer, ...]:
    """The servers that the config names."""
    pins, troubles = pins_of(home), ServerTroubles(home.state / SERVERS_FILE)
    return tuple(McpServer(name, one, clock, pins, troubles) for name, one in config.tools.mcp.items())


def troubled_servers(home: Home, config: Config) -> Mapping[str, str]:
    """By server, why the runtime could not use it when it tried last; no server is asked."""
    return {
        name: why for name, why in ServerTroubles(home.state / SERVERS_FILE).read().items() if name in config.tools.mcp
    }
