"""A process that goes on, forked warm (see warm.py): what subprocess.Popen is to one that is started cold."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import Popen, TimeoutExpired
from threading import Lock
from types import TracebackType
from typing import IO, Self, TypeAlias

from tests.acceptance.asking import begin, told_of


class WarmProcess:
    """A command that a warm process forked, with pipes for what it prints; a context manager that waits for its end."""

    def __init__(self, place: str, order: dict[str, object], within_s: float) -> None:
        with open(os.devnull, "rb") as nothing:  # noqa: PTH123
            (out, to_out), (err, to_err) = os.pipe(), os.pipe()
            try:
                self._ended = begin(place, order, (nothing.fileno(), to_out, to_err), within_s)
            finally:
                os.close(to_out)
                os.close(to_err)
        self.stdout: IO[str] | None = os.fdopen(out, encoding="utf-8")
        self.stderr: IO[str] | None = os.fdopen(err, encoding="utf-8")
        self.returncode: int | None = None
        self._waiting = Lock()
        self.pid = told_of(self._ended)

    def __enter__(self) -> Self:
        """Do nothing."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Wait for its end."""
        for stream in self._streams():
            stream.close()
        self.wait()
        self._ended.close()

    def poll(self) -> int | None:
        """Its exit code, negative for a signal; None while it runs."""
        try:
            return self.wait(0)
        except TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code; raises subprocess.TimeoutExpired."""
        with self._waiting:
            if self.returncode is None:
                self._ended.settimeout(timeout)
                try:
                    self.returncode = told_of(self._ended)
                except (BlockingIOError, TimeoutError) as late:
                    raise TimeoutExpired("serve", timeout or 0) from late
            return self.returncode

    def communicate(self, input: None = None, timeout: float | None = None) -> tuple[str, str]:  # noqa: A002
        """All it still prints; what does not end in time is killed, and raises subprocess.TimeoutExpired."""
        streams = self._streams()
        with ThreadPoolExecutor(len(streams)) as readers:
            reads: Sequence[Callable[[], str]] = [readers.submit(stream.read).result for stream in streams]
            try:
                self.wait(timeout)
            except TimeoutExpired:
                self.kill()
                raise
            out, err = (read() for read in reads)
        return out, err

    def send_signal(self, sig: int) -> None:
        """Send a signal, unless it has ended."""
        if self.returncode is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, sig)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def _streams(self) -> list[IO[str]]:
        return [stream for stream in (self.stdout, self.stderr) if stream is not None]


Process: TypeAlias = Popen[str] | WarmProcess
"""One that was started cold, or warm."""
