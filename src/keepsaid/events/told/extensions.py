"""What is told of extensions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema

EXTENSIONS: Mapping[str, Schema] = MappingProxyType({})
"""Topics that begin with `extension.`."""
