"""Telegram: from a message at the scripted Bot API to the first draft of its answer there, beyond window and model."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from pydantic import SecretStr

from bench.disk import percentile
from keepsaid.app.opening import opened
from keepsaid.config import Home, load
from keepsaid.testing.model_script import Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.providers.telegram import TelegramServer

MESSAGES = 200
_WARM_UP = 10
_REST_S = 0.3
"""How long the model takes for the rest of its answer, so that the draft is seen before the message."""


def measure(folder: Path, scale: float) -> dict[str, float]:
    """Milliseconds to the first draft, and to the message; of the latter the model takes 300."""
    return asyncio.run(_measured(folder, max(_WARM_UP, int(MESSAGES * scale))))


async def _measured(folder: Path, count: int) -> dict[str, float]:
    script = Script(default=Say("An answer that comes in pieces, as answers of models do.", rest_after_s=_REST_S))
    async with TelegramServer() as telegram, ModelServer(script) as model:
        settings = {
            "models": {"chat": "openai/scripted", "base_url": model.url, "api_key": SecretStr("k")},
            "telegram": {"token": telegram.token, "api_url": telegram.url},
            "channels": {"telegram": {"access": "anyone", "window_ms": 0}},
        }
        config, _ = load((home := Home.at(folder)).config_file, settings)
        drafts, messages = list[float](), list[float]()
        async with opened(home, config) as instance:
            await instance.start()
            for number in range(_WARM_UP + count):
                drafted, sent = await _one(telegram, number)
                if number >= _WARM_UP:
                    drafts.append(drafted)
                    messages.append(sent)
    return {
        "messages": float(count),
        "draft_ms_p50": percentile(sorted(drafts), 50),
        "draft_ms_p95": percentile(sorted(drafts), 95),
        "message_ms_p50": percentile(sorted(messages), 50),
        "message_ms_p95": percentile(sorted(messages), 95),
    }


async def _one(telegram: TelegramServer, number: int) -> tuple[float, float]:
    """Say something in a chat of its own; milliseconds until its first draft, and until the message."""
    chat = 1_000 + number
    begun = time.perf_counter()
    telegram.say("And what do you say to that?", sender=chat, chat=chat)
    await telegram.wait_for(lambda: any(one["chat_id"] == chat for one in telegram.drafts))
    drafted = time.perf_counter()
    await telegram.wait_for(lambda: any(one.chat == chat for one in telegram.sent))
    return (drafted - begun) * 1_000, (time.perf_counter() - begun) * 1_000
