"""Attributes as JSON under their own names (short: commands that need no other shapes start quickly)."""

from __future__ import annotations

from typing import Any

from keepsaid.domain.ids import when
from keepsaid.domain.lane import Lane

Shape = dict[str, Any]


def fields_of(thing: object, *names: str) -> Shape:
    """Attributes as JSON under their own names."""
    return {name: getattr(thing, name) for name in names}


def times_of(thing: object, *names: str) -> Shape:
    """Attributes in milliseconds UTC as ISO 8601 under their own names; None stays None."""
    return {name: when(getattr(thing, name)) for name in names}


def lane_shape(lane: Lane) -> Shape:
    """The parts that name a lane."""
    return fields_of(lane, "channel", "account", "conversation", "key")
