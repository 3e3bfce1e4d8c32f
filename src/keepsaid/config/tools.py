"""Settings of tools that others serve."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, model_validator

from keepsaid.config.section import Section
from keepsaid.domain.message import Trust
from keepsaid.domain.turn import ToolClass

Serves = Literal["owner", "known", "anyone"]
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=24)]


class McpServerConfig(Section):
    """One server that speaks the Model Context Protocol. Its tools are called NAME__TOOL."""

    command: tuple[str, ...] = ()
    """What starts it, with its arguments, where it speaks over its standard streams."""
    url: str = ""
    """Where it listens, where it speaks streamable HTTP."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Variables it is started with; of ours it gets PATH, HOME and the like alone."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers of every request, such as Authorization."""
    allow: tuple[str, ...] = ()
    """Which of its tools may be used, by their own names or patterns with *. None, unless they are named here."""
    kind: ToolClass = ToolClass.UNSAFE
    """What may be done with a call that started and has no result: pure and idempotent ones are made again, an unsafe
    one waits for your word. What the server says of its tools does not count."""
    kinds: dict[str, ToolClass] = Field(default_factory=dict)
    """Other classes, by tool or pattern; the first that matches."""
    serves: Serves | None = None
    """Whom its tools serve without your approval: owner, known or anyone. A turn that shows text of less trust is
    refused, and you are asked. Without it pure tools serve anyone and all others you alone."""
    serves_each: dict[str, Serves] = Field(default_factory=dict)
    """The same by tool or pattern; the first that matches."""
    output: Trust = Trust.EXTERNAL
    """How far what its tools return is trusted: external, known or owner. A turn that was shown external text may call
    no tool that serves only you."""
    limit_s: float = Field(30.0, gt=0, le=3_600)
    """Seconds a call may take."""
    chars_max: int = Field(20_000, ge=100, le=1_000_000)
    """Characters of a result that the model is shown."""

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """Refuse a server that is reached in no way, or in two."""
        if bool(self.command) == bool(self.url):
            raise ValueError("a server needs either a command or a url")
        return self


class ToolsConfig(Section):
    """Tools that others serve, and which calls wait for you."""

    mcp: dict[ServerName, McpServerConfig] = Field(default_factory=dict)
    """Servers, by name."""
    approval_hours: float = Field(24.0, gt=0, le=8_760)
    """How long a call may be approved that waits for you: the turn that asked for it showed text of less trust than the
    tool needs; after that it is refused."""
    approvals_lane_max: int = Field(5, ge=0, le=1_000)
    """How many calls of one lane may wait for you at a time; with 0 such calls are always refused."""
    approvals_max: int = Field(50, ge=0, le=10_000)
    """How many calls may wait for you at a time in all."""
