"""Warm starts: one process with every import done forks a command whenever it is asked.

What is forked is the whole command line in a process of its own, with the asker's environment, folder and streams; only
its imports were another's. How the program starts cold is seen wherever a test asks for a cold start, and in every
command that goes on but `serve`.

`python -m tests.acceptance.warm SOCKET` says that it is warm, and serves until its stdin ends.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import select
import signal
import socket
import sys
import threading
from importlib import import_module
from io import TextIOWrapper
from typing import Any, Literal, TextIO

from tests.acceptance.asking import STATUS, STREAMS

import keepsaid.app
import keepsaid.interfaces.cli
import keepsaid.interfaces.http
from keepsaid.__main__ import main, tune
from keepsaid.adapters.channels import certificates
from keepsaid.adapters.models import provider
from keepsaid_testkit.crash.forkserver import LIBRARIES

_ERRORS = 2
"""The number of stderr, which shows each line at once, wherever it goes."""


def imports() -> None:
    """Import all that a command may need."""
    for package in (keepsaid.interfaces.cli, keepsaid.interfaces.http, keepsaid.app):
        for one in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            import_module(one.name)
    for name in LIBRARIES:
        import_module(name)
    provider.authorities()
    certificates.authorities()
    assert threading.active_count() == 1, "a process with threads must not fork"
    gc.collect()
    gc.freeze()


def connections(place: str) -> socket.socket | None:
    """Fork for everybody who asks; returns in each fork, with who asked, and at the end with None."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        listening.bind(place)
        listening.listen()
        print("warm", flush=True)
        while True:
            ready, _, _ = select.select([listening, sys.stdin], [], [])
            if sys.stdin in ready:
                return None
            connection, _ = listening.accept()
            if not os.fork():
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                return connection
            connection.close()


def ordered(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """The order, and the streams that came with it."""
    size, streams, _, _ = socket.recv_fds(connection, STATUS.size, STREAMS)
    order: dict[str, Any] = json.loads(connection.recv(STATUS.unpack(size)[0], socket.MSG_WAITALL))
    return order, streams


def opened(number: int, former: TextIO) -> TextIOWrapper:
    """A stream as the interpreter opens it at its start; what the warm one had may have been of another kind."""
    buffering = 1 if number == _ERRORS or (number and os.isatty(number)) else -1
    mode: Literal["w", "r"] = "w" if number else "r"
    return open(number, mode, buffering, former.encoding, former.errors, closefd=False)


def become(order: dict[str, Any], streams: list[int]) -> None:
    """Be the command; the interpreter ends as it would have had it been started for it."""
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
        os.close(stream)
    sys.stdin, sys.stdout, sys.stderr = (opened(*one) for one in enumerate((sys.stdin, sys.stdout, sys.stderr)))
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    sys.argv[1:] = order["arguments"]
    main()


def serve(place: str) -> None:
    """Import, then fork; a fork waits for its command and tells how it ended."""
    tune()
    imports()
    connection = connections(place)
    if connection is None:
        return
    order, streams = ordered(connection)
    command = os.fork()
    if not command:
        connection.close()
        become(order, streams)
    connection.sendall(STATUS.pack(command))
    _, status = os.waitpid(command, 0)
    connection.sendall(STATUS.pack(os.waitstatus_to_exitcode(status)))
    os._exit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
