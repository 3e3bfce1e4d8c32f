"""Bundles as files: a header, a record a line, and an end that says whether all of it is there; written aside first."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Container, Iterator
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from keepsaid.config.durable import sync, sync_open
from keepsaid.domain.bundle_lines import BundleLineError, line_of, record_in
from keepsaid.errors import HomeError, InputError
from keepsaid.memory.importing import ImportLine
from keepsaid.ports.memory_store import BundleContents

NAMED = "keepsaid-"
"""How names begin that we give ourselves, with the time behind it."""

_LEFT = re.compile(r"\.(?P<of>.+)\.[0-9a-f]{8}\.partial")


def partial_of(target: Path, folder: Path) -> Path:
    """A free name in a folder for what is to become `target`."""
    return folder / f".{target.name}.{secrets.token_hex(4)}.partial"


@contextmanager
def held(partial: Path) -> Iterator[None]:
    """A lock for as long as we live, so that nobody takes it for left; raises OSError where another has it."""
    number = os.open(partial, os.O_RDONLY)
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(number)


def clear(target: Path, *folders: Path) -> None:
    """Remove what is left in the folders of those who were killed: nothing forgotten is to be found in it.

    It is ours where it was to become the target, or something that we had named.
    """
    for partial in (one for folder in folders for one in folder.glob(".*.partial")):
        found = _LEFT.fullmatch(partial.name)
        if found and (found["of"] == target.name or found["of"].startswith(NAMED)):
            with suppress(OSError), held(partial):  # somebody is at it, or it is not ours
                shutil.rmtree(partial) if partial.is_dir() else partial.unlink()


KIND, FORMAT = "keepsaid memory", 1
LINE_BYTES_MAX = 8_000_000
_SAFE = "Nothing was imported."
_AGAIN = "keepsaid data export FILE"


def write_lines(out: IO[bytes], told: BundleContents, about: dict[str, Any]) -> None:
    """Write a bundle: its header, which tells `about` it, its records and its end."""
    header = {"type": KIND, "format": FORMAT, "schema": told.schema, "forgotten_key": told.key_print}
    whole, count = hashlib.sha256(), -1
    for fields in chain([{**header, **about, "counts": dict(told.counts)}], map(line_of, told.records)):
        line = _line(fields)
        whole.update(line)
        out.write(line)
        count += 1
    out.write(_line({"type": "end", "records": count, "sha256": whole.hexdigest()}))


def _line(fields: dict[str, Any]) -> bytes:
    return json.dumps(fields, ensure_ascii=False).encode("utf-8", "backslashreplace") + b"\n"


@contextmanager
def placed(target: Path, *, force: bool) -> Iterator[IO[bytes]]:
    """A file for its owner alone that takes the place of `target`, whole, when the block ends well.

    What is there is replaced with `force` only. What an export left there that was killed is removed. Raises HomeError.
    """
    if target.exists() and not force:
        raise HomeError(f"{target} exists already", safe="It was not touched.", hint="add --force to replace it")
    clear(target, target.parent)
    partial = partial_of(target, target.parent)
    try:
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out, held(partial):
            yield out
            out.flush()
            sync_open(out.fileno())
        _take_place(partial, target, force=force)
        sync(target.parent)
    except FileExistsError as error:
        raise HomeError(f"{target} exists already", safe="It was not touched.", hint="add --force") from error
    except OSError as error:
        raise HomeError(f"{target} cannot be written ({error.strerror})", safe="Memory was not touched.") from error
    finally:
        partial.unlink(missing_ok=True)


def _take_place(partial: Path, target: Path, *, force: bool) -> None:
    """Give a file its name; without `force` only where nothing has it, even if that came just now."""
    if not force:
        try:
            os.link(partial, target)
        except FileExistsError:
            raise
        except OSError as error:  # a file system without links
            if target.exists():
                raise FileExistsError from error
        else:
            return
    partial.replace(target)


class BundleFile:
    """A bundle on disk, proven whole when it is opened; raises InputError with nothing imported."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.header = self._proven()

    @property
    def key_print(self) -> str:
        """Which key its tombstones are made with."""
        return str(self.header.get("forgotten_key") or "")

    def lines(self, wanted: Container[int] | None = None) -> Iterator[ImportLine]:
        """Its records, by the number of their line; only those that are wanted are read closely."""
        for number, raw in self._raw():
            if number > 1 and (wanted is None or number in wanted):
                yield _read(number, raw)

    def _raw(self) -> Iterator[tuple[int, bytes]]:
        """All lines but the end, as they stand there."""
        with _opened(self._path) as file:
            number, before = 0, b""
            while line := file.readline(LINE_BYTES_MAX + 1):
                if len(line) > LINE_BYTES_MAX:
                    raise _refused(f"line {number + 1} of {self._path} has more than {LINE_BYTES_MAX:,} bytes")
                if number:
                    yield number, before
                number, before = number + 1, line

    def _proven(self) -> dict[str, Any]:
        whole, header, count = hashlib.sha256(), None, 0
        for number, raw in self._raw():
            header = _header(self._path, raw) if number == 1 else header
            whole.update(raw)
            count = number
        if header is None:
            _header(self._path, self._last())
            raise _refused(f"{self._path} breaks off after its header")
        end = _object(self._last())
        if end is None or end.get("type") != "end":
            raise _refused(f"{self._path} breaks off after line {count + 1}: it has no end")
        if end.get("sha256") != whole.hexdigest() or end.get("records") != count - 1:
            raise _refused(f"{self._path} is not as it was written: its checksum says otherwise")
        return header

    def _last(self) -> bytes:
        last = b""
        with _opened(self._path) as file:
            while line := file.readline(LINE_BYTES_MAX + 1):
                last = line
        return last


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with path.open("rb") as file:
            yield file
    except OSError as error:
        raise _refused(f"{path} cannot be read ({error.strerror})", "name a file") from error


def _refused(what: str, hint: str = _AGAIN) -> InputError:
    return InputError(what, safe=_SAFE, hint=hint)


def _object(raw: bytes) -> dict[str, Any] | None:
    try:
        told = json.loads(raw.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return told if isinstance(told, dict) else None


def _header(path: Path, raw: bytes) -> dict[str, Any]:
    told = _object(raw)
    if told is None or told.get("type") != KIND:
        raise _refused(f"{path} is no bundle of keepsaid's memory", "keepsaid data import --help")
    if told.get("format") != FORMAT:
        raise _refused(
            f"{path} has format {str(told.get('format'))[:20]!r}; this keepsaid reads {FORMAT}",
            "pip install -U keepsaid",
        )
    return told


def _read(number: int, raw: bytes) -> ImportLine:
    try:
        return ImportLine(number, record_in(json.loads(raw.decode("utf-8"))))
    except BundleLineError as error:
        return ImportLine(number, None, str(error))
    except UnicodeDecodeError:
        return ImportLine(number, None, "it is not UTF-8")
    except (ValueError, RecursionError):
        return ImportLine(number, None, "it is not JSON")
