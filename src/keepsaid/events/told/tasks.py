"""What is told of tasks."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema

TASKS: Mapping[str, Schema] = MappingProxyType({})
"""Topics that begin with `task.`."""
