"""Logs of a play: their ends explain a failure (short: the stage and the report both read them)."""

from __future__ import annotations

from pathlib import Path

_TAIL_CHARS = 16_000
_FULL = '"code": "KS-DB-FULL"'


class Logs:
    """What the processes of a play wrote, and what the runtime logged in its home."""

    def __init__(self, folder: Path, home: Path) -> None:
        self._folder = folder
        self._home = home

    def tails(self) -> str:
        """The ends of all."""
        files = [*sorted(self._folder.glob("*.log")), *self._kept()]
        return "\n".join(f"{file.name}:\n{file.read_text('utf-8', 'replace')[-_TAIL_CHARS:]}" for file in files)

    def complaints(self, *, full: bool = False) -> list[str]:
        """What the runtime's log says of errors; being killed is none, nor, where that may be, that a disk is full."""
        lines = (line for file in self._kept() for line in file.read_text("utf-8").splitlines())
        # The last line may have been cut short by a kill.
        errors = [line for line in lines if '"level": "error"' in line or '"level": "critical"' in line]
        return [line for line in errors if not (full and _FULL in line)]

    def _kept(self) -> list[Path]:
        return sorted(self._home.glob("state/*.log"))
