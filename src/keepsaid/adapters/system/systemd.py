"""Notifications to systemd, by the protocol of sd_notify(3): datagrams to the socket that NOTIFY_SOCKET names."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping

_PATH, _USEC, _PID = "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"


class Systemd:
    """The service manager that started this process; without one nothing is sent.

    The variables are taken out of `environment`, so that no program that is started from here speaks for this one.
    `watchdog_s` is how long systemd waits for `alive` before it takes the process for hung; None if it does not.
    """

    def __init__(self, environment: MutableMapping[str, str]) -> None:
        path, usec, pid = (environment.pop(name, "") for name in (_PATH, _USEC, _PID))
        self._address = path.replace("@", "\0", 1) if path.startswith("@") else path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) if path.startswith(("/", "@")) else None
        if self._socket is not None:
            self._socket.setblocking(False)
        is_watched = self._socket is not None and usec.isdecimal() and int(usec) > 0 and pid in ("", str(os.getpid()))
        self.watchdog_s = int(usec) / 1_000_000 if is_watched else None

    def ready(self) -> None:
        """Say that the start is over."""
        self._send("READY=1")

    def stopping(self) -> None:
        """Say that the stop has begun."""
        self._send("STOPPING=1")

    def alive(self) -> None:
        """Say that the process is not hung."""
        if self.watchdog_s is not None:
            self._send("WATCHDOG=1")

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _send(self, state: str) -> None:
        """Send without waiting. A manager that is not there, or reads nothing, must not disturb the service."""
        if self._socket is not None:
            try:
                self._socket.sendto(state.encode(), self._address)
            except OSError:
                return
