"""Tools of a client: the model calls them as any other, the client makes the call, and the turn waits for the result.

The call and its result are noted on disk. A turn that is tried again waits for the result of the same call, which the
client makes once; a client that asks again reads which call waits.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import NoReturn

from keepsaid.domain.client_tools import (
    WAIT_S,
    CallOfClient,
    OfferedTool,
    ResultOfClient,
    calls_as_text,
    calls_from_text,
)
from keepsaid.domain.message import Trust
from keepsaid.domain.process import Note
from keepsaid.domain.prompt import Json
from keepsaid.domain.turn import ClaimedBatch, ToolClass
from keepsaid.errors import InputError, ToolError
from keepsaid.ports.channel import Progresses, TurnProgress
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import Clock
from keepsaid.ports.store_views import Notes
from keepsaid.ports.telemetry import CALL_ID, STEP_CALLS
from keepsaid.text.normal import cut, normalise

_KEPT_MS = 3_600_000
"""So long a call and its result are noted: a turn that is tried again within it goes on with them."""

_LOOK_MS = 1_000
"""How often a turn looks for a result that another process took in."""

_CHARS_MAX = 100_000
_WENT_ON = "the client went on with another message, and makes no calls for this one"


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
        ours = [one for one in offered if one.name not in names]
        return [self._tool(claimed, one, {each.name for each in ours}) for one in ours]

    async def pending(self, message_id: int) -> tuple[CallOfClient, ...]:
        """The calls of a message's turn that wait for its client: those of one step that have no result yet."""
        now = self._clock.now_ms()
        calls = calls_from_text(await self._notes.note(_call(message_id), now))
        return tuple([one for one in calls if not await self._notes.note(_result(message_id, one.id), now)])

    async def deliver(self, message_id: int, results: Sequence[ResultOfClient], *, together: bool = True) -> None:
        """Take in what a client's tools returned: where they were called `together`, all or none.

        Raises InputError, with the ids of calls that nobody waits for, or of those whose results are missing.
        """
        waits, now = {one.id for one in await self.pending(message_id)}, self._clock.now_ms()
        texts = {one.call_id: one.text for one in results}
        given = texts.keys() & waits
        known = [id_ for id_ in texts.keys() - waits if await self._notes.note(_result(message_id, id_), now)]
        if unknown := texts.keys() - waits - set(known):
            _refuse("no turn of this conversation waits for the results of these calls", unknown)
        if given and together and (missing := waits - given):
            _refuse("the model asked for several calls at once, and the results of these are missing", missing)
        await self._keep_results(message_id, {call_id: texts[call_id] for call_id in given})

    async def leave(self, message_id: int, results: Sequence[ResultOfClient]) -> None:
        """End the wait of a message's turn whose client goes on with another message, perhaps with some of the results.

        The turn makes no more calls of its client.
        """
        if not (pending := await self.pending(message_id)):
            return
        texts = {one.call_id: one.text for one in results}
        await self._keep(_left(message_id), "1")
        await self._keep_results(message_id, {one.id: texts.get(one.id, f"error: {_WENT_ON}") for one in pending})

    async def _keep_results(self, message_id: int, texts: Mapping[str, str]) -> None:
        """Store the results of calls by their ids, and wake the turn that waits for them."""
        for call_id, text in texts.items():
            await self._keep(_result(message_id, call_id), json.dumps(normalise(text)[:_CHARS_MAX]))
        if (waiting := self._waiting.get(message_id)) is not None:
            waiting.set()

    def _tool(self, claimed: ClaimedBatch, offered: OfferedTool, names: AbstractSet[str]) -> Tool:
        message = claimed.messages[-1]

        async def run(arguments: dict[str, Json]) -> str:
            call = CallOfClient(CALL_ID.get() or f"call-{message.id}", offered.name, json.dumps(arguments))
            if await self._is_left(message.id, call):
                raise ToolError(_WENT_ON)
            noted = calls_from_text(await self._notes.note(_call(message.id), self._clock.now_ms()))
            if call not in noted:
                await self._keep(_call(message.id), calls_as_text(_with_later(call, names)))
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

    async def _is_left(self, message_id: int, call: CallOfClient) -> bool:
        """Whether the client went on to another message, and did not make a call before."""
        now = self._clock.now_ms()
        is_left = bool(await self._notes.note(_left(message_id), now))
        return is_left and not await self._notes.note(_result(message_id, call.id), now)

    async def _result_of(self, message_id: int, call: CallOfClient) -> str:
        until = self._clock.due_ms() + 1_000 * WAIT_S
        came = self._waiting.setdefault(message_id, asyncio.Event())
        try:
            while not (noted := await self._notes.note(_result(message_id, call.id), self._clock.now_ms())):
                if self._clock.due_ms() >= until:
                    what = f"the client did not say within {WAIT_S // 60} minutes what {call.name} returned"
                    await self._abandon(message_id, call, what)
                    raise ToolError(what)
                await self._clock.wait(came, _LOOK_MS)
                came.clear()
        finally:
            self._waiting.pop(message_id, None)
        return str(json.loads(noted))

    async def _abandon(self, message_id: int, call: CallOfClient, what: str) -> None:
        """Wait no longer for a call, nor for those that were sent to the client with it."""
        for other in await self.pending(message_id):
            if other != call:
                await self._keep(_result(message_id, other.id), json.dumps(f"error: {what}"))
        now = self._clock.now_ms()
        await self._notes.apply(Note(_call(message_id), "", now, now))

    async def _keep(self, name: str, text: str) -> None:
        now = self._clock.now_ms()
        await self._notes.apply(Note(name, text, now + _KEPT_MS, now))


def _with_later(call: CallOfClient, names: AbstractSet[str]) -> list[CallOfClient]:
    """A call, and the later ones of its step that the client makes as well."""
    step, found = STEP_CALLS.get(), [call]
    at = next((n for n, one in enumerate(step) if one.id == call.id), len(step))
    for one in step[at + 1 :]:
        arguments = _arguments(one.arguments)
        if one.name in names and one.id and arguments and one.id not in {each.id for each in found}:
            found.append(CallOfClient(one.id, one.name, arguments))
    return found


def _arguments(text: str) -> str:
    """The arguments of a call as the client gets them; "" for what is not an object: such a call is not made."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return ""
    return json.dumps(arguments) if isinstance(arguments, dict) else ""


def _refuse(what: str, ids: Iterable[str]) -> NoReturn:
    named = ", ".join(repr(cut(one, 80)) for one in sorted(ids))
    raise InputError(f"{what}: {named}", safe="Nothing was changed.")


def _left(message_id: int) -> str:
    return f"client-left:{message_id}"


def _call(message_id: int) -> str:
    return f"client-call:{message_id}"


def _result(message_id: int, call_id: str) -> str:
    return f"client-result:{message_id}:{call_id}"
