"""A player: a process of the world outside that can go away, and come back at the address it had."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

_LEAVE_S = 60.0

Start = Callable[[list[str]], AbstractContextManager[subprocess.Popen[bytes]]]
"""Starts a module with arguments; its output is a pipe."""


class Player:
    """Plays a part of `world`; a context manager, there from its beginning to its end but while it is away."""

    def __init__(self, start: Start, part: str, options: tuple[str, ...]) -> None:
        self.urls: dict[str, str] = {}
        self._start = start
        self._arguments = ["keepsaid_testkit.crash.world", part, *options]
        self._process: subprocess.Popen[bytes] | None = None
        self._ending = ExitStack()

    def __enter__(self) -> Self:
        """Come for the first time."""
        self.come()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it."""
        self._ending.close()

    def leave(self) -> None:
        """Go away: nobody listens any more, and whatever was being answered is cut off.

        It gets a signal and is not killed, so that its ledger ends with a whole line.
        """
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_LEAVE_S)
            self._process = None
            self._ending.close()

    def come(self) -> None:
        """Listen, at the address it had before."""
        if self._process is not None:
            return
        ports = [str(urlsplit(url).port) for url in self.urls.values()]
        given = ["--ports", *ports, *["0"] * (2 - len(ports))]
        process = self._ending.enter_context(self._start([*self._arguments, *given]))
        assert process.stdout is not None, "its output is a pipe"
        self.urls = json.loads(process.stdout.readline())
        self._process = process
