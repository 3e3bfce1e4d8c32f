"""Files of turns: kept in pieces while a step runs, sent with a reply, and read again."""

from __future__ import annotations

from collections.abc import Sequence

from keepsaid.adapters.sql.operations import files, rows
from keepsaid.adapters.sql.query import SqlSession, column, load, one
from keepsaid.domain.files import FileState, read_handle
from keepsaid.domain.making import KeepTurnFile, KeepTurnPiece
from keepsaid.domain.message import Lane
from keepsaid.domain.turn_files import PlacedTurnFile, read_turn_handle

SQL = load("turn_files")
_HELD = load("turns")["held_turn"]


def keep_piece(db: SqlSession, commit: KeepTurnPiece) -> bool:
    if not _is_held(db, commit.turn_id, commit.fence):
        return False
    db.post(SQL["keep_piece"], (commit.turn_id, commit.number, commit.n, commit.content))
    return True


def keep(db: SqlSession, commit: KeepTurnFile) -> bool:
    file = commit.file
    if not _is_held(db, file.turn_id, commit.fence):
        return False
    place = (file.turn_id, file.number)
    db.post(SQL["cut_pieces"], (*place, commit.pieces))
    db.post(SQL["keep"], (*place, file.name, file.kind, file.size, file.attached, file.source))
    return True


def _is_held(db: SqlSession, turn_id: int, fence: int) -> bool:
    return one(db, _HELD, (turn_id, fence)) is not None


attached = rows.attached_files


def placed(db: SqlSession, turn_id: int, number: int) -> PlacedTurnFile | None:
    row = one(db, SQL["one"], (turn_id, number))
    return None if row is None else PlacedTurnFile(rows.turn_file(row[:7]), Lane(*row[7:]))


def content(db: SqlSession, turn_id: int, number: int) -> bytes | None:
    """The bytes of a file of a turn, or of its source; None if they are not there any more."""
    row = one(db, SQL["one"], (turn_id, number))
    if row is None or not (source := rows.turn_file(row[:7]).source):
        return None if row is None else _joined(column(db, SQL["pieces"], (turn_id, number)))
    if (made := read_turn_handle(source)) is not None:
        is_there = one(db, SQL["one"], made) is not None
        return _joined(column(db, SQL["pieces"], made)) if is_there else None
    came = read_handle(source)
    found = None if came is None else files.placed(db, *came)
    is_kept = found is not None and found.file.state is FileState.KEPT
    return files.content(db, *came) if came is not None and is_kept else None


def _joined(pieces: Sequence[bytes]) -> bytes:
    return b"".join(map(bytes, pieces))
