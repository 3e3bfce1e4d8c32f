"""What is told of schedules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.events.schema import Schema

SCHEDULES: Mapping[str, Schema] = MappingProxyType({})
"""Topics that begin with `schedule.`."""
