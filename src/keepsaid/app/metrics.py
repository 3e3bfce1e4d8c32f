"""The metrics of an instance as text: read when Prometheus asks for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from keepsaid.app.instance import Instance
from keepsaid.app.stores import stores_of
from keepsaid.app.telemetry import RecordedTelemetry
from keepsaid.config import Config, Home
from keepsaid.domain.metrics import Reading
from keepsaid.errors import ConfigError, installation
from keepsaid.services.metrics import MetricsService, ProcessMetrics

_STORES = ("operations", "memory")


def log_bytes(home: Home, config: Config) -> Mapping[str, int]:
    """The sizes of the write-ahead logs, by store; nothing where a server holds the stores. It reads the disk."""
    found: dict[str, int] = {}
    for name, store in zip(_STORES, stores_of(home, config), strict=False):
        log = Path(f"{store}-wal")
        found[name] = 0
        with suppress(OSError):  # it is not there before the first commit
            found[name] = log.stat().st_size
    return found


async def scrape(instance: Instance, version: str) -> tuple[str, bytes]:
    """The media type and the text of every metric. Raises ConfigError without the library, StoreError."""
    recorded = instance.telemetry
    process = recorded.metrics if isinstance(recorded, RecordedTelemetry) else ProcessMetrics()
    logs = partial(log_bytes, instance.home, instance.config)
    service = MetricsService(process, instance.operations, instance.clock, instance.services.status.read, logs)
    return await asyncio.to_thread(_rendered, await service.read(version))


def _rendered(reading: Reading) -> tuple[str, bytes]:
    """The text; in a thread, because the first call imports the library."""
    try:
        from keepsaid.adapters.telemetry import prometheus  # noqa: PLC0415 - an extra
    except ImportError as error:
        what = f"metrics need a library that is not installed ({error})"
        raise ConfigError(what, safe="Nothing was changed.", hint=installation("metrics")) from error
    return prometheus.CONTENT_TYPE, prometheus.render(reading)
