"""The account: what became of each extension, written where another process can read it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from keepsaid.extensions.discover import Found
from keepsaid.extensions.guest import Guest, State


def shape_of(guest: Guest) -> dict[str, Any]:
    """One extension as programs read it."""
    return {
        **found_shape(guest.found),
        "state": guest.state.value,
        "phase": guest.fault.phase.value if guest.fault else None,
        "reason": guest.fault.reason if guest.fault else None,
        "trace": guest.fault.trace if guest.fault else "",
        "needs": list(guest.needs),
        "tools": [tool.name for tool in guest.provided.tools],
        "channels": sorted(guest.provided.channels),
        "took_ms": {phase.value: round(ms, 1) for phase, ms in guest.took_ms.items()},
    }


def found_shape(found: Found) -> dict[str, Any]:
    """What is known of one before anything of it was run."""
    manifest = found.manifest
    return {
        "id": found.id,
        "name": manifest.title if manifest else found.id,
        "version": manifest.version if manifest else None,
        "description": manifest.description if manifest else "",
        "source": found.source.value,
        "place": str(found.place),
        "enabled": found.enabled,
        "provides": list(manifest.provides) if manifest else [],
        "depends_on": list(manifest.depends_on) if manifest else [],
        "subscribes": [one.model_dump() for one in manifest.events.subscribes] if manifest else [],
        "schedules": [one.model_dump(exclude_defaults=True) for one in manifest.schedules] if manifest else [],
        "config": {key: one.model_dump(exclude_defaults=True) for key, one in manifest.config.items()}
        if manifest
        else {},
        "secrets": dict(manifest.secrets) if manifest else {},
        "state": State.OFF.value if not found.enabled else State.FOUND.value if manifest else State.QUARANTINED.value,
        "phase": "manifest" if found.problem else None,
        "reason": found.problem or None,
        "trace": "",
        "needs": [],
    }


def write(file: Path, pid: int, guests: Iterable[Guest]) -> None:
    """Write what became of all; a home that cannot be written has no account. Raises OSError."""
    told = {"pid": pid, "extensions": [shape_of(guest) for guest in guests]}
    partial = file.with_name(f"{file.name}.partial")
    partial.touch(mode=0o600)
    partial.write_text(json.dumps(told, ensure_ascii=False, default=str), "utf-8")
    partial.replace(file)


def read(file: Path) -> Mapping[str, Mapping[str, Any]]:
    """What became of each when a runtime last wrote it, by id; empty when there is no account."""
    try:
        told = json.loads(file.read_text("utf-8"))
        return {str(one["id"]): one for one in told["extensions"]}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
