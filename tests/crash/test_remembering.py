"""Kills between a memory's row, its vectors and their blocks: what is left answers as if all were made anew."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from itertools import product
from pathlib import Path

import pytest
from tests.crash.remembering import ROUNDS
from tests.unit.derived import Answers, answers, differing, lose_everything

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.integrity import check_integrity
from keepsaid.adapters.sqlite.stores import open_memories
from keepsaid.testing.clock import CountingIds
from keepsaid_testkit.crash.points import points
from keepsaid_testkit.crash.process import environ

PASSED = ("commit.KeepMemories.", "commit.Relate.", "vectors.made", "commit.KeepVectors.", "block.")
POINTS = tuple(name for name in points() if name.startswith(PASSED))
WITHIN_S = 240.0


@pytest.fixture(scope="module")
def left(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lives left that were killed at every point, at its first and at its second pass."""
    folder = tmp_path_factory.mktemp("remembering")
    lives = [f"{point}-{count} {point} {count}" for point, count in product(POINTS, (1, ROUNDS - 1))]
    done = subprocess.run(
        [sys.executable, "-m", "tests.crash.remembering", str(folder)],
        input="\n".join(lives), env=environ(), capture_output=True, text=True, timeout=WITHIN_S, check=True,
    )  # fmt: skip
    assert dict(zip(lives, done.stdout.split(), strict=True)) == dict.fromkeys(lives, "True")
    return folder


async def answered(path: Path) -> Answers:
    store = await open_memories(path, CountingIds())
    try:
        return await answers(store)
    finally:
        await store.close()


@pytest.mark.parametrize("point", POINTS)
async def test_what_a_kill_left_answers_as_if_all_were_made_anew(left: Path, point: str) -> None:
    for count in (1, ROUNDS - 1):
        path = left / f"{point}-{count}" / "memory.db"
        found = await answered(path)
        assert check_integrity(path, ("memory",), mend=False).astray == ()
        with closing(open_writer(path)) as db, db:
            lose_everything(db)
        assert check_integrity(path, ("memory",), mend=True).damage == ()
        assert differing(await answered(path), found) == []
        assert any(found.values()) is (count > 1 or point != "commit.KeepMemories.before"), "there is what to find"
