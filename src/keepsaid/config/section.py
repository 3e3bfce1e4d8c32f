"""The base class of all sections of the settings and their former keys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, field_validator

from keepsaid.text.normal import is_storable

FORMER: Mapping[str, Mapping[str, str]] = {
    "buffer": {"keys_days": "dedupe_retention_days", "disk_floor_mb": "min_free_disk_mb"},
    "channels": {"in_doubt": "on_unknown_delivery"},
    "memory": {"per_leg": "recall_candidates", "pinned_each": "pinned_per_kind"},
    "turns": {"stop_s": "shutdown_timeout_s"},
    "schedules": {"at_once": "concurrent_max", "agent_least_s": "agent_min_interval_s"},
    "collection": {"calls_a_day": "daily_call_limit"},
}
"""By section (of `channels`, in each): keys of the release before with today's names; accepted for one release."""


def with_current_keys(data: Mapping[str, Any]) -> dict[str, Any]:
    """One source of settings with its former keys renamed; a key that is set under both names keeps its own."""
    renamed = dict(data)
    for section, former in FORMER.items():
        given = data.get(section)
        if section == "channels" and isinstance(given, dict):
            renamed[section] = {name: _renamed(one, former) for name, one in given.items()}
        elif section in data:
            renamed[section] = _renamed(given, former)
    return renamed


def _renamed(section: Any, former: Mapping[str, str]) -> Any:
    if not isinstance(section, dict) or former.keys().isdisjoint(section):
        return section
    current = {former[key]: one for key, one in section.items() if key in former}
    return {**current, **{key: one for key, one in section.items() if key not in former}}


class ConfigSection(BaseModel):
    """A part of the tree."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

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
    elif isinstance(value, (list, tuple, set, frozenset, dict)):
        for one in (*value, *value.values()) if isinstance(value, dict) else value:
            yield from _texts(one)
