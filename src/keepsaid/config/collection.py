"""Settings of collection."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from keepsaid.config.section import Section


class CollectionConfig(Section):
    """How what was said in a session becomes memory."""

    extractor: Literal["rules", "off"] = "rules"
    """rules: what people state outright is learned, without a model; off: nothing is collected, and marks stay."""
    every_s: float = Field(30.0, gt=0, le=86_400)
    """Seconds between two looks at the marked sessions."""
    passages_max: int = Field(10, ge=1, le=1_000)
    """Passages that one look reads, each of another session or of the next part of one."""
    records_max: int = Field(30, ge=1, le=500)
    """Records of people and agent in one passage."""
    tokens_max: int = Field(4_000, ge=100)
    """Estimated tokens of one passage."""
    tries: int = Field(5, ge=1, le=100)
    """Attempts that come to nothing before a session is parked."""
    retry_s: float = Field(60.0, gt=0)
    """Seconds until one is repeated; doubled each time, an hour at most."""
    nightly_hour: int = Field(3, ge=0, le=23)
    """The hour, in slots.timezone, at which every session with unread records is marked."""
