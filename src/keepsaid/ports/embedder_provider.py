"""What brings an embedder. The door knows one and holds it ready; memory does not ask for it yet."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.ports.embedder import Embedder


@runtime_checkable
class EmbedderProvider(Protocol):
    """Brings an embedder."""

    def embedder(self) -> Embedder:
        """The embedder, made ready in `start`."""
        ...
