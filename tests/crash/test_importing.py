"""Killed while a bundle is imported: the next import goes on, nothing is there twice and nothing half."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from tests.crash.cast import CAST
from tests.unit.bundle_cast import bundle, home

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.bundle import RECORDS_MAX, Record
from keepsaid.domain.graph import Association, Relation
from keepsaid.interfaces.transfer_shapes import import_shape
from keepsaid.services.importing import ImportRequest, LocalMemory, import_memories
from keepsaid_testkit.contracts.bundles import export_records, rich
from keepsaid_testkit.contracts.learning import said
from keepsaid_testkit.crash.fork import Nursery
from keepsaid_testkit.crash.order import Order

DEATHS = tuple((f"commit.TakeIn.{side}", count) for count in (1, 2, 3, 4) for side in ("before", "after"))
"""Among people, in the memories between two commits and in what relates them."""

_WITHIN_S = 240.0


async def made(folder: Path) -> tuple[Path, list[Record]]:
    """A bundle that takes several commits, and what is in it."""
    file = folder / "made.jsonl"
    async with home(folder, "made") as store:
        await rich(store)
        facts = [said(f"f{n}", f"locker {n} holds the boots of person {n}") for n in range(RECORDS_MAX)]
        ids = [one.memory_id for one in await store.learn(facts, 600)]
        edges = [Association(ids[0], other, Relation.PART_OF) for other in ids[1:]]
        await store.graph.relate(edges, (), 610)
        await bundle(store, file)
        return file, await export_records(store)


async def again(instance: Instance, file: Path) -> dict[str, int]:
    """Import it once more; how many of everything were new."""
    asked, memory = ImportRequest(file), LocalMemory(instance.memories, instance.clock, instance.recorder.facts)
    report = await import_memories(asked, memory, instance.redactor, time.time_ns() // 1_000_000)
    done = import_shape(report, asked, dry_run=False)
    return {what: counts["new"] for what, counts in done["counts"].items()}


async def test_killed_while_it_imports_the_next_import_ends_it(forks: Nursery, tmp_path: Path) -> None:
    file, whole = await made(tmp_path)
    log = str(tmp_path / "lives.log")
    halves = set()
    for n, (point, count) in enumerate(DEATHS):
        place = Home.at(tmp_path / f"home{n}")
        arguments = ("data", "import", str(file))
        life = forks.fork(
            Order(arguments, str(tmp_path / f"home{n}"), log, log, {point: count}, lease_ms=CAST.lease_ms)
        )
        code = await asyncio.to_thread(life.wait, _WITHIN_S)
        assert (code, life.reached) == (-9, point), f"{point} was not passed {count} times"
        async with opened(place, Config()) as instance:
            halves.add(len(await export_records(instance.memories)))
            new = await again(instance, file)
            assert await export_records(instance.memories) == whole
            assert sum(new.values()) > 0 or (point, count) == DEATHS[-1]
            assert set((await again(instance, file)).values()) == {0}
            assert await export_records(instance.memories) == whole
    assert len(halves) >= len(DEATHS) // 2, "each death leaves another part of it"
