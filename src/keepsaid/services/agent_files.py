"""Files of coding agents: which project a folder belongs to, and the transcript of a session.

Every function here reads files, and so runs in a thread. No process is started. What is read is a regular file of
bounded size; a pipe or a device in its place is ignored.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from pathlib import Path
from typing import BinaryIO, NamedTuple

from keepsaid.domain.agent_hook import (
    HookLine,
    TranscriptLine,
    answer_key,
    prompt_key,
    repeated_key,
    transcript_line,
)
from keepsaid.domain.project import folder_project, remote_in, remote_project
from keepsaid.values import frozen

OFF_FILE = ".keepsaid-off"
"""A file of this name in a folder, or in one above it, turns the hooks off there."""

_BYTES_MAX = 256_000
_DEPTH_MAX = 64
_LINE_BYTES_MAX = 8_000_000
"""A longer line of a transcript holds files or pictures, and is passed over."""

_LINES_MAX = 2_000
"""Prompts and answers that one call of a hook records; the next call goes on."""


class Workplace(NamedTuple):
    """The project of a folder, and whether the hooks are turned off there."""

    project: str
    off: bool = False


@frozen
class TranscriptMark:
    """How far a transcript was read: a position in bytes, and how many times each prompt and answer came before it."""

    position: int = 0
    counts: Mapping[str, int] = field(default_factory=dict)


class TranscriptPart(NamedTuple):
    """Prompts and answers of a transcript, and where the next part begins."""

    lines: tuple[HookLine, ...]
    mark: TranscriptMark


def workplace(folder: str) -> Workplace:
    """Return the project of a folder: that of its git remote, else the repository or the folder itself."""
    if not folder.startswith("/") or "\0" in folder:
        return Workplace(folder_project(folder))
    at = Path(os.path.normpath(folder))
    above = (at, *at.parents)[:_DEPTH_MAX]
    off = any(_exists(one / OFF_FILE) for one in above)
    place = next((one for one in above if _exists(one / ".git")), None)
    return Workplace(folder_project(str(at)) if place is None else _repository(place), off)


def transcript_file(given: str, folder: Path) -> Path | None:
    """Return the real path of a transcript below a folder; None for any other file, also behind a link."""
    if not given.startswith("/") or "\0" in given:
        return None
    with suppress(OSError, RuntimeError, ValueError):
        real, within = Path(given).resolve(strict=True), folder.expanduser().resolve(strict=True)
        return real if real.suffix == ".jsonl" and within in real.parents else None
    return None


def read_transcript(file: Path, session: str, mark: TranscriptMark) -> TranscriptPart:
    """Return the next prompts and answers of a transcript; a last line that is not whole is left for the next time.

    A file that became shorter is read from its beginning. Raises OSError.
    """
    with _opened(file) as opened:
        size = os.fstat(opened.fileno()).st_size
        mark = mark if mark.position <= size else TranscriptMark()
        opened.seek(mark.position)
        position, counts, lines = mark.position, dict(mark.counts), list[HookLine]()
        for raw, size in _lines(opened):
            position += size
            if raw and (line := transcript_line(raw, session)):
                lines.append(HookLine(line.text, line.answer, _key(line, counts)))
            if len(lines) == _LINES_MAX:
                break
    return TranscriptPart(tuple(lines), TranscriptMark(position, counts))


def next_prompt_key(file: Path | None, session: str, mark: TranscriptMark, text: str) -> str:
    """Return the key of a prompt without a name that is about to be written to a transcript.

    The same call at the same position gives the same key, and so does the line of the prompt later.
    """
    counts: Mapping[str, int] = mark.counts
    with suppress(OSError):
        counts = counts if file is None else read_transcript(file, session, mark).mark.counts
    return repeated_key(text, counts.get(repeated_key(text, 0), 0) + 1)


def _key(line: TranscriptLine, counts: dict[str, int]) -> str:
    """The key of a line: that of its prompt where it is the first with that name, else its text and how often it came.

    Of further lines with the name of a prompt each has its own.
    """
    numbered = answer_key if line.answer else repeated_key
    name = prompt_key(line.prompt_id) if line.prompt_id else numbered(line.text, 0)
    counts[name] = counts.get(name, 0) + 1
    if not line.prompt_id:
        return numbered(line.text, counts[name])
    return name if counts[name] == 1 else line.uuid


def _lines(opened: BinaryIO) -> Iterator[tuple[bytes, int]]:
    """Whole lines with their bytes; of one that is too long the bytes alone."""
    while raw := opened.readline(_LINE_BYTES_MAX):
        size = len(raw)
        if raw.endswith(b"\n"):
            yield raw, size
        elif size < _LINE_BYTES_MAX:
            return
        else:
            while raw and not raw.endswith(b"\n"):
                raw = opened.readline(_LINE_BYTES_MAX)
                size += len(raw)
            yield b"", size


def _repository(place: Path) -> str:
    """The project of a folder that holds `.git`: a folder, or a file that says where it is."""
    common = place / ".git"
    if (written := _text_or_none(common)) is not None:
        named = written.partition("gitdir:")[2].strip()
        common = place / named if named else common
        if shared := _text_or_none(common / "commondir"):
            common /= shared.strip()
    root = Path(os.path.normpath(common))
    if url := remote_in(_text_or_none(root / "config") or ""):
        return remote_project(url)
    return folder_project(str(root.parent if root.name == ".git" else root))


def _text_or_none(file: Path) -> str | None:
    """The text of a file; None where there is none that can be read."""
    with suppress(OSError, ValueError):
        return _text(file)
    return None


def _text(file: Path) -> str:
    with _opened(file) as opened:
        return opened.read(_BYTES_MAX).decode("utf-8", "replace")


def _opened(file: Path) -> BinaryIO:
    """A regular file, opened for reading; nothing waits for a pipe. Raises OSError."""
    number = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(number).st_mode):
        os.close(number)
        raise OSError(f"{file} is not a file")
    return os.fdopen(number, "rb")


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False
