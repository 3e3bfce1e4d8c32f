"""Settings of collection."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section


class CollectionConfig(Section):
    """How what was said in a session becomes memory."""

    extractor: str = Field("auto", pattern=r"^(auto|rules|none|ext/[a-z][a-z0-9_-]{0,39})$")
    """auto: the chat model reads what was said, and rules where none is set; rules: never a model, only what people
    state outright is learned; none: nothing is collected, and marks stay; ext/ID: that of an extension."""
    every_s: float = Field(30.0, gt=0, le=86_400)
    """Seconds between two looks at the marked sessions."""
    passages_max: int = Field(10, ge=1, le=1_000)
    """Passages that one look reads, each of another session or of the next part of one."""
    records_max: int = Field(30, ge=1, le=500)
    """Records of people and agent in one passage."""
    tokens_max: int = Field(4_000, ge=100)
    """Estimated tokens of one passage."""
    answer_tokens_max: int = Field(4_000, ge=100)
    """Tokens of the model's answer to one."""
    timeout_s: float = Field(90.0, gt=0, le=600)
    """Seconds a call of the model may take."""
    tries: int = Field(5, ge=1, le=100)
    """Attempts that come to nothing before a session is parked."""
    retry_s: float = Field(60.0, gt=0)
    """Seconds until one is repeated; doubled each time, an hour at most."""
    calls_a_day: int = Field(2_000, ge=0)
    """Calls of the model in a day (UTC), however often it is started; what is left waits for the next."""
    model_tokens_a_day: int = Field(4_000_000, ge=0)
    """The same for its tokens."""
    nightly_hour: int = Field(3, ge=0, le=23)
    """The hour, in slots.timezone, at which every session with unread records is marked."""
