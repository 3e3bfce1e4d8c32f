"""Assemble: the prompt of one turn, layer by layer, the same bytes for the same inputs (design: section 4.2)."""

from __future__ import annotations

from dataclasses import dataclass

from keepsaid.domain.context import TAIL_MAX
from keepsaid.domain.fence import UNKEYED, Fence
from keepsaid.domain.prompt import Layer, Order, Prompt
from keepsaid.domain.scene import Scene
from keepsaid.pipeline.context.bulletin import bulletin
from keepsaid.pipeline.context.conversation import conversation
from keepsaid.pipeline.context.extensions import extensions
from keepsaid.pipeline.context.identity import identity
from keepsaid.pipeline.context.message import message
from keepsaid.pipeline.context.personality import personality
from keepsaid.pipeline.context.policy import policy
from keepsaid.pipeline.context.quoted import quoted
from keepsaid.pipeline.context.recalled import recalled
from keepsaid.pipeline.context.recent import recent
from keepsaid.pipeline.context.session_summary import session_summary
from keepsaid.pipeline.context.skills import skills
from keepsaid.pipeline.context.status import status
from keepsaid.pipeline.context.summary import summary
from keepsaid.pipeline.context.workers import workers

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
class Budget:
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
    order: Order = Order.STABLE


def assemble(scene: Scene, budget: Budget, fence: Fence = UNKEYED) -> Prompt:
    """The prompt: what stands, the lane's summary and records, what holds for this turn, the new messages."""
    standing = standing_layers(scene, budget)
    told, beside = summary(scene, budget.summary_chars), session_summary(scene, budget.session_summary_chars)
    history, lately = recent(scene, fence)
    now, (above, below) = status(scene, budget.status_chars), extensions(scene, budget.extensions_chars, fence)
    memory, quote, asked = recalled(scene, fence), quoted(scene, budget.quoted_chars, fence), message(scene)
    layers = (*standing, told, beside, lately, now, above, memory, below, quote, asked)
    if budget.order is Order.SEED003:
        layers = (*standing, told, beside, memory, lately, now, above, below, quote, asked)
    return Prompt(
        system=_joined(standing),
        history=history,
        recalled=memory.text,
        user=asked.text,
        layers=tuple(layer for layer in layers if layer.text or layer.cut or layer.name not in _OPTIONAL),
        summary=told.text,
        status=_joined((now, above)),
        quoted=quote.text,
        extra=below.text,
        order=budget.order,
        session_summary=beside.text,
    )


def standing_layers(scene: Scene, budget: Budget) -> tuple[Layer, ...]:
    """What stands above the lane's records, in order."""
    return (
        policy(),
        identity(scene, budget.identity_chars),
        personality(scene),
        skills(scene, budget.skills_chars),
        workers(scene, budget.workers_chars),
        conversation(scene),
        bulletin(scene, budget.bulletin_chars),
    )


def _joined(layers: tuple[Layer, ...]) -> str:
    return "\n\n".join(layer.text for layer in layers if layer.text)
