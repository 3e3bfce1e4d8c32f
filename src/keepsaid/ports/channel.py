"""Channels, as intake and the outbox need them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from keepsaid.domain.message import Inbound
from keepsaid.domain.reply import Reply, Sending, SendResult


class Channel(Protocol):
    """One outside medium.

    A reply that carries a URL is sent whatever `sending` says.
    """

    @property
    def name(self) -> str:
        """Its name in messages and config."""
        ...

    @property
    def sending(self) -> Sending:
        """How it delivers."""
        ...

    async def send(self, reply: Reply) -> SendResult:
        """Try once to deliver; never raises. Not called for replies that wait to be pulled."""
        ...

    async def close(self) -> None:
        """Give back connections."""
        ...


class Hook(Protocol):
    """A channel that others call: it proves who called and reads what they sent."""

    @property
    def name(self) -> str:
        """Its name in messages and config."""
        ...

    def read(self, headers: Mapping[str, str], body: bytes) -> Inbound | None:
        """The message in a call; None when there is nothing to keep (a ping).

        `headers` are lower-case. Raises HookClosed when nobody has opened the hook, Forged when the
        signature is missing or wrong, InputError when the body cannot be read.
        """
        ...
