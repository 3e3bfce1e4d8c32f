"""The history file of the interactive chat: entries of `+` lines under a comment with their time, as prompt_toolkit
writes them.

A chat that runs only ever appends to the file, so an entry that was removed does not come back.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path


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
        left = [entry for entry in entries if not holds(_text(entry))]
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


def _text(entry: bytes) -> str:
    lines = [line[1:] for line in entry.splitlines(keepends=True) if line.startswith(b"+")]
    return b"".join(lines).decode("utf-8", "replace").removesuffix("\n")
