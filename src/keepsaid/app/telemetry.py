"""Telemetry of an instance: what is counted and traced while it works, and what `/metrics` prints of it."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from keepsaid.app.stores import stores_of
from keepsaid.config import Config, Home
from keepsaid.errors import ConfigError, installation
from keepsaid.ports.telemetry import NO_TELEMETRY, NoTelemetry, Telemetry
from keepsaid.services.metrics import MetricsService, ProcessMetrics

if TYPE_CHECKING:
    from keepsaid.app.instance import Instance

_STORES = ("operations", "memory")


class RecordedTelemetry(NoTelemetry):
    """Counts and durations are kept for `/metrics`; there are no spans."""

    __slots__ = ("metrics",)

    def __init__(self, metrics: ProcessMetrics) -> None:
        self.metrics = metrics

    def add(self, name: str, labels: tuple[str, ...] = (), amount: float = 1.0) -> None:
        """Raise a counter."""
        self.metrics.add(name, labels, amount)

    def observe(self, name: str, seconds: float, labels: tuple[str, ...] = ()) -> None:
        """Count a duration."""
        self.metrics.observe(name, seconds, labels)


def telemetry_of(config: Config) -> Telemetry:
    """What the settings ask for; nothing is recorded where they ask for nothing."""
    return RecordedTelemetry(ProcessMetrics()) if config.telemetry.metrics else NO_TELEMETRY


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
    try:
        from keepsaid.adapters.telemetry import prometheus  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise ConfigError(
            f"metrics need a library that is not installed ({error})",
            safe="Nothing was changed.",
            hint=installation("metrics"),
        ) from error
    recorded = instance.telemetry
    process = recorded.metrics if isinstance(recorded, RecordedTelemetry) else ProcessMetrics()
    logs = partial(log_bytes, instance.home, instance.config)
    service = MetricsService(process, instance.operations, instance.clock, instance.services.status.read, logs)
    return prometheus.CONTENT_TYPE, prometheus.render(await service.read(version))
