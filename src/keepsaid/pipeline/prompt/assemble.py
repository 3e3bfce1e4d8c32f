"""Assembles the prompt of one turn, layer by layer: the same inputs give the same bytes (design: section 4.2)."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from keepsaid.domain.context import TAIL_MAX
from keepsaid.domain.effects import Measured
from keepsaid.domain.prompt import Layer, MemoryPlacement, Prompt
from keepsaid.domain.scene import PromptInputs
from keepsaid.domain.trust import UNKEYED, Fence
from keepsaid.domain.turn import NO_MODEL, Outcome
from keepsaid.pipeline.prompt import layers
from keepsaid.pipeline.prompt.trace import offered
from keepsaid.ports.model import Tool
from keepsaid.text.tokens import estimate_tokens

T = TypeVar("T")


class PreparedPart(Generic[T]):
    """One part of a turn's preparation, such as memory or skills."""

    def __init__(self, name: str, task: asyncio.Task[T], otherwise: T) -> None:
        self.name = name
        self.task = task
        self._otherwise = otherwise

    @property
    def value(self) -> T:
        """The result of the part; its default if the part was not ready in time."""
        return self._otherwise if self.task.cancelled() or not self.task.done() else self.task.result()


class Preparation:
    """Starts the parts of one turn's preparation and waits for all of them, up to a time limit."""

    def __init__(self) -> None:
        self._parts: list[PreparedPart[Any]] = []

    def begin(self, name: str, work: Coroutine[Any, Any, T], otherwise: T) -> PreparedPart[T]:
        """Start a part, which is `otherwise` if it does not end in time."""
        part = PreparedPart(name, asyncio.ensure_future(work), otherwise)
        self._parts.append(part)
        return part

    async def finish(self, limit_s: float) -> tuple[str, ...]:
        """Wait until every part has ended, for `limit_s` seconds at most; returns a note for each part left out.

        Raises what a part raised. A part that is late is cancelled; nobody waits for that.
        """
        tasks = [part.task for part in self._parts]
        if not tasks:
            return ()
        try:
            done, _ = await asyncio.wait(tasks, timeout=limit_s, return_when=asyncio.FIRST_EXCEPTION)
            for task in done:
                task.result()
            return tuple(f"{part.name} took longer than {limit_s:g} s" for part in self._parts if not part.task.done())
        finally:
            for task in tasks:
                task.add_done_callback(_retrieve)
                task.cancel()


def _retrieve(task: asyncio.Task[Any]) -> None:
    """Take the error of a part that was given up, so that asyncio does not report it."""
    if not task.cancelled():
        task.exception()


_OPTIONAL = (
    "identity",
    "skills",
    "workers",
    "bulletin",
    "summary",
    "session_summary",
    "status",
    "extensions",
    "quoted",
)
"""Layers that are not worth a word while they are empty."""


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """What the layers may cost: records and estimated tokens of the lane's tail, characters of the others."""

    recent_records: int = TAIL_MAX
    recent_tokens: int = 100_000
    identity_chars: int = 20_000
    skills_chars: int = 8_000
    workers_chars: int = 4_000
    bulletin_chars: int = 8_000
    summary_chars: int = 16_000
    session_summary_chars: int = 8_000
    status_chars: int = 4_000
    extensions_chars: int = 8_000
    quoted_chars: int = 4_000
    order: MemoryPlacement = MemoryPlacement.STABLE


def assemble(scene: PromptInputs, budget: PromptBudget, fence: Fence = UNKEYED) -> Prompt:
    """The prompt: what stands, the lane's summary and records, what holds for this turn, the new messages."""
    standing = standing_layers(scene, budget)
    told, beside = (
        layers.summary(scene, budget.summary_chars),
        layers.session_summary(scene, budget.session_summary_chars),
    )
    history, lately = layers.recent(scene, fence)
    now, (above, below) = (
        layers.status(scene, budget.status_chars),
        layers.extensions(scene, budget.extensions_chars, fence),
    )
    memory, quote, asked = (
        layers.recalled(scene, fence),
        layers.quoted(scene, budget.quoted_chars, fence),
        layers.message(scene),
    )
    shown = (*standing, told, beside, lately, now, above, memory, below, quote, asked)
    if budget.order is MemoryPlacement.SEED003:
        shown = (*standing, told, beside, memory, lately, now, above, below, quote, asked)
    return Prompt(
        system=_joined(standing),
        history=history,
        recalled=memory.text,
        user=asked.text,
        layers=tuple(layer for layer in shown if layer.text or layer.cut or layer.name not in _OPTIONAL),
        summary=told.text,
        status=_joined((now, above)),
        quoted=quote.text,
        extra=below.text,
        order=budget.order,
        session_summary=beside.text,
    )


def standing_layers(scene: PromptInputs, budget: PromptBudget) -> tuple[Layer, ...]:
    """What stands above the lane's records, in order."""
    return (
        layers.policy(),
        layers.identity(scene, budget.identity_chars),
        layers.personality(scene),
        layers.skills(scene, budget.skills_chars),
        layers.workers(scene, budget.workers_chars),
        layers.conversation(scene),
        layers.bulletin(scene, budget.bulletin_chars),
    )


def _joined(parts: tuple[Layer, ...]) -> str:
    return "\n\n".join(layer.text for layer in parts if layer.text)


_TOKENS_EACH = 4
"""What every message of a request costs beside its words."""


def estimated(prompt: Prompt, tools: Sequence[Tool]) -> int:
    """The tokens of a request as they are estimated, without what models reported before."""
    words = sum(layer.tokens for layer in prompt.layers) + estimate_tokens(offered(tools))
    return words + _TOKENS_EACH * (1 + len(prompt.parts))


def measured(prompt: Prompt, tools: Sequence[Tool], outcome: Outcome) -> tuple[Measured, ...]:
    """The report of a turn that made one call, whose request was this prompt and nothing else."""
    if len(outcome.records) != 1 or outcome.model == NO_MODEL or not outcome.usage.tokens_in:
        return ()
    return (Measured(outcome.model, estimated(prompt, tools), outcome.usage.tokens_in),)
