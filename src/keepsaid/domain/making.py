"""Making: files leave a tool for the store, under the fence of the turn that called it.

A tool returns them beside its text, and its step is on record only once they are kept, in pieces as those that are
fetched (spec: channels, C14).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from keepsaid.domain.commits import Commit
from keepsaid.domain.fetching import PIECE_BYTES
from keepsaid.domain.files import FILES_MAX
from keepsaid.domain.media_types import kind_of
from keepsaid.domain.turn_files import MadeFile, TurnFile, file_name
from keepsaid.values import frozen

MADE_BYTES_MAX = 20_000_000
"""Of one file that a tool makes; a larger one is named alone."""

_STEP_FILES = 16
"""Numbers that each step of a turn has for its files: what is made again has the number that it had."""


@frozen
class KeepTurnPiece(Commit[bool]):
    """Keep the `n`-th piece of a file that a turn made, from 0; refused (False) when others have the turn."""

    turn_id: int
    fence: int
    number: int
    n: int
    content: bytes = field(repr=False)


@frozen
class KeepTurnFile(Commit[bool]):
    """All pieces of a file are there, `pieces` of them; refused (False) when others have the turn."""

    fence: int
    file: TurnFile
    pieces: int = 0


def numbered(turn_id: int, step: int, made: Sequence[MadeFile]) -> Iterator[tuple[TurnFile, bytes]]:
    """The files that a step made, as they are kept: with names that can be shown, and the types that their bytes show.

    What is empty or too large is left out, and all beyond ten.
    """
    for n, one in enumerate(made[:FILES_MAX]):
        if not 0 < len(one) <= MADE_BYTES_MAX:
            continue
        kind = one.kind if one.source else kind_of(one.content[:1_024], one.kind)
        number = step * _STEP_FILES + n + 1
        yield TurnFile(turn_id, number, file_name(one.name), kind, len(one), one.attached, one.source), one.content


def pieces_of(content: bytes) -> Iterator[bytes]:
    """The bytes of a file as they are kept, each piece in a commit of its own."""
    return (content[at : at + PIECE_BYTES] for at in range(0, len(content), PIECE_BYTES))
