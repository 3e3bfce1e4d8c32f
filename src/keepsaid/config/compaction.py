"""Settings of compaction."""

from __future__ import annotations

from pydantic import Field

from keepsaid.config.section import Section
from keepsaid.domain.compaction import HOUR_MS, Terms


class CompactionConfig(Section):
    """When the past of a lane is summarised, and what is done before a prompt no longer fits."""

    messages: int = Field(30, ge=2, le=500)
    """More messages than this since the last summary start one."""
    tokens: int = Field(2_500, ge=100)
    """More estimated tokens than this since the last summary start one."""
    age_h: float = Field(24.0, gt=0)
    """Hours since the last summary after which the lane's next message starts one."""
    keep: int = Field(10, ge=1, le=400)
    """The newest messages, which no summary takes in."""
    summary_tokens: int = Field(1_000, ge=100)
    """Estimated tokens of a summary."""
    timeout_s: float = Field(60.0, gt=0)
    """Seconds the model may take for one."""
    retry_s: float = Field(60.0, gt=0)
    """Seconds until one that failed is tried again with a message of the lane; doubled each time, an hour at most."""
    concurrent_max: int = Field(2, ge=1, le=64)
    """Lanes that are summarised at the same time."""
    session_messages: int = Field(30, ge=2)
    """For each so many messages that its lanes summarised, the summary of a conversation is made anew."""
    session_tokens: int = Field(3_000, ge=100)
    """The same for estimated tokens."""
    session_keep: int = Field(20, ge=0)
    """The newest records of each lane, which it leaves out."""
    session_in_prompt: bool = False
    """Show the model, below the lane's summary, what the conversation's other lanes summarised."""
    window_tokens: int = Field(128_000, ge=1_000)
    """Tokens a model's window holds."""
    windows: dict[str, int] = Field(default_factory=dict)
    """The same for models by name, such as ollama/qwen3: 32768."""
    background: float = Field(0.80, gt=0, le=1)
    """The share of the window from which on the oldest 30 % of the messages are summarised."""
    aggressive: float = Field(0.85, gt=0, le=1)
    """The share from which on half of them are."""
    emergency: float = Field(0.95, gt=0, le=1)
    """The share from which on half of them are left out of the prompt at once, and a marker stays."""

    def terms(self) -> Terms:
        """When a lane is due."""
        return Terms(self.messages, self.tokens, int(self.age_h * HOUR_MS), self.keep)
