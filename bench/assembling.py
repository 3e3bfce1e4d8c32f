"""Assembling: what it takes to put a turn's context together, in a lane of 10,000 records beside 10,000 memories."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import cast

from bench.disk import percentile
from bench.turns import Vocabulary, fill
from keepsaid.adapters.models.choose import OfflineResponder
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.config.settings import MemoryConfig
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.compaction import Summarise
from keepsaid.domain.context import Made
from keepsaid.domain.message import Content, Inbound, Lane, Origin, Trust
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.turn import ClaimedBatch, Outcome, Usage
from keepsaid.pipeline.prompt.guard import trace_of
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

RECORDS = 10_000
_TURNS = 50
_WORDS = 12
_KEPT = 30
"""Records since the summary: as many as compaction lets a lane come to."""

_HERE = Origin("http", "default", "bench", "ann", "Ann", direct=True, trust=Trust.KNOWN)


async def speak(road: StoreDriver, words: Vocabulary, records: int) -> Lane:
    """Fill a lane with so many records, in turns that say much each."""
    lane = Lane("http", "default", "bench", "root:bench")
    for n in range(_TURNS):
        claimed = await asked(road, words.say(8), n)
        said = tuple(
            Record((Role.USER, Role.ASSISTANT)[one % 2], words.say(_WORDS), speaker=("Ann", "")[one % 2])
            for one in range(records // _TURNS - 1)
        )
        end = Outcome(said[-1].text, said, Usage(), "bench/model")
        batch = claimed.batch
        assert await road.store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, n))
        lane = batch.lane
    return lane


async def asked(road: StoreDriver, text: str, at: int) -> ClaimedBatch:
    """A message, and the turn that is to answer it."""
    await road.queue(Inbound(_HERE, Content(text.encode(), text)), at)
    return await road.claim_one(at)


async def once(instance: Instance, claimed: ClaimedBatch) -> tuple[float, float, int]:
    """Seconds it takes to read and assemble the context and to note what it held; of these, those without reading."""
    start = time.perf_counter()
    scene, fitting, prompt = await instance.flow.answering.context(claimed, instance.flow.answering.listen(claimed))
    trace_of(scene, prompt, (), fitting.factor)
    took = time.perf_counter() - start
    start = time.perf_counter()
    trace_of(scene, replace(prompt), (), fitting.factor)
    return took, time.perf_counter() - start, len(prompt.history)


async def run(folder: Path, times: int) -> dict[str, object]:
    """As compaction leaves a lane, and before any summary, when a prompt shows its last 1,000 records."""
    words = Vocabulary(Random(7))
    config = Config(memory=MemoryConfig(injection="off"))
    figures: dict[str, object] = {}
    async with opened(Home.at(folder), config, OfflineResponder()) as instance:
        await fill(instance, words)
        road = StoreDriver(cast(ContractStore, instance.operations))
        lane = await speak(road, words, RECORDS)
        claimed = await asked(road, words.say(8), RECORDS)
        figures["without_summary"] = await measured(instance, claimed, max(20, times // 10))
        tail = await instance.operations.context(lane, 1)
        summary = Summarise(lane, tail.version, tail.head - _KEPT, words.say(300), Made.EXTRACTIVE, "", 0)
        assert await instance.operations.apply(summary)
        figures["after_a_summary"] = await measured(instance, claimed, times)
    return figures


async def measured(instance: Instance, claimed: ClaimedBatch, times: int) -> dict[str, float]:
    """Percentiles over so many contexts of one turn."""
    await once(instance, claimed)
    seen = [await once(instance, claimed) for _ in range(times)]
    whole, noting = sorted(one[0] for one in seen), sorted(one[1] for one in seen)
    figures = {f"p{p}_ms": percentile(whole, p) * 1e3 for p in (50, 95, 99)}
    return {"times": times, "records_shown": seen[0][2], **figures, "noting_p50_ms": percentile(noting, 50) * 1e3}


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Time per context; `scale` 1 is 1,000 of them."""
    return asyncio.run(run(folder, max(50, int(1_000 * scale))))
