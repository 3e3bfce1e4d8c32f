"""A proxy between one process and the server, which can cut the line at a moment that a test chooses."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from keepsaid.adapters.postgres.connection import PostgresPlace

_SOCKET = ".s.PGSQL.5432"
_KEY = re.compile(rb"K\x00\x00\x00\x0c....", re.DOTALL)
_KEY_OF_OURS = b"K\x00\x00\x00\x0c\x00\x00\x00\x07"
"""The message by which a server tells a connection the number of its process."""


class Proxy:
    """Passes bytes on, until a message of the client contains `cut_after`: that still goes on, its answer does not.

    While it `is_away`, it passes nothing on and lets nobody in. If it `pools`, it gives each connection a number of its
    own, as poolers do.
    """

    def __init__(self, server: Path, folder: Path) -> None:
        self.cut_after, self.is_away, self.pools = b"", False, False
        self._server = server
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / _SOCKET))
        self._door.listen()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._door.accept()
                if self.is_away:
                    client.close()
                    continue
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._server))
                threading.Thread(target=self._pass, args=(client, server), daemon=True).start()

    def _pass(self, client: socket.socket, server: socket.socket) -> None:
        """Pass on what either side says, in turn; both are closed in the end."""
        ends = threading.Event()
        back = threading.Thread(target=self._back, args=(server, client, ends, self.pools), daemon=True)
        back.start()
        with suppress(OSError):
            while said := client.recv(65_536):
                if self.is_away:
                    ends.set()
                    client.shutdown(socket.SHUT_RDWR)
                    server.shutdown(socket.SHUT_RDWR)
                    break
                cut = bool(self.cut_after) and self.cut_after in said
                if cut:
                    self.cut_after = b""
                    ends.set()
                    client.shutdown(socket.SHUT_RDWR)
                server.sendall(said)
                if cut:
                    break
        back.join()
        client.close()

    @staticmethod
    def _back(server: socket.socket, client: socket.socket, ends: threading.Event, pools: bool) -> None:
        with suppress(OSError):
            while said := server.recv(65_536):
                if ends.is_set():
                    break
                if pools:
                    said = _KEY.sub(_KEY_OF_OURS, said)
                client.sendall(said)
        server.close()
        with suppress(OSError):
            client.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Let nobody in any more."""
        self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()


@contextmanager
def between(place: PostgresPlace, folder: Path) -> Iterator[tuple[Proxy, PostgresPlace]]:
    """A proxy to the server of a place, whose socket is in `folder`, and the same place behind it."""
    [host] = parse_qs(urlsplit(place.url).query)["host"]
    proxy = Proxy(Path(host) / _SOCKET, folder)
    try:
        yield proxy, PostgresPlace(place.url.replace(host, str(folder)), place.schema)
    finally:
        proxy.close()
