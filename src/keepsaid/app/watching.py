"""Watches the event loop of a server and notifies systemd (short: only a process that serves needs it).

It runs for months, so its threads share one arena, and no search for garbage looks at what the start made.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from keepsaid.adapters.system.process import Systemd, Watchdog, share_one_arena, spare_what_stays
from keepsaid.config import Config


@contextmanager
def watched(config: Config) -> Iterator[Systemd]:
    """Let threads share one arena, and watch the running event loop while the block runs; yields the way to systemd."""
    share_one_arena()
    systemd = Systemd(os.environ)
    # Half of the time: one notification may come late.
    feed_s = systemd.watchdog_s / 2 if systemd.watchdog_s is not None else None
    watchdog = Watchdog(config.runtime.watchdog_s, systemd.alive, feed_s)
    try:
        yield systemd
    finally:
        watchdog.end()
        systemd.close()


def started(systemd: Systemd) -> None:
    """Say that the start is over, and spare what it made from searches for garbage."""
    spare_what_stays()
    systemd.ready()
