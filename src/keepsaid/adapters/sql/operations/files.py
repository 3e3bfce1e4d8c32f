"""Files: what came with messages, taken to be fetched, kept in pieces, and read again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from keepsaid.adapters.sql.operations import rows
from keepsaid.adapters.sql.query import Row, SqlSession, column, every, load, one, run, scalar
from keepsaid.adapters.sql.tombstones import seal
from keepsaid.domain.fetching import (
    AWAITED,
    BROUGHT,
    NOT_BROUGHT,
    FileJob,
    FileLease,
    KeepBrought,
    KeepFile,
    KeepPiece,
    LeaveFile,
    PutOffFile,
    RecoverFiles,
    TakeAwaited,
    TakeFiles,
)
from keepsaid.domain.files import FileState, PlacedFile, StoredFile, adding_words
from keepsaid.domain.message import Attachment, Content, Lane
from keepsaid.domain.states import move

SQL = load("files")
_OF_TURN = load("turn_files")
_LOOKED_AT = 64
_DROPPED = "its message was dropped"


def take(db: SqlSession, commit: TakeFiles) -> tuple[FileJob, ...]:
    jobs: list[FileJob] = []
    for row in every(db, SQL["due"], (commit.at, _LOOKED_AT)):
        file, batch = row[:2], scalar(db, SQL["batch_state"], row[11:])
        if batch == "dropped":
            db.post(SQL["leave"], (*file, move("file", "waiting", "leave"), _DROPPED))
        elif batch is not None and len(jobs) < commit.limit:
            db.post(SQL["take"], (*file, commit.until))
            jobs.append(_job(row))
    return tuple(jobs)


def recover(db: SqlSession, commit: RecoverFiles) -> int:
    return run(db, SQL["recover"], (commit.at, AWAITED))


def take_awaited(db: SqlSession, commit: TakeAwaited) -> tuple[FileLease, ...]:
    leases: list[FileLease] = []
    for n, fence, state in every(db, SQL["awaited"], (commit.message_id, AWAITED, NOT_BROUGHT)):
        moved = move("file", state, "want") if state == FileState.LEFT else state
        db.post(SQL["take_awaited"], (commit.message_id, n, moved, commit.until))
        leases.append(FileLease(commit.message_id, n, fence + 1))
    return tuple(leases)


def keep_brought(db: SqlSession, commit: KeepBrought) -> bool:
    if not _is_held(db, commit.lease):
        return False
    file = commit.lease[:2]
    db.post(SQL["cut_pieces"], (*file, commit.pieces))
    db.post(SQL["keep_brought"], (*file, BROUGHT))
    return True


def _job(row: Row) -> FileJob:
    lease = FileLease(row[0], row[1], row[2] + 1)
    channel, account, conversation = row[3:6]
    return FileJob(lease, channel, account, conversation, Attachment(*row[6:10]), row[10] + 1)


def keep_piece(db: SqlSession, commit: KeepPiece) -> bool:
    if not _is_held(db, commit.lease):
        return False
    db.post(SQL["keep_piece"], (*commit.lease[:2], commit.n, commit.content))
    return True


def keep(db: SqlSession, commit: KeepFile) -> bool:
    if not _is_held(db, commit.lease):
        return False
    file = commit.lease[:2]
    db.post(SQL["cut_pieces"], (*file, commit.pieces))
    state = move("file", "waiting", "keep")
    db.post(SQL["keep"], (*file, state, commit.kind, commit.size, commit.words, commit.reason))
    if commit.words:
        _add_words(db, commit.lease.message_id, commit.words)
    return True


def _add_words(db: SqlSession, message_id: int, words: str) -> None:
    """What is said in a recording is part of what its message says; one that is damaged stays as it is."""
    row = one(db, rows.SQL["message"], (message_id,))
    if row is None or (message := rows.message(row)).damaged:
        return
    before = message.inbound.content
    text = adding_words(before.text, words)
    inbound = replace(message.inbound, content=Content(before.payload, text, before.event))
    db.post(SQL["add_words"], (message_id, text, seal(inbound, message.received_at)))


def leave(db: SqlSession, commit: LeaveFile) -> bool:
    if not _is_held(db, commit.lease):
        return False
    file = commit.lease[:2]
    db.post(SQL["cut_pieces"], (*file, 0))
    db.post(SQL["leave"], (*file, move("file", "waiting", "leave"), commit.reason))
    return True


def put_off(db: SqlSession, commit: PutOffFile) -> bool:
    if not _is_held(db, commit.lease):
        return False
    db.post(SQL["put_off"], (*commit.lease[:2], commit.until, commit.reason))
    return True


def _is_held(db: SqlSession, lease: FileLease) -> bool:
    return one(db, SQL["held"], lease) is not None


def want(db: SqlSession, batch_id: int) -> None:
    """Fetch what came with the messages of a batch that was dropped and is not any more."""
    for message_id, n, state in every(db, SQL["left_of"], (batch_id, _DROPPED)):
        db.post(SQL["want"], (message_id, n, move("file", state, "want")))


def forget(db: SqlSession, message_id: int) -> None:
    """Delete what came with a message that is forgotten."""
    db.post(SQL["forget_files"], (message_id,))
    db.post(SQL["forget_pieces"], (message_id,))


def forget_of_turn(db: SqlSession, turn_id: int) -> None:
    """Delete what a turn made or sent that is forgotten."""
    db.post(_OF_TURN["forget"], (turn_id,))
    db.post(_OF_TURN["forget_pieces"], (turn_id,))


def next_due(db: SqlSession) -> int | None:
    found: int | None = scalar(db, SQL["next_due"])
    return found


def of_messages(db: SqlSession, message_ids: Sequence[int]) -> tuple[StoredFile, ...]:
    found = every(db, SQL["of_messages"], (db.numbers(message_ids),)) if message_ids else ()
    return tuple(map(file_of, found))


def placed(db: SqlSession, message_id: int, number: int) -> PlacedFile | None:
    row = one(db, SQL["one"], (message_id, number))
    return None if row is None else PlacedFile(file_of(row[:8]), Lane(*row[8:]))


def content(db: SqlSession, message_id: int, number: int) -> bytes:
    return b"".join(map(bytes, column(db, SQL["pieces"], (message_id, number))))


def payload(db: SqlSession, channel: str, account: str, provider_id: str) -> bytes | None:
    found = scalar(db, SQL["payload"], (provider_id, channel, account))
    return None if found is None else bytes(found)


def file_of(row: Row) -> StoredFile:
    message_id, n, name, kind, size, state, *why = row
    return StoredFile(message_id, n, name, kind, size, FileState(state), *why)
