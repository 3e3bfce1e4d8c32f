"""The forgetter: works off what people asked to be forgotten, and goes on where a crash stopped it."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

from keepsaid.domain.forgetting import (
    Counts,
    EmptyLog,
    Forgetting,
    MoveForgetting,
    RequestForgetting,
    Scrubbed,
    ScrubForgotten,
    Wanted,
    Wish,
)
from keepsaid.domain.ids import show
from keepsaid.memory.forget import Reaching, fresh
from keepsaid.ports.clock import Clock, Ids
from keepsaid.ports.forgetting import ForgetfulMemory, ForgettingView, ReachView
from keepsaid.ports.halt import Halt
from keepsaid.ports.operations import Operations

_log = logging.getLogger("keepsaid.forget")
_AGAIN_MS = 500
_ROUNDS_MAX = 10_000


@dataclass(frozen=True, slots=True)
class Stores:
    """Where it is forgotten."""

    operations: Operations
    view: ForgettingView
    reach: ReachView
    memory: ForgetfulMemory


class Forgetter:
    """Forgets, step by step; every step may be repeated, and what waits for a running turn is tried again."""

    def __init__(self, stores: Stores, clock: Clock, ids: Ids, halt: Halt | None = None) -> None:
        self._operations = stores.operations
        self._view = stores.view
        self._memory = stores.memory
        self._clock = clock
        self._ids = ids
        self._halt = halt or Halt()
        self._moved = asyncio.Event()
        self._reaching = Reaching(stores.reach, stores.memory)
        self._reach = stores.reach

    async def wanted(self, wish: Wish) -> Wanted:
        """What would go; nothing is changed."""
        return await self._reaching.wanted(wish)

    async def forget(self, wish: Wish, by: str) -> Forgetting | None:
        """Forget what a wish names: hidden from every read when this returns, gone soon after; None for nothing.

        A stop meanwhile leaves the rest to the next start, which hides it before anybody reads.
        """
        wanted = await self._reaching.wanted(wish)
        if not (wanted.memories or wanted.messages):
            return None
        return await self._begun(wanted, wish.how, by)

    async def _begun(self, wanted: Wanted, how: str, by: str, hashes: tuple[bytes, ...] = ()) -> Forgetting:
        number = self._ids.next()
        await self._operations.apply(RequestForgetting(number, how, by, wanted, self._clock.now_ms(), hashes))
        await self._advance(number)
        found = await self._view.one(number)
        assert found is not None, "what was asked for is on record"
        return found

    async def finish(self, number: int) -> Forgetting | None:
        """Go on with one request as far as it goes now."""
        while not self._halt.asked and await self._advance(number):
            pass
        return await self._view.one(number)

    async def settled(self, limit_ms: float) -> bool:
        """Wait until nothing is left to be forgotten, so long at most; says whether."""
        until = self._clock.monotonic_ms() + limit_ms
        while True:
            moved = self._moved
            if not await self._view.unfinished():
                return True
            left = until - self._clock.monotonic_ms()
            if left <= 0 or self._halt.asked:
                return False
            await self._clock.wait(moved, left)

    async def work(self) -> int | None:
        """Go on with all that is not done; returns when to come again."""
        waiting = False
        for one in await self._view.unfinished():
            done = await self.finish(one.id)
            waiting = waiting or (done is not None and done.state != "done")
        return self._clock.due_ms() + _AGAIN_MS if waiting else None

    async def recover(self) -> None:
        """At start: hide what was asked for before, and forget again what an older copy of a store brought back."""
        for one in await self._view.unfinished():
            if one.state == "requested":
                await self._advance(one.id)
        await self._again()

    async def _again(self) -> None:
        ours, theirs = set(await self._view.tombstones()), set(await self._memory.tombstones())
        if ours == theirs:
            return
        both, now = tuple(sorted(ours | theirs)), self._clock.now_ms()
        await self._memory.bury(both, now)
        wish = Wish(await self._memory.revived(both), await self._view.revived(both))
        wanted = await self._reaching.wanted(wish)
        _log.warning("a store was put in place that holds less of what was forgotten: it is forgotten again")
        await self._begun(wanted, "restored", "keepsaid", tuple(sorted(theirs - ours)))

    async def _advance(self, number: int) -> bool:
        """Take the next step of a request; False when it is done or has to wait."""
        one = await self._view.one(number)
        if one is None:
            return False
        match one.state:
            case "requested":
                return await self._hide(one)
            case "hidden":
                wanted = await self._view.wanted(number)
                return await self._move(one, "erase", await self._memory.erase(wanted.memories))
            case "erased":
                return await self._scrub(one)
            case "scrubbed":
                emptied = await self._operations.apply(EmptyLog()) and await self._memory.empty_log()
                return emptied and await self._move(one, "checkpoint")
            case "checkpointed":
                return await self._move(one, "finish")
        return False

    async def _hide(self, one: Forgetting) -> bool:
        wanted = await self._view.wanted(one.id)
        counts = await self._memory.hide(wanted.memories, wanted.digests, self._clock.now_ms())
        if (await self._scrubbed(one.id)).left:
            return False
        return await self._move(one, "hide", counts)

    async def _scrub(self, one: Forgetting) -> bool:
        """Scrub what was left, and what came since: a turn that was running may have told it again."""
        known, now = await self._view.wanted(one.id), self._clock.now_ms()
        await self._memory.hide(known.memories, known.digests, now)
        await self._memory.erase(known.memories)
        left = await self._scrubbed(one.id)
        found = fresh(await self._reaching.widened(known), known)
        if found.memories or found.messages or found.turns or found.traces:
            await self._operations.apply(ScrubForgotten(one.id, now, found))
            return True
        lanes = await self._reaching.lanes(known)
        if left.left or left.waiting or await self._reach.at_work(one.requested_at, lanes):
            return False
        return await self._move(one, "scrub")

    async def _scrubbed(self, number: int) -> Scrubbed:
        for _ in range(_ROUNDS_MAX):
            done = await self._operations.apply(ScrubForgotten(number, self._clock.now_ms()))
            if not done.left or self._halt.asked:
                break
        return done

    async def _move(self, one: Forgetting, verb: str, counts: Counts = ()) -> bool:
        done = await self._operations.apply(MoveForgetting(one.id, verb, self._clock.now_ms(), counts))
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        if verb == "finish":
            _log.info("%s is done", show("forgetting", one.id))
        return done
