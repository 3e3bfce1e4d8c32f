"""Undoing: a life forgets something and puts it back, and something else until its time to be undone is over."""

from __future__ import annotations

from keepsaid.app.instance import Instance
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Kind, NewMemory, person_scope
from keepsaid.domain.message import Trust

_LONG_MS = 3_600_000
_SCOPE = person_scope("nowhere:default:undone")


async def undo(instance: Instance) -> None:
    """Forget two things; put one back, let the other go. Nobody hears of either."""
    back, gone = await _forgotten(instance, _LONG_MS), await _forgotten(instance, 1)
    if back:
        await instance.forgetter.undo(back)
        await instance.forgetter.finish(back)
    if gone:
        await instance.forgetter.purge()


async def _forgotten(instance: Instance, undo_ms: int) -> int:
    """The number of a request to forget something that was just remembered, worked off; 0 for none."""
    number, now = instance.ids.next(), instance.clock.now_ms()
    told = NewMemory(f"undone:{number}", Kind.FACT, f"to be undone, number {number}", _SCOPE, Trust.OWNER, said_at=now)
    kept = await instance.memories.keep([told], told.said_at)
    begun = await instance.forgetter.forget(ForgetSelector(kept), "the play", undo_ms)
    if begun is None:
        return 0
    await instance.forgetter.finish(begun.id)
    return begun.id
