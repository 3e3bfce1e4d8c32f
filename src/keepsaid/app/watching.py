"""The watched process: its event loop is watched, and systemd told of its start, its stop and that it lives."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from keepsaid.adapters.system.watchdog import Systemd, Watchdog
from keepsaid.config import Config


@contextmanager
def watched(config: Config) -> Iterator[Systemd]:
    """Watch the running event loop while the block runs; yields what tells systemd of start and stop."""
    systemd = Systemd(os.environ)
    # Half of the time: one notification may come late.
    feed_s = systemd.watchdog_s / 2 if systemd.watchdog_s is not None else None
    watchdog = Watchdog(config.runtime.watchdog_s, systemd.alive, feed_s)
    try:
        yield systemd
    finally:
        watchdog.end()
        systemd.close()
