"""Settings of the bulletin."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section


class BulletinConfig(Section):
    """The standing briefing of what is known, one for each scope: everybody, a conversation, a person."""

    enabled: bool = True
    """Whether turns are briefed."""
    model: bool = True
    """Let the chat model write it, where one is set; else it is put together from memories word for word."""
    every_min: float = Field(60.0, gt=0, le=525_600)
    """Minutes a bulletin stands at least; then it is made anew with the next turn that hears it, if memory changed."""
    words: int = Field(500, ge=50, le=5_000)
    """Words it is to have at most, about so many where a model writes it."""
    timeout_s: float = Field(60.0, gt=0, le=3_600)
    """Seconds the model may take for one."""
    chars: int = Field(8_000, ge=0)
    """Characters of all bulletins of a turn that are shown."""
