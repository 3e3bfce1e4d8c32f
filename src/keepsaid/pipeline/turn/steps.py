"""Steps: every outside call is recorded before and after, and a finished one is never made again."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from keepsaid.domain.commits import StepEnd, StepStart
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import Held, Step, StepKind, Usage
from keepsaid.errors import KeepsaidError, LeaseLost
from keepsaid.ports.failpoints import point
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store import Operations


class NeedsReview(KeepsaidError):
    """An unsafe call started and nobody knows whether it took effect."""

    code = "KS-REVIEW"
    safe = "The message is kept; nothing is repeated without your word."
    hint = "keepsaid inbox ls --state review"


@dataclass(frozen=True, slots=True)
class Call:
    """An outside call: what it is, and whether it may be made again when its result is not known.

    `settles` tells of an output that no later step will use.
    """

    kind: StepKind
    subject: str
    input_hash: bytes
    repeatable: bool = True
    settles: Callable[[Json], bool] = lambda _: False


Begun = Callable[[], Awaitable[None]]
"""Done when the start of a call is on disk; raises what kept it from there."""


def _heard(start: asyncio.Task[None]) -> None:
    """A start that is refused to a turn that was broken off meanwhile is nobody's error."""
    if not start.cancelled():
        start.exception()


class StepLog:
    """The steps of one turn, or of one task, in order.

    `ending` is the end of the call that settles it, left to the commit that does. A trace that is not on record yet is
    written with the first call that is begun.
    """

    def __init__(self, operations: Operations, clock: Clock, held: Held, trace: Json = None) -> None:
        self._operations = operations
        self._clock = clock
        self._held = held
        self._trace = trace if trace != held.trace else None
        self._known = {step.n: step for step in held.steps}
        self._next = 0
        self.usage = Usage()
        self.ending: StepEnd | None = None

    @property
    def next(self) -> int:
        """The number of the next step."""
        return self._next

    @property
    def replaying(self) -> bool:
        """Whether the result of the next step is on record."""
        known = self._known.get(self._next)
        return known is not None and known.state == "finished"

    async def once(self, call: Call, make: Callable[[Begun], Awaitable[tuple[Json, Usage]]]) -> Json:
        """The recorded result of the next step, or a new one: started on disk before the call, finished after.

        `make` gets the call ready while its start is written, and waits for that before anything happens outside.
        The end of a call that settles the turn is kept for the turn's commit: all of it is on disk, or none.
        Raises NeedsReview for a call that must not be repeated, LeaseLost when another owner has the batch.
        """
        n, self._next = self._next, self._next + 1
        known = self._known.get(n)
        if known is not None and known.state == "finished":
            self.usage += known.usage
            return known.output
        if known is not None and not (call.repeatable and known.repeatable):
            raise NeedsReview(f"the call of {call.subject} started and has no result")
        output, usage = await self._made(n, call, make)
        self.usage += usage
        end = StepEnd(self._held.turn_id, self._held.fence, n, output, usage, self._clock.now_ms())
        if call.settles(output):
            self.ending = end
        elif not await self._operations.apply(end):
            raise LeaseLost("the result of a step was refused")
        return output

    async def _made(
        self, n: int, call: Call, make: Callable[[Begun], Awaitable[tuple[Json, Usage]]]
    ) -> tuple[Json, Usage]:
        starting = asyncio.ensure_future(self._start(n, call))
        starting.add_done_callback(_heard)
        # the writer has it before the loop is busy with the request
        await asyncio.sleep(0)
        try:
            made = await make(lambda: asyncio.shield(starting))
            await starting
        except KeepsaidError:
            if starting.done():
                # that the batch is lost says more than what came of the call
                starting.result()
            raise
        finally:
            starting.cancel()
        point(f"{call.kind}.after")
        return made

    async def _start(self, n: int, call: Call) -> None:
        step = Step(n, call.kind, call.subject, call.input_hash, repeatable=call.repeatable)
        commit = StepStart(self._held.turn_id, self._held.fence, step, self._clock.now_ms(), self._trace)
        if not await self._operations.apply(commit):
            raise LeaseLost("the step was refused")
        self._trace = None
        point(f"{call.kind}.before")
