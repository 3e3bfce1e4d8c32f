"""What is told of extensions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema, word

EXTENSIONS: Mapping[str, Schema] = MappingProxyType(
    {
        "extension.started": Schema("An extension was let in.", "extension", {"extension": word("its id")}),
        "extension.quarantined": Schema(
            "An extension failed, or could not be let in.",
            "extension",
            {"extension": word("its id"), "phase": word("what was being done")},
        ),
    }
)
"""Topics that begin with `extension.`."""
