"""Extensions, as the door needs them: what is called of each, in this order, each within a time limit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from keepsaid.ports.extension_context import ExtensionContext


class Extension(Protocol):
    """Code from outside the core. Any method may be left out; whatever raises is quarantined, and the others go on."""

    async def initialize(self, context: ExtensionContext) -> None:
        """Be made ready: what it depends on is ready before. Nothing comes in yet."""
        ...

    async def start(self) -> None:
        """Begin, once all that it depends on has begun. Return when begun; the runtime answers only after that."""
        ...

    async def stop(self) -> None:
        """End, before anything ends that it depends on."""
        ...

    async def health(self) -> bool:
        """Whether it can do its work, asked every half minute; after three times without a yes it is quarantined."""
        ...

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Take over changed settings while it works, which its manifest allows; or raise, and go on as before.

        Without this method they need a restart. Where any extension refuses its settings, those that took theirs over
        are given the former ones again.
        """
        ...
