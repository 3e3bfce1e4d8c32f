"""A provider's API as a port: requests and answers pass through with their bytes (short: two protocols)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Protocol


class UpstreamAnswer(Protocol):
    """An answer whose body has not been read yet. It must be closed."""

    @property
    def status(self) -> int:
        """The HTTP status."""

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers that a client may see, by lower-case name; none of them holds the provider's key."""

    def chunks(self) -> AsyncIterator[bytes]:
        """The body as it comes. Raises a ModelError where it ends before its end."""

    def without_key(self, body: bytes) -> bytes:
        """The body with the provider's key struck out."""

    async def close(self) -> None:
        """Drop the rest of the body."""


class Upstream(Protocol):
    """One provider, at an address of the settings."""

    async def post(self, path: str, body: bytes, headers: Mapping[str, str]) -> UpstreamAnswer:
        """Send a body as JSON; returns once the head of the answer is there. Raises a ModelError."""

    async def close(self) -> None:
        """Close its connections."""
