"""A buffer of schema 1 with suspects in it is migrated, and its suspects wait for a trial."""

from __future__ import annotations

from contextlib import AsyncExitStack
from pathlib import Path

from tests.migration.files import first_schema

from keepsaid.adapters.sqlite.connection import open_writer
from keepsaid.adapters.sqlite.stores import open_operations
from keepsaid.domain.batch import TrialTerms
from keepsaid.domain.commits import ClaimBatches
from keepsaid.domain.process import Beat, VoidLeases

_BATCH = """
INSERT INTO batch (id, lane_id, first, last, last_id, state, action, rule, rule_version, reason, priority, first_at,
  ready_at, created_at, crashes)
VALUES (?1, ?1, 1, 1, ?1, 'queued', 'forward', 'default', '1', '', 10, 0, 0, 0, ?2)
"""
_LANE = """
INSERT INTO lane (id, channel, account, conversation, key, head, batched) VALUES (?1, 'http', 'a', ?1, 'root', 1, 1)
"""
_READY = """
INSERT INTO ready (lane_id, batch_id, suspect, later, priority, first_at, ready_at) VALUES (?1, ?1, ?2, 0, 10, 0, 0)
"""


async def test_suspects_of_the_first_schema_wait_for_a_trial(tmp_path: Path) -> None:
    path, after_ms = tmp_path / "buffer.db", TrialTerms().after_ms
    db = open_writer(path)
    first_schema(db, "buffer")
    for lane_id, crashes in ((1, 0), (2, 2)):
        for statement, bound in ((_LANE, (lane_id,)), (_BATCH, (lane_id, crashes)), (_READY, (lane_id, crashes))):
            db.execute(statement, bound)
    db.close()
    async with AsyncExitStack() as closing:
        store = await open_operations(path)
        closing.push_async_callback(store.close)
        assert await store.apply(VoidLeases("one", 0, "", ())) == ()
        assert await store.apply(Beat("one", 1_000, 2_000))
        [normal] = await store.apply(ClaimBatches("one", 9, (11, 12), 0, 1_000, lived_ms=after_ms - 1))
        assert (normal.batch.id, normal.alone) == (1, False)
        await store.apply(VoidLeases("two", 0, "", ()))
        [trial, *_] = await store.apply(ClaimBatches("two", 9, (13, 14), 0, 1_000, lived_ms=after_ms))
        assert (trial.batch.id, trial.alone, trial.batch.trial_after_ms) == (2, True, after_ms)
