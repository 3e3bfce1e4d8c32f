"""Leases of a program beside a running instance: renewed while it works, and lost when another has the batch."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

from tests.unit.http_cast import Site, site
from tests.waits import HANG_S

from keepsaid.interfaces.sdk.remote import RemoteInstance

WORKERS = {"answered_by": "workers"}


def lease_until(running: Site) -> int:
    """When the lease of the only leased batch ends."""
    [[until]] = running.rows("SELECT lease_until FROM batch WHERE state = 'leased'")
    return int(until)


async def test_a_lease_is_renewed_while_the_program_works(tmp_path: Path) -> None:
    async with site(tmp_path, turns=WORKERS) as running, asyncio.timeout(HANG_S):
        await running.say("hello")
        async with remote_of(running) as remote:
            remote.inbox.lease_s = 1
            async with aclosing(remote.inbox.batches("one")) as batches:
                batch = await anext(batches)
                first = lease_until(running)
                while lease_until(running) < first + 1_000:
                    await remote.status()
                await batch.done("hello, Ann")
                assert not batch.lost.is_set()


async def test_a_batch_that_another_took_is_lost(tmp_path: Path) -> None:
    async with site(tmp_path, turns=WORKERS) as running, asyncio.timeout(HANG_S):
        await running.say("hello")
        async with remote_of(running) as remote:
            remote.inbox.lease_s = 1
            async with aclosing(remote.inbox.batches("one")) as batches:
                batch = await anext(batches)
                [[number, fence]] = running.rows("SELECT id, fence FROM batch WHERE state = 'leased'")
                assert await running.instance.services.batches.release(number, fence) == "queued"
                await batch.lost.wait()


async def test_a_lease_ends_where_the_instance_is_away(tmp_path: Path) -> None:
    async with site(tmp_path, turns=WORKERS) as running:
        await running.say("hello")
        remote = await remote_of(running).__aenter__()
        remote.inbox.lease_s = 1
        batches = remote.inbox.batches("one")
        async with asyncio.timeout(HANG_S):
            batch = await anext(batches)
    async with asyncio.timeout(HANG_S):
        await batch.lost.wait()
        await batches.aclose()
        await remote.__aexit__(None, None, None)


def remote_of(running: Site) -> RemoteInstance:
    """The running instance as a program of its owner asks it."""
    return RemoteInstance(running.home, running.address.url, running.owner["Authorization"].partition(" ")[2])
