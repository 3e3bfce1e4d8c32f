"""Reserve: the last of the disk is kept for the answers under way; below it nothing new is taken in."""

from __future__ import annotations

import logging

from keepsaid.errors import DiskReserve
from keepsaid.ports.runtime import Space

_log = logging.getLogger("keepsaid.buffer")
_MEGABYTE = 1_000_000


class Reserve:
    """Knows whether messages may come in. It looks at the disk when told to, never for a message.

    Replies, steps, their log and its moves into the file need what is below the floor.
    """

    def __init__(self, space: Space, floor_mb: int) -> None:
        self._space = space
        self._floor_mb = floor_mb
        self._refusal: str | None = None

    @property
    def reached(self) -> bool:
        """Whether too little is left to take anything in."""
        return self._refusal is not None

    def look(self) -> None:
        """Look at the disk; says in the log when intake stops and when it goes on."""
        free = self._space.free_bytes()
        before, self._refusal = self._refusal, None
        if free < self._floor_mb * _MEGABYTE:
            self._refusal = (
                f"{free / _MEGABYTE:,.1f} MB of disk are free; below {self._floor_mb} MB nothing is taken in"
            )
        if self._refusal is not None and before is None:
            _log.warning("intake stops: %s", self._refusal, extra={"code": DiskReserve.code})
        if self._refusal is None and before is not None:
            _log.warning("intake goes on: %.1f MB of disk are free", free / _MEGABYTE, extra={"code": DiskReserve.code})

    def check(self) -> None:
        """Raise DiskReserve when nothing may come in."""
        if self._refusal is not None:
            raise DiskReserve(self._refusal)
