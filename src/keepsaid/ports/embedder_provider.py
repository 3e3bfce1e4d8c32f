"""What brings an embedder: memory asks it where the setting `memory.embedder` is `ext/ID`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.ports.embedder import Embedder


@runtime_checkable
class EmbedderProvider(Protocol):
    """Brings an embedder."""

    def embedder(self) -> Embedder:
        """The embedder, made ready in `start`."""
        ...
