"""The base class of all sections of the settings and their former keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from keepsaid.text.normal import is_storable

FORMER: Mapping[str, Mapping[str, str]] = {
    "BufferConfig": {"keys_days": "dedupe_retention_days", "disk_floor_mb": "min_free_disk_mb"},
    "ChannelConfig": {"in_doubt": "on_unknown_delivery"},
    "MemoryConfig": {"per_leg": "recall_candidates", "pinned_each": "pinned_per_kind"},
    "TurnsConfig": {"stop_s": "shutdown_timeout_s"},
    "SchedulesConfig": {"at_once": "concurrent_max", "agent_least_s": "agent_min_interval_s"},
    "CollectionConfig": {"calls_a_day": "daily_call_limit"},
}
"""Keys of the release before, by section, each with its name of today; they are accepted for one release."""


class ConfigSection(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    @model_validator(mode="before")
    @classmethod
    def named_as_today(cls, value: Any) -> Any:
        """Read a key under its former name, unless it is set under its own as well."""
        former = FORMER.get(cls.__name__, {})
        if not isinstance(value, dict) or former.keys().isdisjoint(value):
            return value
        renamed = {former[key]: one for key, one in value.items() if key in former}
        return {**renamed, **{key: one for key, one in value.items() if key not in former}}

    @field_validator("*", mode="after")
    @classmethod
    def storable(cls, value: Any) -> Any:
        """Refuse text that no store can hold: it would fail each time it is written, not when it is set."""
        if not all(map(is_storable, _texts(value))):
            raise ValueError("it holds NUL or half of a character (a lone surrogate)")
        return value


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, (list, tuple, set, frozenset)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from _texts(name)
            yield from _texts(one)
