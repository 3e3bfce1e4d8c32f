"""The file of tombstones beside `forgotten.key`: it survives when an older copy of the stores is put in place."""

from __future__ import annotations

import errno
import logging
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from keepsaid.config.home import append_line, write_file
from keepsaid.errors import StoreError, StoreFull
from keepsaid.text.normal import counted

_log = logging.getLogger("keepsaid.forget")
_CHECK_BYTES = 4


class Parsed(NamedTuple):
    """The tombstones of a file, its damaged lines, and whether its last line is incomplete, as after a crash."""

    hashes: frozenset[bytes]
    damaged: int = 0
    is_torn: bool = False


class TombstoneFile:
    """One line for each tombstone: the hash and its CRC-32, in hexadecimal. Without a path it is kept in memory."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._in_memory: set[bytes] = set()
        self._lock = threading.Lock()

    def read(self) -> frozenset[bytes]:
        """Return every tombstone; damaged lines are logged and left out. Raises StoreError."""
        found = self._parsed()
        if found.damaged:
            lines = counted(found.damaged, "damaged line")
            _log.warning("%s has %s: these tombstones are read from the stores alone", self._path, lines)
        return found.hashes

    def add(self, hashes: Iterable[bytes]) -> None:
        """Add tombstones, on the disk when this returns; a damaged file is written again. Raises StoreError."""
        with self._lock:
            known = self._parsed()
            new = dict.fromkeys(hash_ for hash_ in hashes if hash_ not in known.hashes)
            if known.damaged or known.is_torn:
                self._replace(known.hashes.union(new))
            elif self._path is None:
                self._in_memory.update(new)
            elif new:
                try:
                    append_line(self._path, "\n".join(map(_line, new)))
                except OSError as error:
                    raise _failed(self._path, error) from error

    def remove(self, hashes: Iterable[bytes]) -> None:
        """Remove tombstones whose forgetting is undone. Raises StoreError with the file as it was."""
        with self._lock:
            known, gone = self._parsed().hashes, frozenset(hashes)
            if not known.isdisjoint(gone):
                self._replace(known - gone)

    def _parsed(self) -> Parsed:
        if self._path is None:
            return Parsed(frozenset(self._in_memory))
        try:
            return _parse(self._path.read_bytes())
        except FileNotFoundError:
            return Parsed(frozenset())
        except OSError as error:
            hint = f"make {self._path} readable"
            raise StoreError(f"{self._path} cannot be read ({error.strerror})", hint=hint) from error

    def _replace(self, hashes: Iterable[bytes]) -> None:
        if self._path is None:
            self._in_memory = set(hashes)
            return
        try:
            write_file(self._path, "".join(f"{_line(hash_)}\n" for hash_ in sorted(hashes)))
        except OSError as error:
            raise _failed(self._path, error) from error


def _parse(raw: bytes) -> Parsed:
    *lines, last = raw.split(b"\n")
    read = [_hash_of(line) for line in lines]
    return Parsed(frozenset(one for one in read if one is not None), read.count(None), bool(last))


def _hash_of(line: bytes) -> bytes | None:
    try:
        raw = bytes.fromhex(line.decode("ascii"))
    except ValueError:
        return None
    hash_ = raw[:-_CHECK_BYTES]
    return hash_ if hash_ and line.decode() == _line(hash_) else None


def _line(hash_: bytes) -> str:
    return (hash_ + crc32(hash_).to_bytes(_CHECK_BYTES, "big")).hex()


def _failed(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StoreFull(f"the disk is full: no space left for {path}")
    return StoreError(f"{path} cannot be written ({error.strerror})", hint=f"make {path.parent} writable")
