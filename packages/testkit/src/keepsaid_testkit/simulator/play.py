"""A play: one seed from the first message to the verdict."""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Any

from keepsaid.app.work import OWNERS_LANE
from keepsaid.ports.runtime import arm
from keepsaid.values import frozen
from keepsaid_testkit.simulator.channels import HOOKS, WEB
from keepsaid_testkit.simulator.disk import Disk, InMemoryDisk
from keepsaid_testkit.simulator.ears import has_delivered_all
from keepsaid_testkit.simulator.fault_profile import FaultProfile
from keepsaid_testkit.simulator.judge import Judge
from keepsaid_testkit.simulator.ledger import RunRecord
from keepsaid_testkit.simulator.loop import LIFE, Stuck, VirtualLoop
from keepsaid_testkit.simulator.machine import Runtime, SimulatedMachine
from keepsaid_testkit.simulator.making import all_ended
from keepsaid_testkit.simulator.net import Net
from keepsaid_testkit.simulator.people import CHANNELS, Sender, SimulatedOwner
from keepsaid_testkit.simulator.watch import Watched

_IDLE_S, _IDLE_POLLED_S = 600.0, 60.0
"""How long the calm world is idle before the verdict, and the end of that which passes poll by poll, not at once."""


@frozen
class Result:
    """The result of one seed: its breaches, and its trace with a digest."""

    seed: int
    breaches: Sequence[str]
    lines: Sequence[str] = field(repr=False)
    digest: str = ""

    def tail(self, count: int = 60) -> str:
        """The breaches and the end of the trace, for people."""
        told = [f"seed {self.seed}: {len(self.breaches)} breaches", *self.breaches, "the trace ended so:"]
        return "\n".join((*told, *self.lines[-count:]))


def play(
    seed: int, disk: Disk | None = None, way: type[Watched] = Watched, changed: Mapping[str, Any] | None = None
) -> Result:
    """Play one seed on a disk of its own; the same seed gives the same trace.

    `way` is how processes reach the disk: a faulty one shows whether the judge can see. `changed` is what
    of the seed's weather is to be otherwise.
    """
    loop = VirtualLoop()
    net = Net(loop, seed)
    net.weather = replace(net.weather, **(changed or {}))
    with warnings.catch_warnings(), _quiet():
        # A death leaves coroutines that were made and not begun.
        warnings.filterwarnings("ignore", "coroutine .* was never awaited", RuntimeWarning)
        try:
            asyncio.set_event_loop(loop)
            breaches = _played(net, disk or InMemoryDisk(), way)
        finally:
            arm(None)
            asyncio.set_event_loop(None)
            loop.close()
    return Result(seed, breaches, net.trace.lines, net.trace.digest())


@contextmanager
def _quiet() -> Iterator[None]:
    """What goes wrong on purpose is not logged."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _played(net: Net, disk: Disk, way: type[Watched]) -> list[str]:
    one = _Play(net, disk, way)
    arm(one.passed)
    try:
        return net.loop.run_until_complete(one.run())
    except Stuck as stuck:
        return [f"stuck: {stuck}"]
    finally:
        one.clear()


class _Play:
    def __init__(self, net: Net, disk: Disk, way: type[Watched]) -> None:
        self.net = net
        self.seen = RunRecord()
        self.house = SimulatedMachine(net, self.seen, disk, way)
        self.weather: FaultProfile = net.weather
        self.over = False
        self.lives: list[Runtime] = []
        self.tasks: list[asyncio.Task[None]] = []

    async def run(self) -> list[str]:
        """The storm, the calm after it, the verdict."""
        net = self.net
        net.trace.add(f"{self.weather}")
        loop = net.loop
        talking = [net.outside(one.talk(count)) for one, count in self._senders()]
        keeping = net.outside(self._keep_going())
        self.tasks = [
            net.outside(self._set_clocks()),
            net.outside(SimulatedOwner(net, self.seen, self.house).read(self._over)),
        ]
        storm_ends = loop.time() + self.weather.storm_s
        await asyncio.wait(talking, timeout=self.weather.storm_s)
        await asyncio.sleep(max(0.0, min(5.0, storm_ends - loop.time())))
        net.calm = True
        net.trace.add("calm")
        for runtime in self.lives:
            runtime.life.points_left = None
        breaches = []
        if not await self._drained(talking):
            breaches.append("not everything has ended in time")
        breaches += await self._idle()
        self.over = True
        keeping.cancel()
        for runtime in self.lives:
            if not runtime.life.dead:
                await self.house.stop(runtime)
        return breaches + await self._judged()

    def passed(self, point: str) -> None:
        """A process passes a named point, and may die at it."""
        life = LIFE.get(None)
        if life is not None:
            if life.points_left == 1:
                self.net.trace.add(f"{life.name} dies at {point}")
            life.passes()

    def _over(self) -> bool:
        return self.over

    def _senders(self) -> list[tuple[Sender, int]]:
        net, chance = self.net, self.net.chance
        senders = []
        for number in range(self.weather.people):
            place = chance.choice(CHANNELS), f"room-{chance.randrange(3)}"
            sender = Sender(net, self.seen, self.house, place, f"person-{number}")
            senders.append((sender, chance.randint(1, 6)))
            if place[0] == WEB:
                self.tasks.append(net.outside(sender.pull(self.house.providers[WEB], self._over)))
        for number in range(2 if self.weather.webhooks else 0):
            sender = Sender(net, self.seen, self.house, (HOOKS, f"repo-{number}"), "hook")
            senders.append((sender, self.weather.webhooks))
        return senders

    async def _keep_going(self) -> None:
        """Start the runtime again whenever it has died, and sometimes although it has not."""
        while True:
            runtime = self.house.boot()
            self.lives.append(runtime)
            await self._until_over(runtime)
            await self.net.pause(0.05, 3.0)

    async def _until_over(self, runtime: Runtime) -> None:
        """Until a process has died, was stopped, or is taken for dead while it goes on for a while."""
        net, chance, house = self.net, self.net.chance, self.house
        mean = self.weather.deaths_s
        limit = None if mean is None or net.calm else chance.expovariate(1 / mean)
        await asyncio.wait((runtime.life.ended,), timeout=limit)
        if runtime.life.dead or net.calm:
            if not runtime.life.dead:
                await asyncio.wait((runtime.life.ended,))
            house.clear(runtime)
        elif net.happens(self.weather.races):
            net.trace.add(f"{runtime.life.name} is taken for dead")
            self.seen.raced.add(runtime.life.name)
            if chance.random() < 0.5:
                runtime.life.suspend()
            self.tasks.append(net.outside(self._linger(runtime)))
        else:
            await self._end(runtime)

    async def _end(self, runtime: Runtime) -> None:
        if self.net.happens(self.weather.stops):
            await self.house.stop(runtime)
        self.house.kill_process(runtime, "killed")
        self.house.clear(runtime)

    async def _linger(self, runtime: Runtime) -> None:
        """A process that another was started beside goes on, perhaps after a sleep, and ends.

        What it took meanwhile is free again with the next start, as the lock would have had it.
        """
        await self.net.pause(0.5, 15.0)
        runtime.life.wake()
        await self.net.pause(0.5, 15.0)
        await self._end(runtime)
        if self.house.newest is not None:
            self.house.kill_process(self.house.newest, "restarted")

    async def _set_clocks(self) -> None:
        for ms in self.weather.jumps:
            await self.net.pause(1.0, self.weather.storm_s / 2)
            self.net.trace.add(f"the clock jumps by {ms} ms")
            self.net.wall.jump(ms)
            self.seen.jumped = True

    async def _drained(self, talking: Sequence[asyncio.Task[None]]) -> bool:
        """Wait until everything sent is acknowledged and everything has ended."""
        end = self.net.loop.time() + self.weather.calm_s
        wait_s = 2.0
        while self.net.loop.time() < end:
            if all(task.done() for task in talking) and await self._quiet():
                return True
            await asyncio.sleep(wait_s)
            wait_s = min(60.0, wait_s * 1.2)
        return False

    async def _quiet(self) -> bool:
        runtime = self.house.newest
        if runtime is None or runtime.life.dead or sum(not one.life.dead for one in self.lives) > 1:
            return False
        if runtime.instance.compactor.busy or await runtime.store.summaries_due(1):
            return False
        if any(since is not None for since in await runtime.store.quiet_since()):
            return False
        if self.weather.hearing is not None and not await has_delivered_all(runtime.store):
            return False
        if any(one.due_at is not None for one in await runtime.store.collections(("marked", "claimed"), 99)):
            return False
        if not await all_ended(runtime.store, self.seen):
            return False
        seen = await runtime.store.overview()
        waiting = sum(channel.unrouted for channel in seen.channels) + seen.episodes_due
        waiting += sum(seen.batches.get(state, 0) for state in ("queued", "leased"))
        waiting += sum(seen.tasks.get(state, 0) for state in ("pending", "running"))
        waiting += len(await runtime.store.tasks.results(1))
        waiting -= len(await runtime.store.unseen(OWNERS_LANE.channel, OWNERS_LANE.conversation))  # nobody is there
        return not waiting + sum(seen.replies.get(state, 0) for state in ("pending", "sending", "unknown"))

    async def _idle(self) -> list[str]:
        """With nothing new, nothing is asked and nothing is written."""
        before = len(self.seen.asked), self.seen.commits
        self.net.loop.pass_by(_IDLE_S - _IDLE_POLLED_S)
        await asyncio.sleep(_IDLE_POLLED_S)
        asked, commits = len(self.seen.asked) - before[0], self.seen.commits - before[1]
        return [f"idle, it asked {asked} times and wrote {commits} commits"] if asked or commits else []

    async def _judged(self) -> list[str]:
        stories = await self.house.stories()
        counts = await self.house.memories().counts()
        for task in self.tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                self.seen.broken.append(f"the play itself failed: {task.exception()!r}")
        verdict = Judge(self.seen, stories, counts.get("episode", 0), await self.house.results()).verdict()
        return verdict + await self.house.gaps(stories)

    def clear(self) -> None:
        """Close what is open."""
        for runtime in self.lives:
            runtime.life.die()
            self.house.clear(runtime)
