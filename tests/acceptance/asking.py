"""Asking for a warm start: what `keepsaid` is to the tests, without the half second of imports.

`python -I -S asking.py SOCKET COMMAND...` runs a command with this process's environment, folder and streams.
"""

import json
import os
import socket
import struct
import sys

STATUS = struct.Struct("i")
STREAMS = 3


def begin(
    place: str, order: dict[str, object], streams: tuple[int, int, int], within_s: float | None = None
) -> socket.socket:
    """Begin a command with these streams; its process's number comes over the socket, then its exit code."""
    asking = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    asking.settimeout(within_s)
    asking.connect(place)
    told = json.dumps(order).encode()
    socket.send_fds(asking, [STATUS.pack(len(told))], streams)
    asking.sendall(told)
    return asking


def told_of(asking: socket.socket) -> int:
    """The next number that comes over the socket. Raises TimeoutError."""
    told = asking.recv(STATUS.size)
    assert told, "the warm process is gone"
    return int(STATUS.unpack(told)[0])


def ask(place: str, order: dict[str, object], streams: tuple[int, int, int], within_s: float | None = None) -> int:
    """Run a command with these streams; returns its exit code, negative for a signal. Raises TimeoutError."""
    with begin(place, order, streams, within_s) as asking:
        told_of(asking)
        return told_of(asking)


def order_of(arguments: list[str], environment: dict[str, str]) -> dict[str, object]:
    """A command to run in this folder."""
    return {"environment": environment, "folder": os.getcwd(), "arguments": arguments}  # noqa: PTH109


if __name__ == "__main__":
    code = ask(sys.argv[1], order_of(sys.argv[2:], dict(os.environ)), (0, 1, 2))
    sys.exit(code if code >= 0 else 128 - code)
