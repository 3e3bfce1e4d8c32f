"""A home is opened for work: its lock is taken, its stores are opened, and what surrounds the instance is made."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace

from keepsaid.adapters.models.choose import Punctual
from keepsaid.adapters.system.lock import FileLock, identity_of
from keepsaid.adapters.system.machine import SharedClock, SystemIds, TextThreads
from keepsaid.app import channels, embedders, extending, models, redaction
from keepsaid.app.instance import Instance, Outside
from keepsaid.app.store_place import StorePlace, place_of
from keepsaid.app.telemetry import MeteredModel, chat_instrument, telemetry_of
from keepsaid.config import Config, Home
from keepsaid.ports.model import Model
from keepsaid.ports.telemetry import NO_TELEMETRY


async def _among_peers(place: StorePlace, home: Home, outside: Outside, closing: AsyncExitStack) -> Outside:
    """The surroundings of an instance, with the processes that share its stores, by whose clock it goes then."""
    peers = await place.meet(closing)
    if peers is None:
        return outside
    clock = SharedClock(peers.now_ms)
    ids = SystemIds(clock.now_ms, node=lambda: peers.node)
    life = replace(outside.life, shares=True)
    if home.lock_file.exists():
        life = replace(life, home=identity_of(home.lock_file))
    return replace(outside, clock=clock, ids=ids, peers=peers, life=life)


@asynccontextmanager
async def opened(
    home: Home, config: Config, model: Model | None = None, outside: Outside | None = None
) -> AsyncIterator[Instance]:
    """A home under its lock; raises HomeBusy, ConfigError or StoreError with nothing changed.

    `model` replaces the one the config names, `outside` the machine.
    """
    async with AsyncExitStack() as closing:
        home.make()
        place = place_of(home, config)
        lock = (outside or Outside()).lock or FileLock(home.lock_file, place.files)
        lock.acquire()
        closing.callback(lock.release)
        found, fence = extending.found_in(home, config), channels.fence_of(home)
        threads = TextThreads()
        closing.callback(threads.close)
        redactor = redaction.redactor_of(config, extending.secrets_of(found))
        config = extending.with_channels(config, found)
        outside = await _among_peers(place, home, outside or Outside(), closing)
        stores = await place.open(outside.ids, closing, redactor)
        telemetry = outside.telemetry
        if telemetry is NO_TELEMETRY:
            telemetry = await telemetry_of(config, fence, closing)
        answering = Punctual(model) if model else models.model_of(config, closing, chat_instrument(telemetry))
        outside = replace(outside, redactor=redactor, extensions=found, lock=lock, offload=threads, fence=fence)
        if telemetry is not NO_TELEMETRY:
            outside, answering = replace(outside, telemetry=telemetry), MeteredModel(answering, telemetry)
            for store in stores:
                store.measure(telemetry)
        if outside.embedder is None:
            embedder, former = embedders.embedder_of(home, config, closing), embedders.former_of(home, config, closing)
            outside = replace(outside, embedder=embedder, former=former)
        instance = Instance(home, config, stores, answering, outside)
        if outside.peers is not None:
            instance.meet(outside.peers)
        instance.reserve.look()
        closing.push_async_callback(channels.close_channels, instance.channels)
        if await asyncio.to_thread(place.lacks_tombstones):
            instance.ids.follow(await instance.operations.last_id())
            await instance.forgetter.recover()
            await instance.forgetter.work()
        try:
            yield instance
        finally:
            await instance.stop()
