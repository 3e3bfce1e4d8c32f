"""What brings an extractor, used where `collection.extractor` is `extension`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.ports.extractor import Extractor


@runtime_checkable
class ExtractorProvider(Protocol):
    """Brings an extractor."""

    def extractor(self) -> Extractor:
        """The extractor, made ready in `start`."""
        ...
