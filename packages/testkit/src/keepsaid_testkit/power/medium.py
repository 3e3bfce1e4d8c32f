"""The medium: what a disk keeps for certain, what it still owes, and what is left of both when the power goes.

SQLite's assumptions are the rules: a sync keeps the file, the first sync of a new journal or log keeps the
names of its folder too; anything else may be kept, lost, torn at a sector, or kept in another order.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

from keepsaid.values import frozen

SECTOR = 512
"""Bytes that a disk writes in one piece."""


@frozen
class Written:
    """Bytes at a place of a file."""

    offset: int
    data: bytes


@frozen
class Resized:
    """A file cut or filled to a size in bytes."""

    size: int


Change = Written | Resized


class Sheet:
    """The bytes of one file, under whatever name: those kept for certain, and the changes since."""

    def __init__(self, kept: bytes = b"") -> None:
        self.kept = bytearray(kept)
        self.owed: list[Change] = []

    def sync(self) -> None:
        """Keep all changes for certain."""
        for change in self.owed:
            _apply(self.kept, change)
        self.owed.clear()

    def left(self, chance: Random) -> bytes:
        """What a power cut leaves of it."""
        image = bytearray(self.kept)
        for change in _surviving(self.owed, chance):
            _apply(image, change)
        return bytes(image)


def _apply(image: bytearray, change: Change) -> None:
    if isinstance(change, Resized):
        del image[change.size :]
        image.extend(bytes(change.size - len(image)))
        return
    image.extend(bytes(max(0, change.offset - len(image))))
    image[change.offset : change.offset + len(change.data)] = change.data


def _surviving(owed: list[Change], chance: Random) -> list[Change]:
    fate = chance.choice(("nothing", "everything", "the first", "any"))
    if fate == "nothing" or not owed:
        return []
    if fate == "everything":
        return owed
    if fate == "the first":
        until = chance.randrange(len(owed))
        return [*owed[:until], *_torn(owed[until], chance)]
    left: list[Change] = []
    for change in owed:
        lot = chance.random()
        if lot < 0.5:
            left.append(change)
        elif lot < 0.75:
            left += _torn(change, chance)
    if chance.random() < 0.5:
        chance.shuffle(left)
    return left


def _torn(change: Change, chance: Random) -> Iterator[Change]:
    """The sectors of a write that arrived, some as rubbish; a change of size comes whole or not at all."""
    if isinstance(change, Resized):
        yield from [change] if chance.random() < 0.5 else []
        return
    start, end = change.offset, change.offset + len(change.data)
    while start < end:
        until = min(end, start - start % SECTOR + SECTOR)
        lot = chance.random()
        if lot < 0.45:
            yield Written(start, change.data[start - change.offset : until - change.offset])
        elif lot < 0.6:
            yield Written(start, chance.randbytes(until - start))
        start = until


class Medium:
    """All files of one folder on a disk whose power goes at its change number `last`.

    A medium that is not `honest` reports every sync as done and does nothing.
    """

    def __init__(self, last: int, *, honest: bool = True) -> None:
        self.changes = 0
        self._last = last
        self._honest = honest
        self._names: dict[str, Sheet] = {}
        self._kept_names: dict[str, Sheet] = {}
        self._moves: list[tuple[str, Sheet | None]] = []

    def dead(self) -> bool:
        """Whether the power is gone."""
        return self.changes >= self._last

    def known(self, name: str) -> bool:
        """Whether there is a file of that name."""
        return name in self._names

    def adopt(self, name: str, data: bytes) -> None:
        """Take in a file that stood here before, kept for certain."""
        self._names[name] = self._kept_names[name] = Sheet(data)

    def create(self, name: str) -> bool:
        """A new file; False, here and below, when the power is gone: the change may be among those left over."""
        if not self.dead():
            self._names[name] = Sheet()
            self._moves.append((name, self._names[name]))
        return self._alive()

    def delete(self, name: str, *, synced: bool) -> bool:
        """The name of a file goes, for certain if the folder is `synced` with it."""
        if not self.dead():
            self._names.pop(name, None)
            self._moves.append((name, None))
        return self._alive() and (not synced or self.sync_names())

    def change(self, name: str, change: Change) -> bool:
        """A write or a change of size."""
        if not self.dead():
            self._names[name].owed.append(change)
        return self._alive()

    def sync(self, name: str) -> bool:
        """Keep what a file holds for certain."""
        alive = self._alive()
        if alive and self._honest:
            self._names[name].sync()
        return alive

    def sync_names(self) -> bool:
        """Keep the names of the folder for certain."""
        alive = self._alive()
        if alive and self._honest:
            for name, sheet in self._moves:
                _enter(self._kept_names, name, sheet)
            self._moves.clear()
        return alive

    def leave(self, folder: Path, chance: Random) -> None:
        """Write what is left after the cut into a folder."""
        names = dict(self._kept_names)
        for name in dict.fromkeys(name for name, _ in self._moves):
            moves = [sheet for moved, sheet in self._moves if moved == name]
            for sheet in moves[: chance.randint(0, len(moves))]:
                _enter(names, name, sheet)
        for name, sheet in names.items():
            (folder / name).write_bytes(sheet.left(chance))

    def _alive(self) -> bool:
        """Count a change; False for the last, which is begun and never ends, and for all after it."""
        if not self.dead():
            self.changes += 1
        return not self.dead()


def _enter(names: dict[str, Sheet], name: str, sheet: Sheet | None) -> None:
    if sheet is None:
        names.pop(name, None)
    else:
        names[name] = sheet
