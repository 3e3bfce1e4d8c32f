"""A fork: one life of the runtime, as its stage sees it; and the fork server that gives birth to it."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import IO, Any, Protocol

from keepsaid_testkit.crash.order import Order
from keepsaid_testkit.crash.process import running

_BIRTH_S = 180.0


class StageError(Exception):
    """The play could not go on: a process ended by itself, or something took too long; the logs are in it."""


class Running(Protocol):
    """A process that can be waited for and ended: subprocess.Popen has this shape too."""

    @property
    def pid(self) -> int:
        """Its number."""
        ...

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; raises subprocess.TimeoutExpired."""
        ...

    def send_signal(self, sig: int) -> None:
        """Send a signal."""
        ...


class Events:
    """What a process writes to its stdout, an event a line; its end is the last one."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None, "its output is a pipe"
        self._process = process
        self._file = process.stdout.fileno()
        self._buffer = b""

    def next(self, within_s: float) -> dict[str, Any] | None:
        """The next event; None when there is none in time."""
        deadline = monotonic() + within_s
        while b"\n" not in self._buffer:
            if not select.select([self._file], [], [], max(0.0, deadline - monotonic()))[0]:
                return None
            read = os.read(self._file, 65_536)
            if not read:
                return {"ended": self._process.wait()}
            self._buffer += read
        line, _, self._buffer = self._buffer.partition(b"\n")
        told: dict[str, Any] = json.loads(line)
        return told


class Nursery:
    """The fork server's process, from outside: one life at a time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._events = Events(process)

    def fork(self, order: Order) -> Fork:
        """Begin a life."""
        self._write(order.line())
        told = self._events.next(_BIRTH_S)
        if told is None or "pid" not in told:
            raise StageError(f"the fork server did not fork: {told}")
        return Fork(self._events, lambda sig: self._write(json.dumps({"signal": sig}) + "\n"), told["pid"])

    def _write(self, line: str) -> None:
        assert self._process.stdin is not None, "its input is a pipe"
        self._process.stdin.write(line.encode())
        self._process.stdin.flush()


@contextmanager
def nursery(program: str, preload: Sequence[str], errors: IO[bytes]) -> Iterator[Nursery]:
    """A fork server for lives of a program (MODULE:FUNCTION) that needs some modules; it may serve many stages."""
    arguments = ("keepsaid_testkit.crash.forkserver", "--program", program, "--preload", *preload)
    with running(arguments, subprocess.PIPE, errors) as process:
        yield Nursery(process)


class Fork:
    """One life. `claimed_ms` is the time from its birth to its first claim, `reached` the point it died at."""

    def __init__(self, events: Events, signals: Callable[[int], None], pid: int) -> None:
        self.pid = pid
        self.claimed_ms: float | None = None
        self.reached = ""
        self._events = events
        self._signals = signals
        self._code: int | None = None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal; raises subprocess.TimeoutExpired."""
        limit_s = _BIRTH_S if timeout is None else timeout
        deadline = monotonic() + limit_s
        while self._code is None:
            told = self._events.next(max(0.0, deadline - monotonic()))
            if told is None:
                raise subprocess.TimeoutExpired("a life of the runtime", limit_s)
            self.claimed_ms = told.get("claimed", self.claimed_ms)
            self.reached = told.get("reached", self.reached)
            self._code = told.get("ended")
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send a signal."""
        if self._code is None:
            self._signals(sig)

    def kill(self) -> None:
        """End it at once."""
        self.send_signal(signal.SIGKILL)
        self.wait()
