"""Settings of the context: the order of its layers, and what each may cost."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section
from keepsaid.domain.prompt import Order


class ContextConfig(Section):
    """What the prompt may hold. What is cut, and why, stands in `why`."""

    order: Order = Order.STABLE
    """stable: recalled memory after the recent messages, so that everything before it is cached by providers;
    seed003: before them."""
    recent_messages: int = Field(1_000, ge=0, le=1_000)
    """Records of the lane since its summary that are shown at most; compaction keeps them far fewer."""
    recent_tokens: int = Field(100_000, ge=0)
    """Estimated tokens they may cost at most."""
    identity_chars: int = Field(20_000, ge=0)
    """Characters of the identity files that are shown."""
    skills_chars: int = Field(8_000, ge=0)
    """Characters of the index of skills; the last by name are left out."""
    summary_chars: int = Field(16_000, ge=0)
    """Characters of the lane's summary."""
    session_summary_chars: int = Field(8_000, ge=0)
    """Characters of the summary of the conversation's other lanes, with `compaction.session_in_prompt`."""
    extensions_chars: int = Field(8_000, ge=0)
    """Characters of what extensions contribute; the last by priority are left out."""
    quoted_chars: int = Field(4_000, ge=0)
    """Characters of what the new messages reply to."""
