"""What makes an extension an agent of its own."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


@runtime_checkable
class AgentProvider(Protocol):
    """Does a task it is given in words. An `agent:` block in the manifest makes one without code."""

    async def invoke(self, task: str) -> str:
        """Do the task and return what came of it. Raises what went wrong: it may be asked again."""
        ...
