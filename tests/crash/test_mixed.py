"""Mixed faults: a run in which every kind strikes is judged clean, and says what struck."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from pathlib import Path
from random import Random

import apsw
import pytest
from tests.crash.cast import CAST, counted
from tests.figures import Figures

from keepsaid.adapters.sqlite.stores import open_memories, open_operations
from keepsaid.domain.commits import Receive
from keepsaid.testing.builders import AT_ONCE, arrival, said
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.crash.backup import lacking
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.mixed import DURING, ENDINGS, FAULTS, dealt
from keepsaid_testkit.crash.play import Plan, Play
from keepsaid_testkit.power.full import lay

SOAK_MINUTES = 60


def test_no_kind_is_dealt_again_before_all_others_were() -> None:
    for cards in (ENDINGS, DURING):
        first, again = (list(islice(dealt(cards, Random(seed)), 3 * len(cards))) for seed in (1, 2))
        assert first != again
        assert all(set(first[n : n + len(cards)]) == set(cards) for n in range(0, len(first), len(cards)))


def test_faults_over_one_another_break_no_promise(forks: Nursery, tmp_path: Path) -> None:
    cast = replace(CAST, seed=6, trouble=0.0, thinking_s=0.01)
    report = Play(tmp_path, cast, Plan(times=0, minutes=1 / 60), forks=forks).run()
    assert report.violations == []
    assert report.judgement.counts["acknowledged"] > 20
    told = report.as_json()
    assert told["mixed"] == report.struck
    assert report.struck.keys() == {fault.name for fault in FAULTS}, "however short it is"
    assert told["kills"] == report.struck.get("kill", 0) + report.struck.get("point", 0)


def test_a_disk_is_full_as_long_as_its_file_says_so(tmp_path: Path) -> None:
    full = tmp_path / "full"
    layer = lay(full)
    try:
        db = apsw.Connection(str(tmp_path / "some.db"))
    finally:
        layer.unregister()
    db.execute("CREATE TABLE word (said TEXT)")
    full.touch()
    with pytest.raises(apsw.FullError):
        db.execute("INSERT INTO word VALUES ('no room')")
    full.unlink()
    db.execute("INSERT INTO word VALUES ('room')")
    assert db.execute("SELECT said FROM word").fetchall() == [("room",)]
    db.close()


async def test_a_backup_that_lacks_something_is_found(tmp_path: Path) -> None:
    operations = await open_operations(tmp_path / "buffer.db")
    memories = await open_memories(tmp_path / "memory.db", CountingIds())
    for number in (1, 2):
        await operations.apply(Receive(arrival(number, said(f"number {number}")), AT_ONCE))
    await operations.close()
    await memories.close()
    assert lacking(tmp_path, {1, 2}) == []
    assert lacking(tmp_path, {1, 2, 3}) == ["kept: 1 messages acknowledged before a backup are not in it"]


@pytest.mark.soak
def test_an_hour_of_mixed_faults(forks: Nursery, tmp_path: Path, figures: Figures) -> None:
    report = Play(tmp_path, replace(CAST, seed=60), Plan(times=0, minutes=SOAK_MINUTES), forks=forks).run()
    figures(**counted(report))
    assert report.violations == []
    assert report.struck.keys() == {fault.name for fault in FAULTS}
