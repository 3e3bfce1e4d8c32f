"""The home: where config, data, state, cache and token live (XDG, or KEEPSAID_HOME), and files written whole there."""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from keepsaid.errors import HomeError
from keepsaid.values import frozen

EXTENSIONS = "extensions"
"""The folder of extensions, beside the config file."""

_ELSEWHERE = "make that directory writable, or use another home: keepsaid --home DIR status"


@frozen
class Home:
    """Five directories; all are made with mode 0700."""

    config: Path
    data: Path
    state: Path
    cache: Path
    run: Path

    @classmethod
    def at(cls, root: Path | None = None) -> Home:
        """The home under `root`, else under KEEPSAID_HOME, else where XDG says."""
        named = root or (Path(os.environ["KEEPSAID_HOME"]) if os.environ.get("KEEPSAID_HOME") else None)
        if named is not None:
            base = named.expanduser().absolute()
            return cls(*(base / name for name in ("config", "data", "state", "cache", "run")))
        from platformdirs import PlatformDirs  # noqa: PLC0415 - only a home without a name needs it

        dirs = PlatformDirs("keepsaid", appauthor=False)
        state = dirs.user_state_path
        return cls(dirs.user_config_path, dirs.user_data_path, state, dirs.user_cache_path, state / "run")

    def make(self) -> None:
        """Make the directories; raises HomeError when they cannot be made or written."""
        for folder in (self.config, self.data, self.state, self.cache, self.run):
            try:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                if folder.stat().st_mode & 0o077:
                    folder.chmod(0o700)
            except OSError as error:
                raise HomeError(f"{folder} cannot be made ({error.strerror})", hint=_ELSEWHERE) from error
            if not os.access(folder, os.W_OK):
                safe = "Nothing was changed. Commands that only read still work."
                raise HomeError(f"this home is read-only: {folder} cannot be written", safe=safe, hint=_ELSEWHERE)

    @property
    def config_file(self) -> Path:
        """`config.yaml`."""
        return self.config / "config.yaml"

    @property
    def log_file(self) -> Path:
        """The log."""
        return self.state / "keepsaid.log"

    @property
    def typed_file(self) -> Path:
        """The lines that were typed in the interactive chat."""
        return self.state / "history"

    @property
    def runtime_file(self) -> Path:
        """Address and token of the running instance, mode 0600."""
        return self.run / "runtime.json"

    @property
    def lock_file(self) -> Path:
        """The instance lock."""
        return self.run / "lock"

    @property
    def extensions(self) -> Path:
        """The folder where extensions are put."""
        return self.config / EXTENSIONS

    @property
    def extensions_file(self) -> Path:
        """The last status of each extension that the runtime wrote."""
        return self.state / "extensions.json"

    def agent(self, name: str) -> Path:
        """The folder of an agent's identity files."""
        return self.config / "agents" / name

    def store(self, path: str) -> Path:
        """A database file: absolute, or in the data directory."""
        given = Path(path).expanduser()
        return given if given.is_absolute() else self.data / given


_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)
"""macOS keeps written data in the cache of the disk unless asked so."""


def sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, are on the disk. Raises OSError."""
    number = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        sync_open(number)
    finally:
        os.close(number)


def sync_open(number: int) -> None:
    """The same for an open file. Raises OSError."""
    if _FULL_SYNC is not None:
        with suppress(OSError):  # not every file system knows it
            fcntl.fcntl(number, _FULL_SYNC)
            return
    os.fsync(number)


def sync_tree(folder: Path) -> None:
    """Sync every file and directory below a directory, and itself. Raises OSError."""
    for place, _, files in os.walk(folder, topdown=False):
        for name in files:
            file = Path(place) / name
            if not file.is_symlink():
                sync(file)
        sync(Path(place))


def put_in_place(partial: Path, target: Path) -> None:
    """Sync what was written beside its place, and give it its name, for certain. Raises OSError."""
    (sync_tree if partial.is_dir() else sync)(partial)
    partial.replace(target)
    sync(target.parent)


def write_file(target: Path, content: str | bytes, mode: int = 0o600) -> None:
    """Write a file whole or not at all, on the disk when this returns. Raises OSError."""
    partial = target.with_name(f"{target.name}.partial")
    partial.unlink(missing_ok=True)
    number = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(number, "wb") as out:
            out.write(content.encode() if isinstance(content, str) else content)
            out.flush()
            sync_open(out.fileno())
        partial.replace(target)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    sync(target.parent)


def append_line(file: Path, line: str, mode: int = 0o600) -> None:
    """Add a line to a file, which is made when it is not there; on the disk when this returns. Raises OSError."""
    is_new = not file.exists()
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, mode)
    with os.fdopen(number, "ab") as out:
        out.write(f"{line}\n".encode())
        out.flush()
        sync_open(out.fileno())
    file.chmod(mode)
    if is_new:
        sync(file.parent)
