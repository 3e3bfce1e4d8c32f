"""Tools of a client: the model calls them as any other, the client makes the call, and the turn waits for the result.

The call and its result are noted on disk. A turn that is tried again waits for the result of the same call, which the
client makes once; a client that asks again reads which call waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

from keepsaid.domain.client_tools import WAIT_S, CallOfClient, OfferedTool, ResultOfClient, call_from_text
from keepsaid.domain.message import Trust
from keepsaid.domain.process import Note
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ClaimedBatch, ToolClass
from keepsaid.errors import InputError, ToolError
from keepsaid.ports.channel import Progresses, TurnProgress
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes
from keepsaid.ports.telemetry import CALL_ID
from keepsaid.text.normal import normalise

_KEPT_MS = 3_600_000
"""So long a call and its result are noted: a turn that is tried again within it goes on with them."""

_LOOK_MS = 1_000
"""How often a turn looks for a result that another process took in."""

_CHARS_MAX = 100_000


class ClientTools:
    """The calls that wait for clients; results that come in by this process end the wait at once."""

    def __init__(self, notes: Notes, clock: Clock, progress: Progresses) -> None:
        self._notes = notes
        self._clock = clock
        self._progress = progress
        self._waiting: dict[int, asyncio.Event] = {}

    def tools(self, claimed: ClaimedBatch, offered: Sequence[OfferedTool], taken: Sequence[Tool]) -> Sequence[Tool]:
        """The tools of a turn's client; one that has the name of another tool is left out."""
        names = {one.name for one in taken}
        return [self._tool(claimed, one) for one in offered if one.name not in names]

    async def pending(self, message_id: int) -> CallOfClient | None:
        """The call of a message's turn that waits for its client."""
        now = self._clock.now_ms()
        call = call_from_text(await self._notes.note(_call(message_id), now))
        return None if call is None or await self._notes.note(_result(message_id, call.id), now) else call

    async def deliver(self, message_id: int, results: Sequence[ResultOfClient]) -> None:
        """Take in what a client's tools returned. Raises InputError, with the ids of calls that nobody waits for."""
        waits, now = await self.pending(message_id), self._clock.now_ms()
        for one in results:
            if not await self._notes.note(_result(message_id, one.call_id), now):
                if waits is None or waits.id != one.call_id:
                    what = f"no turn of this conversation waits for the result of the call {one.call_id!r}"
                    raise InputError(what, safe="Nothing was changed.")
                text = json.dumps(normalise(one.text)[:_CHARS_MAX])
                await self._notes.apply(Note(_result(message_id, one.call_id), text, now + _KEPT_MS, now))
        if (waiting := self._waiting.get(message_id)) is not None:
            waiting.set()

    def _tool(self, claimed: ClaimedBatch, offered: OfferedTool) -> Tool:
        message = claimed.messages[-1]

        async def run(arguments: dict[str, Json]) -> str:
            call = CallOfClient(CALL_ID.get() or f"call-{message.id}", offered.name, json.dumps(arguments))
            now = self._clock.now_ms()
            await self._notes.apply(Note(_call(message.id), call.as_text, now + _KEPT_MS, now))
            self._progress.tell(claimed.all_messages, TurnProgress("tool", offered.name))
            return await self._result_of(message.id, call)

        return Tool(
            offered.name,
            offered.description,
            offered.schema,
            run,
            ToolClass.IDEMPOTENT,
            WAIT_S + 60.0,
            _CHARS_MAX,
            # the client makes the call, and decides about it as it does with any model's
            serves=Trust.EXTERNAL,
        )

    async def _result_of(self, message_id: int, call: CallOfClient) -> str:
        until = self._clock.due_ms() + 1_000 * WAIT_S
        came = self._waiting.setdefault(message_id, asyncio.Event())
        try:
            while not (noted := await self._notes.note(_result(message_id, call.id), self._clock.now_ms())):
                if self._clock.due_ms() >= until:
                    now = self._clock.now_ms()
                    await self._notes.apply(Note(_call(message_id), "", now, now))
                    raise ToolError(f"the client did not say within {WAIT_S // 60} minutes what {call.name} returned")
                await self._clock.wait(came, _LOOK_MS)
                came.clear()
        finally:
            self._waiting.pop(message_id, None)
        return str(json.loads(noted))


def _call(message_id: int) -> str:
    return f"client-call:{message_id}"


def _result(message_id: int, call_id: str) -> str:
    return f"client-result:{message_id}:{call_id}"
