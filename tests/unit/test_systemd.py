"""Notifications to systemd go to a real datagram socket, and never disturb the service."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from keepsaid.adapters.system.machine import Systemd

PATHS = ["file", pytest.param("abstract", marks=pytest.mark.skipif(sys.platform != "linux", reason="Linux only"))]


@pytest.fixture(params=PATHS)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A socket's address, as NOTIFY_SOCKET has it."""
    return str(tmp_path / "notify") if request.param == "file" else f"@keepsaid-{secrets.token_hex(8)}"


@pytest.fixture
def manager(address: str) -> Iterator[socket.socket]:
    """Stands for systemd."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as bound:
        bound.bind(address.replace("@", "\0", 1) if address.startswith("@") else address)
        bound.setblocking(False)
        yield bound


def test_start_life_and_stop_are_told(address: str, manager: socket.socket) -> None:
    environment = {"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "20000000", "WATCHDOG_PID": str(os.getpid()), "A": "b"}
    with closing(Systemd(environment)) as systemd:
        assert systemd.watchdog_s == 20.0
        systemd.ready()
        systemd.alive()
        systemd.stopping()
    assert [manager.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"STOPPING=1"]
    assert environment == {"A": "b"}, "no program that is started from here speaks for this one"


@pytest.mark.parametrize(
    ("variables", "watchdog_s"),
    [
        ({"WATCHDOG_USEC": "3000000"}, 3.0),
        ({"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "often"}, None),
        ({}, None),
    ],
)
def test_only_the_process_that_is_watched_says_that_it_lives(
    address: str, manager: socket.socket, variables: dict[str, str], watchdog_s: float | None
) -> None:
    with closing(Systemd({"NOTIFY_SOCKET": address, **variables})) as systemd:
        assert systemd.watchdog_s == watchdog_s
        systemd.alive()
    if watchdog_s is None:
        with pytest.raises(BlockingIOError):
            manager.recv(100)
    else:
        assert manager.recv(100) == b"WATCHDOG=1"


@pytest.mark.parametrize("path", ["", "relative", "vsock:2:1234", "/nowhere/at/all"])
def test_without_a_manager_nothing_is_sent_and_nothing_fails(path: str) -> None:
    with closing(Systemd({"NOTIFY_SOCKET": path, "WATCHDOG_USEC": "1000000"})) as systemd:
        systemd.ready()
        systemd.alive()
        systemd.stopping()


def test_a_manager_that_reads_nothing_holds_up_nobody(address: str, manager: socket.socket) -> None:
    with closing(Systemd({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000"})) as systemd:
        for _ in range(20_000):
            systemd.alive()
    assert manager.recv(100) == b"WATCHDOG=1"
