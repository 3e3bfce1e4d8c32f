"""Peers of the benchmarks: the bare loop stores all that it acknowledges, and one that is not there is named."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from bench.contender import Absent, needed
from bench.intake import message
from bench.peers import CONTENDERS, ratios, run, within


@pytest.mark.parametrize("name", ["bare_loop", "bare_loop_indexed"])
async def test_the_bare_loop_stores_what_it_acknowledges(tmp_path: Path, name: str) -> None:
    sent = [message(n) for n in range(300)]
    figures = await run(CONTENDERS[name], tmp_path, sent)
    db = apsw.Connection(str(tmp_path / "bare.db"))
    stored = db.execute("SELECT external_id, payload FROM message ORDER BY id").fetchall()
    assert stored == [(one.marks.external_id, one.content.payload) for one in sent]
    assert figures["per_s"] > 0
    db.close()


def test_a_peer_that_is_not_installed_is_named() -> None:
    with pytest.raises(Absent, match="no_such_peer is not installed"):
        needed("no_such_peer")


def test_time_ends_a_measurement_and_so_does_the_last_message() -> None:
    sent = [message(n) for n in range(3)]
    assert list(within(sent, 60)) == sent
    assert list(within(sent, -1)) == []


def test_ratios_are_of_the_same_round() -> None:
    assert ratios([{"per_s": 6.0}, {"per_s": 10.0}], [{"per_s": 3.0}, {"per_s": 4.0}]) == [2.0, 2.5]
