"""The judge sees every kind of half: each damage done to a sound store is found, and named."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import apsw
import pytest

from keepsaid_testkit.power.book import Book, Entry
from keepsaid_testkit.power.judge import Finding, judge
from keepsaid_testkit.power.strike import Mode, PowerPlay, strike

STORE = "buffer.db"
ANSWERED = "(SELECT max(id) FROM turn WHERE state = 'committed')"

DAMAGE = {
    "DELETE FROM message WHERE number = 1": "a lane does not count its messages",
    "UPDATE lane SET last_id = last_id - 1": "a lane does not end with its last message",
    "UPDATE message SET previous_id = NULL WHERE number = 3": "a message does not follow the one before it",
    "DELETE FROM lane_mark": "a marked message is not there, or one is not marked",
    "DELETE FROM message_key": "a folded key is not in the index",
    "UPDATE message_key SET message_id = -1": "a key is of no message",
    "UPDATE batch SET first = first + 1 WHERE last > first": "do not follow one another",
    "UPDATE batch SET last_id = last_id - 1": "a batch does not end with its last message",
    "UPDATE batch SET state = 'queued' WHERE state = 'done'": "a batch that is done has not one committed turn",
    f"DELETE FROM turn WHERE id = {ANSWERED}": "a batch that is done has not one committed turn",
    f"DELETE FROM transcript WHERE turn_id = {ANSWERED}": "a committed turn has not its transcript",
    f"UPDATE turn SET state = 'open' WHERE id = {ANSWERED}": "a transcript is of a turn that is not committed",
    "UPDATE lane SET transcript = transcript + 1": "a transcript has holes",
    f"DELETE FROM reply WHERE turn_id = {ANSWERED}": "a committed turn has not one reply",
    f"DELETE FROM journal WHERE correlation_id = CAST({ANSWERED} AS TEXT)": "one line in the journal",
    f"DELETE FROM episode_due WHERE turn_id = {ANSWERED}": "work for its episode",
    "DELETE FROM turn WHERE state = 'open'": "a leased batch has no open turn",
    "UPDATE step SET output = NULL": "a finished one has no output",
    "DELETE FROM ready": "a lane with work does not say so",
    "UPDATE lane SET due_at = NULL": "a lane that waits is not due",
    "UPDATE message SET text = 'x' || substr(text, 2) WHERE number = 2": "is not what was sent",
}


AT_WORK = """
    SELECT EXISTS (SELECT 1 FROM ready) AND EXISTS (SELECT 1 FROM turn WHERE state = 'open')
      AND EXISTS (SELECT 1 FROM lane WHERE due_at IS NOT NULL) AND EXISTS (SELECT 1 FROM episode_due)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Book]]:
    """A store after a cut that found work of every kind in it, and its book."""
    for seed in range(1, 50):
        folder, book = tmp_path_factory.mktemp("sound"), Book()
        finding = asyncio.run(strike(folder, 10_000, PowerPlay(Mode.FULL, book, Random(seed))))
        assert (finding.lost, finding.corrupt) == ((), ())
        if at_work(folder / "home" / STORE):
            break
        shutil.rmtree(folder)
    book.settle(finding.found)
    yield folder / "home", book
    shutil.rmtree(folder)


def at_work(path: Path) -> bool:
    with closing(apsw.Connection(str(path))) as db:
        return db.execute(AT_WORK).fetchall() == [(1,)]


def damaged(sound: tuple[Path, Book], place: Path, sql: str) -> Path:
    shutil.copytree(sound[0], place, dirs_exist_ok=True)
    with closing(apsw.Connection(str(place / STORE))) as db:
        db.execute(sql)
    return place / STORE


async def judged(path: Path, book: Book) -> Finding:
    return await judge(path, Book(book.sent, book.kept, book.doubt, book.last_id))


@pytest.mark.parametrize("sql", DAMAGE)
async def test_what_is_half_there_is_found(sound: tuple[Path, Book], tmp_path: Path, sql: str) -> None:
    finding = await judged(damaged(sound, tmp_path, sql), sound[1])
    assert any(DAMAGE[sql] in line for line in finding.corrupt), finding.corrupt


async def test_what_is_gone_is_lost(sound: tuple[Path, Book], tmp_path: Path) -> None:
    path = damaged(sound, tmp_path, "DELETE FROM step WHERE state = 'finished'")
    finding = await judged(path, sound[1])
    assert {sign[0] for sign in finding.lost} == {"step", "finished"}


async def test_half_a_transaction_is_found(sound: tuple[Path, Book], tmp_path: Path) -> None:
    path, book = damaged(sound, tmp_path, "VACUUM"), sound[1]
    there, gone = Entry(("message", int(book.kept[1][1]))), Entry(("message", -1))
    kept = [sign for sign in book.kept if sign != there.sign]
    finding = await judge(path, Book(book.sent, kept, (there, gone), book.last_id))
    assert finding.corrupt == (f"of one transaction {[there.sign]} is there and {[gone.sign]} is not",)


async def test_a_file_that_cannot_be_opened_loses_all(sound: tuple[Path, Book], tmp_path: Path) -> None:
    path = tmp_path / STORE
    await asyncio.to_thread(path.write_bytes, b"not a database at all")
    finding = await judged(path, sound[1])
    assert len(finding.lost) == len(sound[1].kept)
    assert finding.corrupt[0].startswith("it cannot be opened: ")
