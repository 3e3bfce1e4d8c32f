"""Models that a config means, and what uses them: compaction, bulletins, the budget of a prompt."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AsyncExitStack

from keepsaid.adapters.models import choose
from keepsaid.adapters.models.memory_calls import ModelEditor, ModelSummariser
from keepsaid.adapters.system.machine import SystemClock
from keepsaid.app.embedders import local_model, wants_local
from keepsaid.config import Config, Home
from keepsaid.domain import bulletin, turn
from keepsaid.domain.prompt import Prompt
from keepsaid.engine.caretakers import Compactor
from keepsaid.errors import ConfigError, InputError, ModelMalformed
from keepsaid.memory import injection, summaries
from keepsaid.pipeline.prompt import assemble, guard
from keepsaid.ports.memory_store import Memories
from keepsaid.ports.model import Model, ModelRequest
from keepsaid.ports.runtime import Clock, Offload, Redactor
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.ports.store_views import ContextView, ConversationLanes
from keepsaid.text.normal import without_passwords
from keepsaid.values import frozen


def budget_of(config: Config) -> assemble.PromptBudget:
    """What the layers of a prompt may cost, and their order."""
    context = config.context
    return assemble.PromptBudget(
        recent_records=context.recent_messages,
        recent_tokens=context.recent_tokens,
        identity_chars=context.identity_chars,
        skills_chars=context.skills_chars,
        bulletin_chars=config.bulletin.chars,
        summary_chars=context.summary_chars,
        session_summary_chars=context.session_summary_chars,
        extensions_chars=context.extensions_chars,
        quoted_chars=context.quoted_chars,
        order=context.order,
    )


TRIAL = "Reply with one word: ready"
"""The message that tests whether a model replies."""

_TRIAL_S_MAX = 30.0
"""Seconds a model may take to prove that it answers."""


def model_of(config: Config, closing: AsyncExitStack, instrument: Callable[[], object] | None = None) -> Model:
    """The model that answers; `closing` closes its client, `instrument` makes the settings of its traces."""
    name = choose.chosen(config.models)
    if name == turn.NO_MODEL:
        return choose.OfflineResponder()
    chat = choose.LazyChat(name, config.models, instrument)
    closing.push_async_callback(chat.close)
    return chat


def model_of_agent(agent: object) -> Model:
    """A model that calls a function or an agent of pydantic-ai. Raises InputError for anything else."""
    if isinstance(agent, type):
        raise InputError(f"agent must be an object or a function, not the class {agent.__name__}")
    if callable(getattr(agent, "run", None)) and hasattr(agent, "name"):
        from pydantic_ai.agent import AbstractAgent  # noqa: PLC0415 - half a second, which whoever made it has spent

        from keepsaid.adapters.models.provider import AgentChat  # noqa: PLC0415

        if isinstance(agent, AbstractAgent):
            return AgentChat(agent)
    if callable(agent):
        return choose.FunctionModel(agent)
    raise InputError(f"agent must be a function or an agent of pydantic-ai, not {type(agent).__name__}")


def model_named(config: Config) -> str:
    """The model a config means: `provider/name`, or `none`; raises ConfigError for one that means nothing."""
    return choose.chosen(config.models)


async def try_model(config: Config, name: str) -> float:
    """Seconds until a real reply of a model was there; raises ModelError, or ConfigError for no model's name."""
    models, clock = config.models, SystemClock()
    named = choose.chosen(models.model_copy(update={"chat": name}))
    if named == turn.NO_MODEL:
        raise ConfigError(f"models.chat {name!r} names no model to try: no key and no address is set")
    chat = choose.LazyChat(named, models)
    prompt = Prompt("You are being tested.", (), "", TRIAL)
    request = ModelRequest(prompt, tokens_max=models.tokens_max, limit_s=min(models.timeout_s, _TRIAL_S_MAX))
    started = clock.monotonic_ms()
    try:
        answer = await chat.answer(request, lambda _: None)
    finally:
        await chat.close()
    if not answer.text.strip():
        raise ModelMalformed(f"{name} answered with nothing")
    return (clock.monotonic_ms() - started) / 1_000


@frozen
class ConfiguredModel:
    """A model as it is configured: what it is used for, its name or `none`, its state, and where it is.

    `megabytes` is the size of a model that runs in this process, and `is_ready` whether its files are there.
    """

    use: str
    name: str
    state: str = ""
    where: str = ""
    megabytes: int | None = None
    is_ready: bool = True


def configured_models(home: Home, config: Config) -> list[ConfiguredModel]:
    """Return the chat model, what extracts memories, and the embedder. Raises ConfigError for a name that is wrong."""
    chat = model_named(config)
    extractor = config.collection.extractor
    if extractor == "auto":
        extractor = "rules" if chat == turn.NO_MODEL else chat
    where, state = choose.place_of(chat, config.models, os.environ)
    return [ConfiguredModel("chat", chat, state, where), ConfiguredModel("memory", extractor), _embedder(home, config)]


def _embedder(home: Home, config: Config) -> ConfiguredModel:
    memory = config.memory
    if wants_local(config):
        name, folder, megabytes, is_there = local_model(home, config)
        state = "ready" if is_there else "not downloaded"
        return ConfiguredModel("embedder", name, f"{state}, {megabytes} MB", str(folder), megabytes, is_there)
    if memory.embedder == "endpoint":
        state = "key in the config" if memory.embedder_key else "without a key"
        return ConfiguredModel("embedder", memory.embedder_model, state, without_passwords(memory.embedder_url))
    return ConfiguredModel("embedder", memory.embedder)


def compaction_of(
    config: Config, store: Store, model: Model, clock: Clock, reading: tuple[Redactor, Offload]
) -> summaries.Compaction:
    """What summarises one lane, by the chat model or, where none is set, word for word.

    `reading` is the redactor, and what runs work over long texts.
    """
    settings = config.compaction
    redactor, offload = reading
    summariser = summaries.ExtractiveSummariser(offload) if model.name == turn.NO_MODEL else ModelSummariser(model)
    limits = summaries.Summaries(settings.summary_tokens, settings.timeout_s, int(settings.retry_s * 1000))
    return summaries.Compaction(store, summariser, clock, redactor.redacted, settings.terms(), limits, offload)


def copier_of(config: Config, store: Store, memories: Memories, clock: Clock) -> summaries.SummaryCopier:
    return summaries.SummaryCopier(store, memories, clock, _whole(config))


def overview_of(config: Config, store: ContextView) -> ConversationLanes | None:
    """The source of a conversation's other lanes, where the config includes them in the prompt."""
    return summaries.OtherLanes(store, _whole(config)) if config.compaction.session_in_prompt else None


def _whole(config: Config) -> summaries.WholeTerms:
    terms = config.compaction
    return summaries.WholeTerms(terms.session_messages, terms.session_tokens, terms.session_keep, terms.summary_tokens)


def guard_of(config: Config, store: Store, clock: Clock, compactor: Compactor) -> guard.Guard:
    """What watches prompts, and names the lanes that are due."""
    settings = config.compaction
    marks = settings.background, settings.aggressive, settings.emergency
    windows = guard.Windows(settings.window_tokens, settings.windows, *marks)
    return guard.Guard(store, clock, compactor.name, windows, settings.terms())


def briefings_of(config: Config, memories: MemoryStore, model: Model, clock: Clock) -> injection.Briefings | None:
    settings = config.bulletin
    if not settings.enabled:
        return None
    editor = ModelEditor(model) if settings.model and model.name != turn.NO_MODEL else None
    every_ms = int(settings.every_min * bulletin.MINUTE_MS)
    terms = injection.BulletinTerms(every_ms, settings.words, settings.timeout_s, config.memory.deadline_ms)
    return injection.Briefings(memories.bulletins, clock, editor, terms)
