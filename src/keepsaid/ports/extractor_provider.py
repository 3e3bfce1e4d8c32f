"""What brings an extractor: the collector asks it where the setting `collection.extractor` is `ext/ID`."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from keepsaid.ports.extractor import Extractor


@runtime_checkable
class ExtractorProvider(Protocol):
    """Brings an extractor."""

    def extractor(self) -> Extractor:
        """The extractor, made ready in `start`."""
        ...
