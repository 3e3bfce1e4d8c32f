"""What brings an extractor. The door knows one and holds it ready; the collector does not ask for it yet."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.ports.extractor import Extractor


@runtime_checkable
class ExtractorProvider(Protocol):
    """Brings an extractor."""

    def extractor(self) -> Extractor:
        """The extractor, made ready in `start`."""
        ...
