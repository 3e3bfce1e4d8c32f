"""Bundles: export memory to a file, and read one."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from keepsaid.config.home import sync, sync_open
from keepsaid.domain import bundle, bundle_lines, ids, visibility
from keepsaid.domain.memory import IMPORTANCE, OWNER, Kind, Listener, Memory
from keepsaid.errors import HomeError, InputError, SchemaTooNew
from keepsaid.memory.importing import ImportLine
from keepsaid.ports.memory_store import BundleContents, Bundles
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

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
    for fields in chain([{**header, **about, "counts": dict(told.counts)}], map(bundle_lines.line_of, told.records)):
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
        raise HomeError(
            f"{target} exists already",
            safe="It was not touched.",
            hint="add --force (in a program force=True) to replace it",
        )
    if not target.parent.is_dir():
        what = f"{target} cannot be written: {target.parent} is not a directory that exists"
        raise HomeError(what, safe="Nothing was written.", hint="name a file, or a directory that exists")
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
        raise _refused(f"{path} is not a bundle of keepsaid's memory", "keepsaid data import --help")
    if told.get("format") != FORMAT:
        what = f"{path} has format {str(told.get('format'))[:20]!r}; this keepsaid reads {FORMAT}"
        raise _refused(what, SchemaTooNew.hint)
    return told


def _read(number: int, raw: bytes) -> ImportLine:
    try:
        return ImportLine(number, bundle_lines.record_in(json.loads(raw.decode("utf-8"))))
    except bundle_lines.BundleLineError as error:
        return ImportLine(number, None, str(error))
    except UnicodeDecodeError:
        return ImportLine(number, None, "it is not UTF-8")
    except (ValueError, RecursionError):
        return ImportLine(number, None, "it is not JSON")


_NOBODY = "General"
_DAY_CHARS = 10
_MARKS = str.maketrans({mark: f"\\{mark}" for mark in "\\`*_{}[]<>#|"})


def write_pages(out: IO[bytes], told: BundleContents, about: dict[str, Any]) -> None:
    """Write what was learned, by subject and kind; what was said word for word is counted alone."""
    known: dict[str, dict[Kind, list[str]]] = defaultdict(lambda: defaultdict(list))
    rest = 0
    for record in told.records:
        if not isinstance(record, bundle.BundleEntry):
            continue
        memory = record.memory
        if memory.new.kind in IMPORTANCE and memory.state != "merged":
            subject = memory.new.subject or memory.new.subject_id or _NOBODY
            known[subject][memory.new.kind].append(_memory_line(memory))
        else:
            rest += 1
    out.write(_heading(about, rest).encode())
    for subject in sorted(known, key=lambda one: (one == _NOBODY, one.casefold())):
        out.write(f"\n## {_plain(subject)}\n".encode())
        for kind in IMPORTANCE:
            if known[subject].get(kind):
                lines = "\n".join(known[subject][kind])
                out.write(f"\n### {kind.capitalize()}\n\n{lines}\n".encode())


def _heading(about: dict[str, Any], rest: int) -> str:
    persons = ", ".join(map(str, about.get("persons") or ())) or "the owner, who reads everything"
    said = f"{rest:,} episodes, summaries and briefings are not on this page; `--format jsonl` has them."
    return f"# Memory\n\nMade at {about['made_at']}, for {_plain(persons)}. {said}\n"


def _memory_line(memory: Memory) -> str:
    new = memory.new
    held = [f"since {_day(memory.holds_from)}"]
    if memory.valid_to is not None:
        held.append(f"until {_day(memory.valid_to)}")
    held += ["archived"] if memory.state == "archived" else []
    held += [f"said by {_plain(new.speaker)}"] if new.speaker else []
    held += [f"told {memory.evidence} times"] if memory.evidence > 1 else []
    return f"- {_plain(new.text)} ({'; '.join(held)}; `{ids.show('memory', memory.id)}`)"


def _day(ms: int) -> str:
    return (ids.when(ms) or "ever")[:_DAY_CHARS]


def _plain(text: str) -> str:
    """A text on one line that is not markup."""
    return " ".join(text.split()).translate(_MARKS)


FORMATS: dict[str, tuple[str, Callable[[IO[bytes], BundleContents, dict[str, Any]], None]]] = {
    "jsonl": ("jsonl", write_lines),
    "markdown": ("md", write_pages),
}
"""The forms of an export: how such a file ends, and what writes it."""


def listeners_of(persons: Sequence[str]) -> tuple[Listener, ...]:
    """The readers: the owner, who reads everything, or these persons in their direct chats. Raises InputError."""
    named = [normalise(person).strip() for person in persons]
    for one in named:
        if one != OWNER and visibility.identity_in(one) is None:
            what = f"{one!r} names nobody: it takes CHANNEL:ACCOUNT:SENDER, or owner"
            raise InputError(what, safe="Nothing was written.", hint="keepsaid memory people ls")
    if not named:
        return (Listener(None, everything=True),)
    return tuple(Listener(None, person=one, direct=True, cross=True) for one in named)


def place_of(target: Path, form: str) -> Path:
    """The file to write: `target`, or one with the time in its name where that is a directory. Raises InputError."""
    if form not in FORMATS:
        raise InputError(f"there is no format {form!r}; one of: {', '.join(FORMATS)}", safe="Nothing was written.")
    if not target.is_dir():
        return target.absolute()
    stamp = time.strftime("%Y-%m-%dT%H%M%SZ", time.gmtime())
    return target.absolute() / f"{NAMED}memory-{stamp}.{FORMATS[form][0]}"


@frozen
class Export:
    """What was written: where, in which form, when (ISO 8601), for whom, how many of what, and its size in bytes."""

    file: Path
    format: str
    made_at: str
    persons: Sequence[str]
    counts: Mapping[str, int]
    bytes: int


async def export(bundles: Bundles, target: Path, form: str, persons: Sequence[str], *, force: bool) -> Export:
    """Write what the persons may hear, or everything, as of one moment. Raises InputError and HomeError."""
    listeners, place = listeners_of(persons), place_of(target, form)
    about: dict[str, Any] = {
        "made_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "persons": [one.person for one in listeners if not one.everything],
    }

    def write(told: BundleContents) -> dict[str, int]:
        with placed(place, force=force) as out:
            FORMATS[form][1](out, told, about)
        return dict(told.counts)

    counts = await bundles.export(listeners, write)
    return Export(place, form, about["made_at"], about["persons"], counts, place.stat().st_size)
