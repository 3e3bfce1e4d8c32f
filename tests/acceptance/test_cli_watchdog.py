"""`keepsaid serve` under systemd: it says when it is ready, that it lives and when it stops; a held loop is logged."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from tests.acceptance.program import Program
from tests.waits import HANG_S

_HOLDS = """
import asyncio
import os

from keepsaid.extensions import extension


def hold(pipe: int) -> None:
    os.read(pipe, 1)
    os.set_blocking(pipe, True)
    os.read(pipe, 1)
    os.set_blocking(pipe, False)


@extension(id='holder')
class Holder:
    async def start(self) -> None:
        pipe = os.open({fifo!r}, os.O_RDWR | os.O_NONBLOCK)
        asyncio.get_running_loop().add_reader(pipe, hold, pipe)
"""
"""Holds the event loop, as no extension should, from the first byte in a pipe to the second."""


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    """Stands for systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(str(tmp_path / "notify"))
        bound.settimeout(HANG_S)
        yield bound


def drain(manager: socket.socket) -> None:
    """Take what was sent up to now."""
    manager.setblocking(False)
    with suppress(BlockingIOError):
        while manager.recv(100):
            pass
    manager.settimeout(HANG_S)


def logged(program: Program, words: str) -> dict[str, Any]:
    """Return the line of the log that contains some words, once it is there."""
    file, deadline = program.home / "state" / "keepsaid.log", monotonic() + HANG_S
    while monotonic() < deadline:
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        for line in lines:
            if words in line:
                told: dict[str, Any] = json.loads(line)
                return told
        Event().wait(0.02)
    raise AssertionError(f"not logged: {words}")


def test_a_held_loop_is_logged_and_systemd_is_told_of_start_life_and_stop(
    manager: socket.socket, tmp_path: Path
) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    notify = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "600000"}
    program = Program(tmp_path / "home", notify)
    program.configure("models: {chat: none}\nruntime: {watchdog_s: 0.5}\n")
    folder = program.home / "config" / "extensions"
    folder.mkdir()
    (folder / "holder.py").write_text(_HOLDS.format(fifo=str(fifo)), "utf-8")
    with program.serving() as running:
        while manager.recv(100) != b"READY=1":
            pass
        fifo.write_text("h")
        held = logged(program, "the event loop has been held")
        assert [frame for frame in held["trace"] if "holder.py" in frame and frame.endswith(" in hold")], held
        assert held["held_s"] >= 0.5
        drain(manager)
        fifo.write_text("g")
        assert logged(program, "the event loop runs again")["held_s"] >= held["held_s"]
        assert manager.recv(100) == b"WATCHDOG=1", "it is fed by the loop alone"
        running.process.terminate()
        while manager.recv(100) != b"STOPPING=1":
            pass
        assert running.process.wait(HANG_S) == 0
