"""Settings of the OpenAI-compatible endpoint: memory proxies, and the headers by which clients name what they send."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, SecretStr, StringConstraints, field_validator

from keepsaid.config.section import ConfigSection
from keepsaid.text.normal import is_plain_url

ProxyName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
"""The name of a proxy: its model is called memory/NAME."""

_HEADER = re.compile(r"[a-z0-9_-]{1,80}")


class ProxyConfig(ConfigSection):
    """One proxy: calls of the model memory/NAME are forwarded to a provider, with memory."""

    base_url: str = Field(pattern=r"^https?://[!-~]+$")
    """Where the provider's OpenAI-compatible API is, such as https://api.openai.com/v1. Only this address is called."""
    model: str = Field(min_length=1)
    """The name of the model there."""
    key: SecretStr | None = None
    """The provider's key. Clients never receive it, and the key of a client is never sent to the provider."""
    memory: Literal["off", "read", "write", "both"] = "both"
    """read: recalled memory is added to each call; write: what the user says and what the model answers is recorded;
    both: both; off: neither. A key needs the scopes `read` and `write` for them, and `talk` for any call."""
    role: Literal["user", "system", "developer"] = "user"
    """The role of the message that holds recalled memory. Some providers move system messages to the front, which
    changes the prefix that they cache."""
    tokens_max: int = Field(1_500, ge=0, le=4_000)
    """Estimated tokens of recalled memory in one call."""
    keys: tuple[str, ...] = ()
    """Names of the keys that may use this proxy; empty for every key with the scopes."""
    concurrent_max: int = Field(64, ge=1, le=1_000)
    """Calls at the same time; one more gets 429."""
    timeout_s: float = Field(600.0, gt=0, le=3_600)
    """Seconds the provider may send nothing."""

    @field_validator("base_url")
    @classmethod
    def validate_url(cls, url: str) -> str:
        """Refuse a URL in which it is unclear where the password ends, and one with a query."""
        if not is_plain_url(url):
            raise ValueError("in its user name and password, @ / ? # and % are written %40 %2F %3F %23 and %25")
        if "?" in url or "#" in url:
            raise ValueError("it must end with its path: paths of the API are added to it")
        return url.rstrip("/")

    @property
    def reads(self) -> bool:
        """Whether recalled memory is added."""
        return self.memory in ("read", "both")

    @property
    def writes(self) -> bool:
        """Whether calls are recorded."""
        return self.memory in ("write", "both")


class OpenAIConfig(ConfigSection):
    """The OpenAI-compatible endpoint, which is open once a key exists: its memory proxies, and headers of clients."""

    conversation_headers: tuple[str, ...] = (
        "x-openwebui-chat-id",
        "x-librechat-conversation-id",
        "x-session-id",
        "x-session-affinity",
        "session-id",
    )
    """Headers that name the conversation of a call, first to last, after X-Keepsaid-Conversation: those of Open WebUI,
    LibreChat (as its settings are documented here), OpenCode (two) and Codex."""
    task_headers: tuple[str, ...] = ("x-keepsaid-task", "x-openwebui-task")
    """Headers that are not empty in background calls (titles, tags, follow-up questions), which leave memory alone."""
    client_instructions: Literal["use", "ignore"] = "use"
    """What the agent does with system messages of clients: use puts them in the prompt below its own policy and
    personality; ignore leaves them out. Background calls and proxies always use them."""
    proxies: dict[ProxyName, ProxyConfig] = Field(default_factory=dict)
    """Memory proxies by name."""

    @field_validator("conversation_headers", "task_headers")
    @classmethod
    def validate_headers(cls, names: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what names no header; names are compared in small letters."""
        for name in names:
            if _HEADER.fullmatch(name.lower()) is None:
                raise ValueError(f"{name!r} names no header")
        return tuple(name.lower() for name in names)
