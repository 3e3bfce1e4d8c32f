"""The keys of messages: what came before is known, wherever its key stands; what was refused is not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.disk import Disk, layered

from keepsaid.adapters.sql.operations.intake import MessageInserter
from keepsaid.adapters.sql.query import CommitTable
from keepsaid.adapters.sql.writer import RejectedCommit
from keepsaid.adapters.sqlite.writer import TransactionExecutor
from keepsaid.domain.commits import IntakeResult as Verdict
from keepsaid.domain.commits import Receive, Received
from keepsaid.domain.message import Content, ProviderMarks
from keepsaid.errors import StoreFull
from keepsaid.testing.builders import AT_ONCE, arrival, said

STORED, DUPLICATE, CONFLICT = Verdict


def named(number: int, key: str | None, text: str = "hello", room: str = "room") -> Receive:
    return Receive(arrival(number, said(text, room, marks=ProviderMarks(external_id=key))), AT_ONCE)


def unfit(number: int, key: str) -> Receive:
    """A message that SQLite does not take."""
    inbound = replace(said(marks=ProviderMarks(external_id=key)), content=Content(b"", "\ud800"))
    return Receive(arrival(number, inbound), AT_ONCE)


class Shelf:
    """A buffer whose intake is driven by hand: keys are folded when a test says so."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.disk = Disk()
        self._open()

    def _open(self) -> None:
        self.db = layered(self.path, self.disk)
        self.intake = MessageInserter(self.db)
        table = CommitTable({}, {Receive: self.intake.receive}, undone=(self.intake.undone,))
        self.ledger = TransactionExecutor(self.db, self.path, table)

    def reopen(self) -> None:
        """Close and open again."""
        self.ledger.close()
        self._open()

    def stay(self) -> None:
        """Do nothing."""

    def fold(self) -> None:
        self.intake.fold(self.db, 1)

    def put(self, *commits: Receive) -> list[tuple[Verdict, int]]:
        """The verdicts on a group that is kept, each with the message it names."""
        results = self.ledger.apply(commits)
        return [(one.intake, one.id) for one in results]

    def refuse(self, *commits: Receive) -> None:
        """The same for a full disk."""
        self.disk.write_error = apsw.FullError("no space left")
        results: Sequence[Any] = self.ledger.apply(commits)
        self.disk.write_error = None
        assert {type(one.error) for one in results} == {StoreFull}

    def indexed(self) -> int:
        """How many keys stand in the index."""
        return len(self.db.execute("SELECT key FROM message_key").fetchall())


def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path / "buffer.db")


def test_a_key_is_known_before_and_after_it_is_folded_and_after_reopening(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    assert one.put(named(10, "a")) == [(STORED, 10)]
    for then in (one.stay, one.reopen, one.fold, one.fold, one.reopen):
        then()
        assert one.put(named(20, "a"), named(21, "a", "other")) == [(DUPLICATE, 10), (CONFLICT, 10)]
    assert one.indexed() == 1
    one.ledger.close()


def test_the_receipt_of_a_copy_names_where_the_first_went(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.put(named(10, None), named(11, "a"))
    for then in (one.stay, one.fold):
        then()
        (again,) = one.ledger.apply([named(20, "a")])
        assert again == Received(DUPLICATE, 11, said().lane, 2)
    one.ledger.close()


def test_copies_within_one_group_are_one_message(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    group = [named(10, "a"), named(11, "a"), named(12, "a", "other"), named(13, None), named(14, "a", room="elsewhere")]
    assert one.put(*group) == [(STORED, 10), (DUPLICATE, 10), (CONFLICT, 10), (STORED, 13), (CONFLICT, 10)]
    (copy,) = one.ledger.apply([named(15, "a")])
    assert (copy.number, copy.lane) == (1, said().lane)
    one.ledger.close()


def test_messages_without_a_key_are_never_copies(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    assert one.put(named(10, None), named(11, None)) == [(STORED, 10), (STORED, 11)]
    one.fold()
    assert (one.put(named(12, None)), one.indexed()) == ([(STORED, 12)], 0)
    one.ledger.close()


def test_a_number_that_the_index_has_passed_is_known_too(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.put(named(1_000, "high"))
    one.fold()
    assert one.put(named(5, "low"), named(6, "low")) == [(STORED, 5), (DUPLICATE, 5)]
    for then in (one.stay, one.reopen, one.fold, one.reopen):
        then()
        assert one.put(named(7, "low"), named(8, "low", "other")) == [(DUPLICATE, 5), (CONFLICT, 5)]
    assert one.indexed() == 2
    one.ledger.close()


def test_a_refused_message_is_not_taken_for_a_copy_later(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.put(named(1_000, "there"))
    one.fold()
    one.refuse(named(1_001, "a"), named(1_002, "b"), named(5, "low"))
    one.fold()
    again = [named(1_003, "a"), named(1_004, "b", "other"), named(6, "low"), named(1_005, "a")]
    assert one.put(*again) == [(STORED, 1_003), (STORED, 1_004), (STORED, 6), (DUPLICATE, 1_003)]
    one.reopen()
    assert one.put(named(1_006, "a"), named(1_007, "low")) == [(DUPLICATE, 1_003), (DUPLICATE, 6)]
    one.ledger.close()


def test_a_message_refused_alone_is_not_taken_for_a_copy_later(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    bad, good = one.ledger.apply([unfit(1, "a"), named(2, "b")])
    assert isinstance(bad, RejectedCommit)
    assert good.intake is STORED
    assert one.put(named(3, "a"), named(4, "a"), named(5, "b")) == [(STORED, 3), (DUPLICATE, 3), (DUPLICATE, 2)]
    one.ledger.close()


def test_a_number_used_again_names_its_own_message(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.refuse(named(10, "a"))
    assert one.put(named(10, "b")) == [(STORED, 10)]
    assert one.put(named(11, "a")) == [(STORED, 11)]
    one.fold()
    assert one.put(named(12, "a"), named(13, "b")) == [(DUPLICATE, 11), (DUPLICATE, 10)]
    one.ledger.close()


def test_a_fold_that_finds_no_room_is_made_up_for(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.put(*(named(number, f"key {number}") for number in range(1, 300)))
    one.disk.write_error = apsw.FullError("no space left")
    try:
        one.fold()
    except apsw.FullError:
        pass
    else:
        raise AssertionError("there was no room")
    assert not one.db.in_transaction
    one.disk.write_error = None
    assert one.indexed() == 0
    assert one.put(named(900, "key 7"), named(901, "new")) == [(DUPLICATE, 7), (STORED, 901)]
    one.fold()
    assert one.indexed() == 300
    assert one.put(named(902, "key 7"), named(903, "new")) == [(DUPLICATE, 7), (DUPLICATE, 901)]
    one.ledger.close()


def test_the_writers_upkeep_folds_once_there_are_many_and_at_the_end(tmp_path: Path) -> None:
    one = shelf(tmp_path)
    one.put(named(1, "a"), named(2, "b"))
    one.intake.fold(one.db)
    assert one.indexed() == 0
    one.intake.fold(one.db, 3)
    assert one.indexed() == 0
    one.intake.fold(one.db, 2)
    assert one.indexed() == 2
    one.ledger.close()


# Against a plain dictionary


PUTS = st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("xy"), st.booleans()), min_size=1, max_size=4)
Put = tuple[str, str, bool]
STEPS: st.SearchStrategy[tuple[str, list[Put]]] = st.tuples(
    st.sampled_from(["put", "put", "refuse", "fold", "reopen"]), PUTS
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(STEPS, max_size=14))
def test_whatever_happens_a_key_belongs_to_the_first_message_kept_under_it(
    steps: list[tuple[str, list[Put]]],
) -> None:
    high, low = iter(range(1_000_000, 2_000_000)), iter(range(500_000, 0, -1))
    first: dict[str, tuple[int, str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        one = shelf(Path(folder))
        for what, puts in steps:
            commits = [named(next(low if late else high), key, text) for key, text, late in puts]
            if what == "put":
                expected = []
                for commit, (key, text, _) in zip(commits, puts, strict=True):
                    number, kept = first.setdefault(key, (commit.arrival.id, text))
                    verdict = STORED if number == commit.arrival.id else DUPLICATE if kept == text else CONFLICT
                    expected.append((verdict, number))
                assert one.put(*commits) == expected
            elif what == "refuse" and any(key not in first for key, _, _ in puts):
                one.refuse(*commits)
            elif what == "fold":
                one.fold()
            elif what == "reopen":
                one.reopen()
        one.ledger.close()
