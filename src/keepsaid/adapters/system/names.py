"""Names that one process at a time can hold, kept by the kernel: deleting a file or a directory does not free one."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import struct
import tempfile
from collections.abc import Callable
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

_PEER = struct.Struct("3i")
"""Process, user and group of the other end of a socket, as Linux tells them."""

_ASKED_MAX = 4_096
"""How often a held socket can be asked who holds it: nobody takes the calls, so that each stays in the queue."""

Release = Callable[[], None]


class NameTaken(Exception):
    """Another process holds the name; `pid` is 0 when it is not known which."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.pid = pid


def name_of(path: Path) -> str:
    """The name that stands for a path: the same for every spelling of it, another for every user."""
    real = os.path.realpath(path)
    return f"keepsaid-{os.getuid()}-{blake2b(os.fsencode(real), digest_size=16).hexdigest()}"


def take(name: str) -> Release:
    """Hold a name until released or until the process ends. Raises NameTaken."""
    return take_socket(name) if platform.system() == "Linux" else take_file(name)


def asked(name: str) -> int | None:
    """The process that holds a name, 0 when it is not known which; None when nobody does."""
    try:
        take(name)()
    except NameTaken as taken:
        return taken.pid
    return None


def take_socket(name: str) -> Release:
    """Hold a name as an abstract socket of Linux, which stands in no file system."""
    address = b"\0" + name.encode()
    held = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        held.bind(address)
        held.listen(_ASKED_MAX)
    except OSError:
        held.close()
        pid = _owner_of(address)
        if pid is None:
            return _nothing
        raise NameTaken(pid) from None
    return held.close


def _owner_of(address: bytes) -> int | None:
    """The process that holds an address, 0 when it does not say which; None when it belongs to another user."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        asking.setblocking(False)
        try:
            asking.connect(address)
            peer = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
        except OSError:
            return 0
    pid, user, _ = _PEER.unpack(peer)
    return pid if user in (os.getuid(), 0) else None


def take_file(name: str, within: Path | None = None) -> Release:
    """Hold a name as a locked file, by default in the directory for temporary files."""
    folder = (within or Path(tempfile.gettempdir())) / f"keepsaid-{os.getuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if folder.is_symlink() or folder.stat().st_uid != os.getuid():
            return _nothing
        number = os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError:
        return _nothing
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        said = os.read(number, 32).strip()
        os.close(number)
        raise NameTaken(int(said) if said.isdigit() else 0) from None
    with suppress(OSError):
        os.ftruncate(number, 0)
        os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
    return lambda: os.close(number)


def _nothing() -> None:
    """Give back nothing."""
