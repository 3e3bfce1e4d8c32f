"""Names that one process at a time can hold, kept by the kernel: deleting a file or a directory does not free one."""

from __future__ import annotations

import fcntl
import os
import platform
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from keepsaid.errors import HomeBusy, HomeError, StoreGone

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
    """The name of a path's lock: the same for every spelling of the path, another for every user."""
    real = os.path.realpath(path)
    return f"keepsaid-{os.getuid()}-{blake2b(os.fsencode(real), digest_size=16).hexdigest()}"


def take(name: str) -> Release:
    """Hold a name until released or until the process ends. Raises NameTaken."""
    return take_socket(name) if platform.system() == "Linux" else take_file(name)


def find_holder(name: str) -> int | None:
    """The process that holds a name, 0 when it is not known which; None when nobody holds it."""
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
        if (pid := _owner_of(address)) is None:
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
        pid = _read_pid(number)
        os.close(number)
        raise NameTaken(pid) from None
    with suppress(OSError):
        _write_pid(number)
    return lambda: os.close(number)


def _nothing() -> None:
    """Give back nothing."""


def _write_pid(file: int) -> None:
    os.ftruncate(file, 0)
    os.pwrite(file, f"{os.getpid()}\n".encode(), 0)


def _read_pid(file: int) -> int:
    """The process that wrote its number into a lock file; 0 if none did."""
    said = os.read(file, _PID_BYTES_MAX).strip()
    return int(said) if said.isdigit() else 0


_PID_BYTES_MAX = 32
_AGAIN_S = 0.01
"""Seconds after which a held lock is tried again: `holder` looks at it for a moment."""

_TRIES = 5
"""How often a lock file is opened that others replace meanwhile."""


def identity_of(path: Path) -> str:
    """What tells an existing lock file from every other one, on this machine until it starts again."""
    there = path.stat()
    try:
        started = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    except OSError:
        started = platform.node()
    return blake2b(f"{started} {there.st_dev} {there.st_ino}".encode(), digest_size=16).hexdigest()


def holder(path: Path) -> int | None:
    """The process that holds a lock file, 0 when it did not say which it is; None when nobody does."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return find_holder(name_of(path.parent))
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return _read_pid(file)
    except OSError:
        return None
    finally:
        os.close(file)
    return find_holder(name_of(path.parent))


class FileLock:
    """Holds a lock file, its directory and the names of paths, for as long as the process lives or until released.

    `also` are paths whose names are held too: no other home may use the same files.
    """

    def __init__(self, path: Path, also: Sequence[Path] = ()) -> None:
        self._path = path
        self._also = also
        self._file: int | None = None
        self._held: list[Callable[[], None]] = []

    def acquire(self) -> None:
        try:
            for path in dict.fromkeys(map(name_of, (self._path.parent, *self._also))):
                self._held.append(self._name(path))
            self._file = self._locked_file()
            self._held.append(self._locked_folder())
        except HomeError:
            self.release()
            raise
        _write_pid(self._file)

    def check(self) -> None:
        if self._file is not None and not _stands(self._file, self._path):
            raise StoreGone(f"{self._path} was deleted, moved or replaced while keepsaid held it")

    def release(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None
        while self._held:
            self._held.pop()()

    def _busy(self, pid: int | str) -> HomeBusy:
        hint = "quit that chat, or write in it" if _is_chat(pid) else None
        what = f"process {pid or 'unknown'} is already running this home ({self._path.parent})"
        return HomeBusy(f"{what}: a chat" if hint else what, hint=hint)

    def _name(self, name: str) -> Callable[[], None]:
        with suppress(NameTaken):
            return take(name)
        time.sleep(_AGAIN_S)
        try:
            return take(name)
        except NameTaken as taken:
            raise self._busy(taken.pid) from None

    def _locked_file(self) -> int:
        """The lock file, locked, and the one that stands at the path: another may have deleted it meanwhile."""
        for _ in range(_TRIES):
            try:
                file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise HomeError(f"{self._path} cannot be opened ({error.strerror})") from error
            if not _taken(file):
                said = os.read(file, _PID_BYTES_MAX).decode("ascii", "replace").strip()
                os.close(file)
                raise self._busy(said)
            if _stands(file, self._path):
                return file
            os.close(file)
        raise HomeError(f"{self._path} is replaced again and again by another program")

    def _locked_folder(self) -> Callable[[], None]:
        """The lock of the directory itself; nothing where the file system locks no directories."""
        folder = os.open(self._path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if _taken(folder):
                return lambda: os.close(folder)
        except OSError:
            os.close(folder)
            return _nothing
        os.close(folder)
        raise self._busy(0)


def _stands(file: int, path: Path) -> bool:
    """Whether an open file is the one that stands at a path."""
    try:
        return os.path.samestat(os.fstat(file), path.stat())
    except OSError:
        return False


def _taken(file: int) -> bool:
    for wait_s in (_AGAIN_S, 0.0):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(wait_s)
        else:
            return True
    return False


def _is_chat(pid: int | str) -> bool:
    """Whether a process was started as `keepsaid chat`, as far as the system tells."""
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"chat" in words[1:]
