"""The forgetter: works off what people asked to be forgotten, and goes on where a crash stopped it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from keepsaid.domain import forgetting
from keepsaid.domain.ids import show
from keepsaid.memory.forgetting import ForgetTargetFinder, fresh, repeats
from keepsaid.ports import memory_maintenance, runtime, store

_log = logging.getLogger("keepsaid.forget")
_AGAIN_MS, _LOOK_MS = 500, 1_000
_ROUNDS_MAX = 10_000


class Forgetter:
    """Forgets, step by step; every step may be repeated, and what waits for a running turn is tried again."""

    def __init__(
        self,
        stores: tuple[store.Store, store.MemoryStore],
        clock: runtime.Clock,
        ids: runtime.Ids,
        halt: runtime.StopToken | None = None,
        typed: memory_maintenance.TypedLines | None = None,
    ) -> None:
        self._operations, memories = stores
        self._view, self._memory, self._undo_log = self._operations.forgettings, memories.forgetful, memories.undo_log
        self._clock = clock
        self._ids = ids
        self._halt, self._typed = halt or runtime.StopToken(), typed or memory_maintenance.NoTypedLines()
        self._moved = asyncio.Event()
        self._targets = ForgetTargetFinder(self._operations.reach, self._memory)

    async def find_targets(self, selector: forgetting.ForgetSelector) -> forgetting.ForgetTargets:
        """Find everything that a request to forget would delete; nothing is changed."""
        return await self._targets.find_targets(selector)

    async def count(self, targets: forgetting.ForgetTargets) -> forgetting.Counts:
        """Count what would be deleted, by place, as the receipt counts it; nothing is changed."""
        return forgetting.summed(await self._memory.count(targets), await self._operations.reach.count(targets))

    async def forget(
        self, selector: forgetting.ForgetSelector, by: str, undo_ms: int = 0
    ) -> forgetting.Forgetting | None:
        """Forget what a selector names: hidden from every read when this returns, gone soon after; None for nothing.

        With `undo_ms` what goes is kept aside for so long, and can be undone.
        A stop meanwhile leaves the rest to the next start, which hides it before anybody reads.
        """
        await self._finish_undoing()
        wanted = await self._targets.find_targets(selector)
        if wanted.is_empty:
            return None
        now = self._clock.now_ms()
        until = now + undo_ms if undo_ms else None
        return await self._begun(
            forgetting.RequestForgetting(self._ids.next(), selector.how, by, wanted, now, (), until)
        )

    async def _begun(self, request: forgetting.RequestForgetting) -> forgetting.Forgetting:
        await self._operations.apply(request)
        await self._advance(request.id)
        found = await self._view.one(request.id)
        assert found is not None, "what was asked for is on record"
        return found

    async def undo(self, number: int) -> forgetting.Forgetting | None:
        """Put back what a request took, while that is kept aside; None where it is not, or not all is gone yet."""
        await self._finish_undoing()
        one = await self._view.one(number)
        if one is None or not one.undoable(self._clock.now_ms()) or not await self._move(one, "undo"):
            return None
        return await self.finish(number)

    async def purge(self) -> int | None:
        """Delete what was kept aside and can be undone no more; returns when the next is due.

        A crash on the way leaves it due: it is deleted again, and the logs that hold it are emptied.
        """
        now = self._clock.now_ms()
        kept = await self._view.undoable()
        over = [one for one in kept if one.state != "restoring" and now >= (one.undo_until or 0)]
        if not await self._drop(over):
            return self._clock.due_ms() + _AGAIN_MS
        left = [one.undo_until for one in kept if one not in over and one.undo_until is not None]
        return min(left, default=None)

    async def finish(self, number: int) -> forgetting.Forgetting | None:
        """Go on with one request as far as it goes now."""
        while not self._halt.is_set and await self._advance(number):
            pass
        return await self._view.one(number)

    async def settled(self, limit_ms: float, number: int | None = None) -> bool:
        """Wait until nothing is left to be forgotten, or nothing of one request, so long at most; says whether."""
        until = self._clock.monotonic_ms() + limit_ms
        while True:
            moved = self._moved
            if all(number not in (None, one.id) for one in await self._view.unfinished()):
                return True
            left = until - self._clock.monotonic_ms()
            if left <= 0 or self._halt.is_set:
                return False
            await self._clock.wait(moved, min(left, _LOOK_MS))

    async def work(self) -> int | None:
        """Go on with all that is not done; returns when to come again."""
        waiting = False
        for one in await self._view.unfinished():
            done = await self.finish(one.id)
            waiting = waiting or (done is not None and done.state != "done")
        ends = await self.purge()
        return self._clock.due_ms() + _AGAIN_MS if waiting else ends

    async def recover(self) -> None:
        """At start: hide what was asked for before, and forget again what an older copy of a store brought back.

        Tombstones are in both stores and in a file beside them: what one of the three lacks is added to it.
        """
        await self._finish_undoing()
        for one in await self._view.unfinished():
            if one.state == "requested":
                await self._advance(one.id)
        await self._reapply_tombstones()

    async def _finish_undoing(self) -> None:
        """End what a kill left half undone: requests may share tombstones, which only one of them takes away."""
        for one in await self._view.unfinished():
            if one.state == "restoring":
                await self._advance(one.id)

    async def _reapply_tombstones(self) -> None:
        ours, theirs = set(await self._view.tombstones()), set(await self._memory.tombstones())
        kept = await self._memory.kept.read()
        if ours == theirs == kept:
            return
        if ours - theirs:
            await self._end_undo()
        both, now = tuple(sorted(ours | theirs | kept)), self._clock.now_ms()
        await self._memory.add_tombstones(both, now)
        if lacking := len(both) - len(kept):
            what = "%d of %d tombstones were missing beside forgotten.key: they are written there from the stores"
            _log.warning(what, lacking, len(both))
        if ours == theirs and ours >= kept:
            return
        memories, work = await self._memory.revived(both), await self._view.revived(both)
        selector = forgetting.ForgetSelector(
            memories, work.messages, tasks=work.tasks, schedules=work.schedules, is_repeat=True
        )
        wanted = await self._targets.find_targets(selector)
        _log.warning("a store is an older copy, from before something was forgotten: it is forgotten again")
        lost = tuple(sorted(set(both) - ours))
        await self._begun(forgetting.RequestForgetting(self._ids.next(), "restored", "keepsaid", wanted, now, lost))

    async def _advance(self, number: int) -> bool:
        """Take the next step of a request; False when it is done or has to wait."""
        if (one := await self._view.one(number)) is None:
            return False
        match one.state:
            case "requested":
                return await self._hide(one)
            case "hidden":
                wanted = await self._view.get_targets(number)
                counts = await self._memory.erase(wanted.memories, _kept(one), wanted.people)
                return await self._move(one, "erase", counts)
            case "erased":
                return await self._scrub(one)
            case "scrubbed":
                emptied = await self._operations.apply(forgetting.EmptyLog()) and await self._memory.empty_log()
                return emptied and await self._move(one, "checkpoint")
            case "checkpointed":
                return await self._move(one, "finish")
            case "restoring":
                await self._undo_log.put_back(number)
                ours, theirs = await self._view.tombstones(), await self._memory.tombstones()
                # not one of a request that is not hidden yet: that is kept only once memory has it
                await self._memory.kept.remove(tuple(set(ours).difference(theirs)))
                await self._operations.apply(forgetting.PutBack(number, self._clock.now_ms()))
                return await self._move(one, "restore")
        return False

    async def _end_undo(self) -> None:
        """Delete what was kept aside: an older memory lacks its part, and half an undo would be forgotten again."""
        kept = [one for one in await self._view.undoable() if one.state != "restoring"]
        if kept:
            _log.warning("%d requests to forget can no longer be undone: an older memory was put in place", len(kept))
        await self._drop(kept)

    async def _drop(self, kept: Sequence[forgetting.Forgetting]) -> bool:
        """Delete the undo data of requests, and empty the logs that hold it; False while somebody reads them."""
        for one in kept:
            await self._undo_log.drop(one.id)
            await self._operations.apply(forgetting.DropUndo(one.id))
        if kept and not (await self._operations.apply(forgetting.EmptyLog()) and await self._memory.empty_log()):
            return False
        for one in kept:
            await self._operations.apply(forgetting.DropUndo(one.id, emptied=True))
        return True

    async def _hide(self, one: forgetting.Forgetting) -> bool:
        wanted = await self._view.get_targets(one.id)
        now = self._clock.now_ms()
        await self._memory.echoes.silence(wanted.echoes, now, _kept(one))
        counts = await self._memory.hide(wanted.memories, wanted.digests, now, _kept(one))
        if (await self._scrubbed(one.id)).left:
            return False
        return await self._move(one, "hide", counts)

    async def _scrub(self, one: forgetting.Forgetting) -> bool:
        """Scrub what was left, and what came since: a turn that was running may have told it again."""
        known, now = await self._view.get_targets(one.id), self._clock.now_ms()
        hidden = await self._memory.hide(known.memories, known.digests, now, _kept(one))
        erased = await self._memory.erase(known.memories, _kept(one))
        left = await self._scrubbed(one.id, forgetting.summed(hidden, erased))
        found = fresh(await self._targets.widened(known), known)
        if not found.is_empty:
            await self._operations.apply(forgetting.ScrubForgotten(one.id, now, found))
            return True
        lanes = await self._targets.lanes(known)
        if left.left or left.waiting or await self._operations.reach.at_work(one.requested_at, lanes):
            return False
        lines = await self._typed.forget(lambda line: repeats(line, known))
        return await self._move(one, "scrub", (("lines", lines),) if lines else ())

    async def _scrubbed(self, number: int, counts: forgetting.Counts = ()) -> forgetting.Scrubbed:
        for _ in range(_ROUNDS_MAX):
            piece = forgetting.ScrubForgotten(number, self._clock.now_ms(), counts=counts)
            done, counts = await self._operations.apply(piece), ()
            if not done.left or self._halt.is_set:
                break
        return done

    async def _move(self, one: forgetting.Forgetting, verb: str, counts: forgetting.Counts = ()) -> bool:
        done = await self._operations.apply(forgetting.MoveForgetting(one.id, verb, self._clock.now_ms(), counts))
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        if verb == "finish":
            _log.info("%s is done", show("forgetting", one.id))
        return done


def _kept(one: forgetting.Forgetting) -> int:
    """Under which number what goes is kept aside; 0 where it is gone for good."""
    return one.id if one.undo_until is not None else 0
