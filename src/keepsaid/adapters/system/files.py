"""Files beside the stores: identity files and skills, read again when they change, and the chat's history."""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import yaml

from keepsaid.domain.personality import Skill, Skills
from keepsaid.text.normal import normalise

_log = logging.getLogger("keepsaid.identity")
_NAMES = ("SOUL.md", "IDENTITY.md", "USER.md")
_BYTES_MAX = 4_000_000

Stamp = tuple[int, int, int]
"""Modification time, size and number of a file."""

_NO_FILE: Stamp = (0, 0, 0)


def _stamped(file: Path) -> Stamp:
    try:
        found = file.stat()
    except OSError:
        return _NO_FILE
    return found.st_mtime_ns, found.st_size, found.st_ino


class IdentityFiles:
    """SOUL.md, IDENTITY.md and USER.md of one agent."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stamp: tuple[Stamp, ...] = (_NO_FILE,) * len(_NAMES)
        self._text = ""

    async def read(self) -> str:
        """The files as they stand now, joined; one that cannot be read is left out, and logged."""
        # taken before the files are read, so that a change made meanwhile is found by the next turn
        if (stamp := tuple(_stamped(self._folder / name) for name in _NAMES)) != self._stamp:
            self._text = await asyncio.to_thread(self._load)
            self._stamp = stamp
        return self._text

    async def texts(self) -> dict[str, str]:
        """The text of each file that is there and not empty, by its name."""
        return await asyncio.to_thread(self._texts)

    def _load(self) -> str:
        return "\n\n".join(f"# {name}\n{text}" for name, text in self._texts().items())

    def _texts(self) -> dict[str, str]:
        return {name: text for name in _NAMES if (text := self._read(name))}

    def _read(self, name: str) -> str:
        try:
            with (self._folder / name).open("rb") as opened:
                raw = opened.read(_BYTES_MAX)
        except FileNotFoundError:
            return ""
        except OSError as error:
            _log.warning("%s cannot be read (%s): it is left out of every prompt", name, error.strerror)
            return ""
        return normalise(raw.decode("utf-8-sig", "replace")).strip()


FOLDERS_MAX = 200
BYTES_MAX = 256_000
_DESCRIPTION_CHARS_MAX = 1_024
_FILE = "SKILL.md"
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_NAME_CHARS_MAX = 64
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)(.*)", re.DOTALL | re.MULTILINE)
_UNREADABLE = (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError)


class SkillFolder:
    """`skills/NAME/SKILL.md` below one agent's folder: YAML between two lines of `---`, then the text."""

    def __init__(self, agent: Path) -> None:
        self._folder = agent / "skills"
        self._stamp: dict[str, Stamp] = {}
        self._skills = Skills()

    async def read(self) -> Skills:
        """The skills as they stand now, by name; a broken one is named and left out."""
        if (stamp := self._look()) != self._stamp:
            self._skills = await asyncio.to_thread(self._load, list(stamp))
            self._stamp = stamp
        return self._skills

    def _look(self) -> dict[str, Stamp]:
        """The stamp of each skill's file, which tells whether any was changed."""
        try:
            with os.scandir(self._folder) as entries:
                names = sorted(entry.name for entry in entries if not entry.name.startswith("."))
        except OSError:
            return {}
        return {name: _stamped(self._folder / name / _FILE) for name in names}

    def _load(self, names: list[str]) -> Skills:
        known: dict[str, Skill] = {}
        broken: list[tuple[str, str]] = []
        for name in names:
            if not (self._folder / name).is_dir():
                continue
            try:
                skill = read_skill(self._folder / name / _FILE)
                if skill.name in known:
                    raise ValueError(f"another folder has a skill called {skill.name!r}")
                if len(known) == FOLDERS_MAX:
                    raise ValueError(f"there are {FOLDERS_MAX} skills before it, which is the most")
            except ValueError as error:
                broken.append((" ".join(normalise(name).split()), str(error)))
            else:
                known[skill.name] = skill
        return Skills(tuple(known[name] for name in sorted(known)), tuple(broken))


def read_skill(file: Path) -> Skill:
    """One skill; raises ValueError that says what is wrong with it."""
    try:
        with file.open("rb") as opened:
            raw = opened.read(BYTES_MAX + 1)
    except FileNotFoundError:
        raise ValueError(f"it has no {_FILE}") from None
    except OSError as error:
        raise ValueError(f"{_FILE} cannot be read ({error.strerror})") from None
    if len(raw) > BYTES_MAX:
        raise ValueError(f"{_FILE} is larger than {BYTES_MAX:,} bytes")
    text = normalise(raw.decode("utf-8-sig", "replace")).replace("\r\n", "\n")
    if (found := _FRONT.match(text)) is None:
        raise ValueError(f"{_FILE} does not begin with name and description between two lines of ---")
    front = _mapping(found.group(1))
    name, description = _text(front, "name"), _text(front, "description")
    if len(name) > _NAME_CHARS_MAX or _NAME.fullmatch(name) is None:
        raise ValueError(f"its name {name[:_NAME_CHARS_MAX]!r} is not small letters, digits and single hyphens")
    if len(description) > _DESCRIPTION_CHARS_MAX:
        raise ValueError(f"its description is longer than {_DESCRIPTION_CHARS_MAX:,} characters")
    if not (body := found.group(2).strip()):
        raise ValueError(f"{_FILE} says nothing below its second ---")
    return Skill(name, description, body)


def _mapping(text: str) -> dict[object, object]:
    try:
        front = yaml.safe_load(text)
    except _UNREADABLE:
        raise ValueError("what stands between its lines of --- is not YAML") from None
    if not isinstance(front, dict):
        raise ValueError("the part between its lines of --- is not a list of names and values")
    return front


def _text(front: dict[object, object], key: str) -> str:
    value = front.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"it has no {key}")
    return value.strip()


class HistoryFile:
    """The history in a file, which may not exist."""

    def __init__(self, file: Path) -> None:
        self._file = file

    async def forget(self, holds: Callable[[str], bool]) -> int:
        """Remove the entries for which `holds` is true, for good; returns how many there were."""
        return await asyncio.to_thread(self._forget, holds)

    def _forget(self, holds: Callable[[str], bool]) -> int:
        try:
            raw = self._file.read_bytes()
        except FileNotFoundError:
            return 0
        entries = list(_entries(raw))
        left = [entry for entry in entries if not holds(_typed_text(entry))]
        if len(left) == len(entries):
            return 0
        partial = self._file.with_name(f"{self._file.name}.partial")
        partial.unlink(missing_ok=True)
        descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as out:
            out.write(b"".join(left))
            out.flush()
            os.fsync(out.fileno())
        partial.replace(self._file)
        return len(entries) - len(left)


def _entries(raw: bytes) -> Iterator[bytes]:
    """The entries, each with the lines before its text that belong to it."""
    entry, typed = b"", False
    for line in raw.splitlines(keepends=True):
        if typed and not line.startswith(b"+"):
            yield entry
            entry, typed = b"", False
        entry += line
        typed = typed or line.startswith(b"+")
    if entry:
        yield entry


def _typed_text(entry: bytes) -> str:
    lines = [line[1:] for line in entry.splitlines(keepends=True) if line.startswith(b"+")]
    return b"".join(lines).decode("utf-8", "replace").removesuffix("\n")
