"""Models: which one a config means, and whether it really answers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

from keepsaid.adapters.models.choose import Found, LazyChat, OfflineResponder, chosen, found, served
from keepsaid.adapters.system.clock import SystemClock
from keepsaid.config import Config
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.turn import NO_MODEL
from keepsaid.errors import ConfigError, ModelMalformed
from keepsaid.ports.model import Loadable, Model, ModelRequest, at_once

_TRIAL_S_MAX = 30.0
"""Seconds a model may take to prove that it answers."""


def model_of(config: Config, closing: AsyncExitStack) -> Model:
    """The model that answers; `closing` closes its client."""
    name = chosen(config.models)
    if name == NO_MODEL:
        return OfflineResponder()
    chat = LazyChat(name, config.models)
    closing.push_async_callback(chat.close)
    return chat


def loading_of(model: Model) -> Callable[[], Awaitable[None]]:
    """Return what loads a model before its first call."""
    return model.load if isinstance(model, Loadable) else at_once


def models_at_hand(config: Config) -> list[Found]:
    """Models that could be used, best first, and how each was found; a local Ollama is asked what it has."""
    served_here = served(os.environ)
    others = [one for one in found(config.models, os.environ) if not (served_here and one.name.startswith("ollama/"))]
    return [*others, *served_here]


def model_named(config: Config) -> str:
    """The model a config means: `provider/name`, or `none`; raises ConfigError for one that means nothing."""
    return chosen(config.models)


async def try_model(config: Config, name: str) -> float:
    """Seconds until a real reply of a model was there; raises ModelError, or ConfigError for no model's name."""
    models, clock = config.models, SystemClock()
    named = chosen(models.model_copy(update={"chat": name}))
    if named == NO_MODEL:
        raise ConfigError(f"models.chat {name!r} names no model to try: no key and no address is at hand")
    chat = LazyChat(named, models)
    prompt = Prompt("You are being tested.", (), "", "Reply with one word: ready")
    request = ModelRequest(prompt, tokens_max=models.tokens_max, limit_s=min(models.timeout_s, _TRIAL_S_MAX))
    started = clock.monotonic_ms()
    try:
        answer = await chat.answer(request, lambda _: None)
    finally:
        await chat.close()
    if not answer.text.strip():
        raise ModelMalformed(f"{name} answered with nothing")
    return (clock.monotonic_ms() - started) / 1_000
