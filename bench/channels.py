"""Channels: what idle ones cost a start and in memory, and how soon a cold restart settles what waits on both sides."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from pydantic import SecretStr

from bench.servers import keepsaid_serving
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.discord import DiscordServer
from keepsaid.testing.providers.email_imap import ImapServer
from keepsaid.testing.providers.email_smtp import PASSWORD
from keepsaid.testing.providers.email_smtp import USER as ADDRESS
from keepsaid.testing.providers.matrix import TOKEN as MATRIX_TOKEN
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.mischief import Mischief, harmless
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import secret_of
from keepsaid.testing.providers.slack import APP_TOKEN, BOT_TOKEN, SlackServer
from keepsaid.testing.providers.telegram import TelegramServer

_IDLE_S = 3.0
_ANSWERED, _SAID, _CHATS = 100, 500, 10
_SERVE = """
import runpy, sys
sys.modules |= dict.fromkeys(("h2", "python_socks"))
sys.argv = sys.argv[1:]
runpy.run_module("keepsaid", run_name="__main__", alter_sys=True)
"""
"""A server that does not find packages which only tests install: libraries of channels load them where they are."""

_FIRST = 10_000
"""The first of the chats whose answers wait for the restart."""


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Medians of pairs: a start without channels and one with those that are set; then the restart."""
    return asyncio.run(_measured(folder, max(3, int(7 * scale))))


async def _measured(folder: Path, runs: int) -> dict[str, float]:
    async with (
        TelegramServer() as telegram,
        DiscordServer() as discord,
        SlackServer() as slack,
        NostrRelayServer() as nostr,
        MatrixServer() as matrix,
        ImapServer() as imap,
    ):
        channels = {
            "telegram": {"token": telegram.token, "api_url": telegram.url},
            "discord": {"token": discord.token, "api_url": discord.api_url},
            "slack": {"bot_token": BOT_TOKEN, "app_token": APP_TOKEN, "api_url": f"{slack.url}/api"},
            "nostr": {"secret_key": secret_of("agent"), "relays": [nostr.url], "lookup_relays": []},
            "matrix": {"token": MATRIX_TOKEN, "homeserver": matrix.url},
            "email": {
                "address": ADDRESS,
                "password": PASSWORD,
                "imap_host": "127.0.0.1",
                "imap_port": imap.port,
                "smtp_host": "127.0.0.1",
                "tls": False,
            },
        }
        bare, with_channels = list[tuple[float, float]](), list[tuple[float, float]]()
        for run in range(runs + 1):
            for made, settings in ((bare, {}), (with_channels, channels)):
                figures = await asyncio.to_thread(_started, folder / f"idle-{len(settings)}", settings)
                if run:
                    made.append(figures)
    settled = await _settled_s(folder / "restart")
    (start, memory), (start_with, memory_with) = (
        tuple(statistics.median(column) for column in zip(*rows, strict=True)) for rows in (bare, with_channels)
    )
    return {
        "channels": 6.0,
        "start_ms": start,
        "more_start_ms": start_with - start,
        "memory_mb": memory,
        "more_memory_mb": memory_with - memory,
        "restart_settled_s": settled,
    }


def _started(home: Path, settings: Mapping[str, object]) -> tuple[float, float]:
    """Milliseconds until a server answers, and the megabytes that it holds after a while without work.

    The settings stand in the config file, where `keepsaid channel add` writes them. To read variables of the
    environment instead loads a library for any of them, with channels or without.
    """
    (home / "config").mkdir(parents=True, exist_ok=True)
    (home / "config" / "config.yaml").write_text(json.dumps({"server": {"port": 0}, **settings}), "utf-8")
    begun = time.perf_counter()
    command = [sys.executable, "-c", _SERVE, "keepsaid", "serve", "--port", "0"]
    with keepsaid_serving(command, home) as server:
        ready_ms = (time.perf_counter() - begun) * 1_000
        time.sleep(_IDLE_S)
        pages = int(Path(f"/proc/{server.pid}/statm").read_text("ascii").split()[1])
        return ready_ms, pages * os.sysconf("SC_PAGE_SIZE") / 1_000_000


async def _settled_s(folder: Path) -> float:
    """Seconds from a start beside a provider that is back until all that waited is taken in there, and sent.

    A hundred answers wait here, each in a chat of its own, and five hundred messages wait there.
    """
    async with TelegramServer() as telegram, ModelServer(Script(default=Say("yes"))) as model:
        settings = {
            "models": {"chat": "openai/scripted", "base_url": model.url, "api_key": SecretStr("k")},
            "telegram": {"token": telegram.token, "api_url": telegram.url, "drafts": False},
            "channels": {"telegram": {"access": "anyone", "window_ms": 0}},
        }
        home = Home.at(folder)
        config, _ = load(home.config_file, settings)
        telegram.mischief = lambda method, _number: Mischief.DROP if method == "sendMessage" else Mischief.ACCEPT
        async with opened(home, config) as instance:
            await instance.start()
            for chat in range(_FIRST, _FIRST + _ANSWERED):
                telegram.say("are you there?", sender=chat, chat=chat)
            for chat in range(_FIRST, _FIRST + _ANSWERED):
                while not await instance.operations.unseen("telegram", f"telegram:chat:{chat}"):
                    await telegram.wait_for(lambda: True)
        telegram.mischief = harmless
        for number in range(_SAID):
            telegram.say(f"and {number}", sender=1 + number % _CHATS, chat=1 + number % _CHATS)
        begun = time.perf_counter()
        async with opened(home, config) as instance:
            await instance.start()
            await telegram.wait_for(lambda: telegram.waiting == 0 and _answered(telegram) == _ANSWERED)
            return time.perf_counter() - begun


def _answered(telegram: TelegramServer) -> int:
    return len({one.chat for one in telegram.sent if one.chat >= _FIRST})
