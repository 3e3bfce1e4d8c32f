"""keepsaid: the message-and-memory runtime of an always-on agent.

Everything said is kept, and comes to mind when needed.
"""

from __future__ import annotations

import typing as _typing

from keepsaid.errors import (
    ConfigError,
    HomeBusy,
    HomeError,
    InputError,
    KeepsaidError,
    KeyConflict,
    LeaseLost,
    ModelError,
    StoreError,
    TooLarge,
    UnknownChannel,
)

if _typing.TYPE_CHECKING:
    from keepsaid.interfaces.sdk.client import BlockingKeepsaid, Keepsaid
    from keepsaid.interfaces.sdk.inbox import Batch, Inbox
    from keepsaid.interfaces.sdk.memory import MemoryClient
    from keepsaid.interfaces.sdk.values import Episode, Forgotten, MemoryRecord, Message, Receipt, Remembered, Reply
    from keepsaid.ports.model import AgentPrompt

__version__ = "0.1.0"

__all__ = [
    "AgentPrompt",
    "Batch",
    "BlockingKeepsaid",
    "ConfigError",
    "Episode",
    "Forgotten",
    "HomeBusy",
    "HomeError",
    "Inbox",
    "InputError",
    "Keepsaid",
    "KeepsaidError",
    "KeyConflict",
    "LeaseLost",
    "MemoryClient",
    "MemoryRecord",
    "Message",
    "ModelError",
    "Receipt",
    "Remembered",
    "Reply",
    "StoreError",
    "TooLarge",
    "UnknownChannel",
    "__version__",
]

_HOMES = {
    "AgentPrompt": "client",
    "Batch": "inbox",
    "BlockingKeepsaid": "client",
    "Episode": "values",
    "Forgotten": "values",
    "Inbox": "inbox",
    "Keepsaid": "client",
    "MemoryClient": "memory",
    "MemoryRecord": "values",
    "Message": "values",
    "Receipt": "values",
    "Remembered": "values",
    "Reply": "values",
}


def __getattr__(name: str) -> _typing.Any:
    """Load the runtime when it is first asked for, so that importing the package stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    return getattr(import_module(f"keepsaid.interfaces.sdk.{_HOMES[name]}"), name)
