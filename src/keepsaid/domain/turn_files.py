"""Files of turns: made by their tools, or sent with their reply; kept as long as their turn is.

What is attached goes with the reply: each file is a message of its own, or part of one, as the medium has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field

from keepsaid.domain.ids import read, show
from keepsaid.domain.message import Lane, Trust, Trusted
from keepsaid.text.normal import cut, named_short, normalise
from keepsaid.values import frozen

_NAME_CHARS_MAX = 120
_NOT_IN_NAMES = '"<>:|?*'


@frozen
class MadeFile:
    """A file that a tool returns: its bytes, or the handle of the kept one that has them (`source`).

    `attached` says that it goes with the reply of the turn.
    """

    name: str
    kind: str
    content: bytes = field(default=b"", repr=False)
    source: str = ""
    size: int = 0
    attached: bool = False

    def __len__(self) -> int:
        """Its size in bytes."""
        return self.size if self.source else len(self.content)


class WithFiles(Trusted):
    """What a tool returns: a text, its trust, and files. They are kept with the turn, and named below the text."""

    files: tuple[MadeFile, ...]

    def __new__(cls, text: str, trust: Trust, files: Sequence[MadeFile]) -> WithFiles:
        """The text with its files."""
        made = super().__new__(cls, text, trust)
        assert isinstance(made, WithFiles)
        made.files = tuple(files)
        return made


@frozen
class TurnFile:
    """A file of a turn, by its number: what is `attached` goes with the reply.

    `kind` is its media type, `size` its bytes. Those of one with a `source` are kept under that handle.
    """

    turn_id: int
    number: int
    name: str
    kind: str
    size: int
    attached: bool = False
    source: str = ""

    @property
    def handle(self) -> str:
        """What the agent and the program call it by: `trn_01k2.../17`."""
        return turn_file_handle(self.turn_id, self.number)

    @property
    def described(self) -> str:
        """Its name, type and size, on one line."""
        return f"{named_short(self.name)} ({named_short(self.kind)}, {self.size:,} bytes)"


@frozen
class PlacedTurnFile:
    """A file of a turn, and the lane of the turn."""

    file: TurnFile
    lane: Lane


def turn_file_handle(turn_id: int, number: int) -> str:
    """The handle of a turn's file."""
    return f"{show('turn', turn_id)}/{number}"


def read_turn_handle(text: str) -> tuple[int, int] | None:
    """The turn and the number in a handle; None for a text that is none."""
    turn, slash, number = text.strip().rpartition("/")
    found = read("turn", turn) if slash and turn.startswith("trn_") else None
    return None if found is None or not number.isascii() or not number.isdecimal() else (found, int(number[:9]))


def file_name(given: str) -> str:
    """A name that media can show and disks can hold: without folders and what cannot be seen, and not too long."""
    last = normalise(given).replace("\\", "/").rpartition("/")[2]
    shown = "".join(letter if letter.isprintable() and letter not in _NOT_IN_NAMES else " " for letter in last)
    clean = " ".join(shown.split()).lstrip(".")
    stem, dot, ending = clean.rpartition(".")
    if dot and len(clean) > _NAME_CHARS_MAX and len(ending) <= 10:
        return f"{cut(stem, _NAME_CHARS_MAX - len(ending) - 1)}.{ending}"
    return cut(clean, _NAME_CHARS_MAX) or "file"
