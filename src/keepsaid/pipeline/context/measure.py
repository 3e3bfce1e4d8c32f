"""Measure: what a prompt is estimated to cost, and what its model said it cost."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.domain.effects import Measured
from keepsaid.domain.prompt import Prompt
from keepsaid.domain.tokens import estimate_tokens
from keepsaid.domain.turn import NO_MODEL, Outcome
from keepsaid.pipeline.context.trace import offered
from keepsaid.ports.model import Tool

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
