"""Opens what is imported, a zip archive, a folder or one file, within limits; nothing of it is written to disk."""

from __future__ import annotations

import json
import os
import stat
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import IO, Any

from keepsaid.errors import InputError
from keepsaid.values import frozen

FILES_MAX = 100_000
"""Files of one import."""

BYTES_MAX = 4_000_000_000
"""Bytes of one file, and of all files of an archive once they are unpacked."""

DOCUMENT_BYTES_MAX = 256_000_000
"""Bytes of a JSON document that is read whole."""

NOTE_BYTES_MAX = 4_000_000
"""Bytes of a text file."""

RATIO_MAX = 250
"""An archive that unpacks to more than RATIO_MAX times its size, and to more than SMALL_BYTES, is refused."""

SMALL_BYTES = 64_000_000
HEAD_BYTES = 256_000
DEPTH_MAX = 32
_NOT_SEARCHED = frozenset({".git", "node_modules", "__pycache__", ".venv"})
"""Folders of code, in which no program keeps what it remembers."""

_BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError)
"""Errors of a damaged, encrypted or unknown archive, and of a file that cannot be read."""

Opener = Callable[[str], IO[bytes]]
Sessions = Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]
"""Sessions of another program, each with its messages."""

ReadSessions = Callable[[Path], Sessions]
"""Reads the sessions in a database on disk, for reading only. Raises InputError."""


def refused(what: str) -> InputError:
    """The error of a file that is not imported."""
    return InputError(what, safe="Nothing was imported.", hint="keepsaid data import --help")


@frozen
class FileFacts:
    """The size of a file in bytes, and when it was changed last, in milliseconds UTC."""

    size: int
    changed_at: int


class ImportFiles:
    """The files of one import by their names in it, in order; `links` were not followed.

    `sessions` reads the sessions of a database among them, None where that is not possible.
    Raises InputError where a file cannot be read, or exceeds a limit.
    """

    def __init__(
        self,
        path: Path,
        found: Mapping[str, FileFacts],
        opener: Opener,
        links: tuple[str, ...] = (),
    ) -> None:
        self.path = path
        self.links = links
        self.sessions: ReadSessions | None = None
        self._found = dict(sorted(found.items()))
        self._opener = opener

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all files, with `/` between their parts."""
        return tuple(self._found)

    def named(self, fits: Callable[[PurePosixPath], bool]) -> list[str]:
        """The names of the files that fit."""
        return [name for name in self._found if fits(PurePosixPath(name))]

    def place_of(self, name: str) -> Path | None:
        """Where a file is on disk; None for one in an archive."""
        if zipfile.is_zipfile(self.path):
            return None
        return self.path / name if self.path.is_dir() else self.path

    def changed_at(self, name: str) -> int:
        """When a file was changed last, in milliseconds UTC."""
        return self._found[name].changed_at

    @contextmanager
    def open(self, name: str) -> Iterator[IO[bytes]]:
        """A file, to be read once from its start."""
        with self._guarded(name), self._opener(name) as file:
            yield file

    @contextmanager
    def _guarded(self, name: str) -> Iterator[None]:
        try:
            yield
        except _BROKEN as error:
            why = error.strerror if isinstance(error, OSError) and error.strerror else str(error) or "it is damaged"
            raise refused(f"{self.where(name)} cannot be read ({why})") from error

    def head(self, name: str) -> bytes:
        """The first HEAD_BYTES of a file."""
        with self.open(name) as file:
            return file.read(HEAD_BYTES)

    def where(self, name: str) -> str:
        """A file of it, as an error names it."""
        is_itself = self.path.name == name and self.path.is_file()
        return str(self.path) if is_itself else f"{self.path}: {name}"

    def text(self, name: str) -> str:
        """A text file; bytes that are not UTF-8 become U+FFFD."""
        return self._whole(name, NOTE_BYTES_MAX).decode("utf-8-sig", "replace")

    def document(self, name: str) -> Any:
        """A JSON document, read whole."""
        raw = self._whole(name, DOCUMENT_BYTES_MAX)
        try:
            return json.loads(raw.decode("utf-8-sig"))
        except RecursionError as error:
            raise refused(f"{self.where(name)} is nested too deeply") from error
        except ValueError as error:
            raise refused(f"{self.where(name)} is not JSON, or is not whole") from error

    def _whole(self, name: str, limit: int) -> bytes:
        if (size := self._found[name].size) > limit:
            raise refused(f"{self.where(name)} has {size:,} bytes; {limit:,} are allowed")
        with self.open(name) as file:
            return file.read(limit)


def open_files(path: Path, sessions: ReadSessions | None = None) -> ImportFiles:
    """The files of a path; `sessions` reads the sessions in a database.

    Raises InputError for what cannot be read, is empty, or exceeds a limit.
    """
    try:
        mode = path.stat().st_mode
        found = _of_folder(path) if stat.S_ISDIR(mode) else _of_file(path, mode)
    except OSError as error:
        raise refused(f"{path} cannot be read ({error.strerror})") from error
    if not found.names:
        raise refused(f"{path} holds no file")
    found.sessions = sessions
    return found


def _of_file(path: Path, mode: int) -> ImportFiles:
    if not stat.S_ISREG(mode):
        raise refused(f"{path} is neither a file nor a folder")
    with path.open("rb") as file:
        is_zip = file.read(4) in (b"PK\x03\x04", b"PK\x05\x06")
    if is_zip:
        return _of_zip(path)
    facts = _facts(path.stat())
    if facts.size > BYTES_MAX:
        raise refused(f"{path} has {facts.size:,} bytes; {BYTES_MAX:,} are allowed")
    return ImportFiles(path, {path.name: facts}, lambda _: path.open("rb"))


def _facts(found: os.stat_result) -> FileFacts:
    return FileFacts(found.st_size, int(found.st_mtime * 1000))


def _of_zip(path: Path) -> ImportFiles:
    try:
        archive = zipfile.ZipFile(path)
    except (zipfile.BadZipFile, NotImplementedError) as error:
        raise refused(f"{path} is a damaged archive ({error})") from error
    entries = [one for one in archive.infolist() if not one.is_dir()]
    total, packed = sum(one.file_size for one in entries), path.stat().st_size
    if len(entries) > FILES_MAX:
        raise refused(f"{path} has {len(entries):,} files; {FILES_MAX:,} are allowed")
    if total > BYTES_MAX or (total > SMALL_BYTES and total > RATIO_MAX * packed):
        raise refused(f"{path} would unpack to {total:,} bytes, from {packed:,}")
    links = tuple(one.filename for one in entries if stat.S_ISLNK(one.external_attr >> 16))
    found = {one.filename: FileFacts(one.file_size, _zip_time(one)) for one in entries if one.filename not in links}
    return ImportFiles(path, found, archive.open, links)


def _zip_time(entry: zipfile.ZipInfo) -> int:
    try:
        return int(datetime(*entry.date_time, tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0


def _of_folder(path: Path) -> ImportFiles:
    found: dict[str, FileFacts] = {}
    links: list[str] = []
    folders = [(path, "", 0)]
    while folders:
        folder, prefix, depth = folders.pop()
        with os.scandir(folder) as inside:
            for entry in inside:
                name = f"{prefix}{entry.name}"
                if entry.is_symlink():
                    links.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    if depth >= DEPTH_MAX or entry.name in _NOT_SEARCHED:
                        continue
                    folders.append((Path(entry.path), f"{name}/", depth + 1))
                elif entry.is_file(follow_symlinks=False):
                    found[name] = _facts(entry.stat(follow_symlinks=False))
        if len(found) > FILES_MAX:
            raise refused(f"{path} has more than {FILES_MAX:,} files")
    return ImportFiles(path, found, lambda name: _open_inside(path, name), tuple(sorted(links)))


def _open_inside(folder: Path, name: str) -> IO[bytes]:
    """A file of a folder, which is not a link even if it became one since."""
    number = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    file = os.fdopen(number, "rb")
    if not stat.S_ISREG(os.fstat(number).st_mode):
        file.close()
        raise OSError(0, "it is not a file any more")
    return file
