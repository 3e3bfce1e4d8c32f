"""The owner: queues again what died, drops too late, pulls replies, gives up what nobody takes, judges memories."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import httpx2

from keepsaid.domain.ids import show
from keepsaid_testkit.crash.evidence import numbers

_A_FEW = 4
_UNDONE = "1h"
_UNDO_FOR = ("", _UNDONE, "1s")
_NOTE = "remember this for a moment"
_LOOKED_AT = (
    "dead",
    "done",
    "unseen",
    "undelivered",
    "shown_turn",
    "shown_memory",
    "parked_sessions",
    "unread_sessions",
    "undelivered_events",
)


class OwnerClient:
    """HTTP client that acts as the owner of one home, whichever process runs there."""

    def __init__(self, home: Path, client: httpx2.AsyncClient) -> None:
        self._home = home
        self._client = client
        self._requeued: set[int] = set()
        self._noted = 0

    async def look(self) -> None:
        """Do all there is to do at once, if anybody is there; what fails is tried again at the next look."""
        found = numbers(self._home, *_LOOKED_AT)
        if found is None:
            return
        dead, done, unseen, undelivered, turns, memories, parked, unread, unheard = found
        again = [one for one in dead if one not in self._requeued][:_A_FEW]
        late: dict[str, object] = {"reason": "too late: it must stay done"}
        await asyncio.gather(
            *(self._requeue(batch) for batch in again),
            *(self._call(f"/v1/batches/{show('batch', batch)}/drop", late) for batch in done),
            *(self._call(f"/v1/replies/{show('reply', reply)}/seen", {}) for reply in unseen),
            *(self._call(f"/v1/replies/{show('reply', reply)}/resend", {"accept": True}) for reply in undelivered),
            *(self._flag_memory(memory, turn) for turn, memory in zip(turns, memories, strict=True)),
            *(self._call(f"/v1/collection/{show('session', one)}/requeue", {}) for one in parked),
            *(self._call("/v1/collection/run", {"session": show("session", one)}) for one in unread),
            *(self._call(_decision(one), {}) for one in unheard),
            self._call("/v1/collection/run", {}),
            self._call("/v1/prune", {}),
            self._call("/v1/memories/maintain", {}),
            self._forget(),
        )

    async def _requeue(self, batch: int) -> None:
        if await self._call(f"/v1/batches/{show('batch', batch)}/requeue", {"reason": "once more"}):
            self._requeued.add(batch)

    async def _flag_memory(self, memory: int, turn: int) -> None:
        """Flag a memory as wrong and withdraw the flag, so that recall does not change."""
        fields: dict[str, object] = {"turn": show("turn", turn)}
        for undo in (False, True):
            await self._call(f"/v1/memories/{show('memory', memory)}/wrong", {**fields, "undo": undo})

    async def _forget(self) -> None:
        """Have something remembered, and forgotten; what people say is left as it is, because they are asked for it.

        For good, or for a second, or until it is undone at once.
        """
        self._noted += 1
        if not await self._call("/v1/memories", {"text": f"{_NOTE} {self._noted}", "kind": "fact"}):
            return
        kept = _UNDO_FOR[self._noted % len(_UNDO_FOR)]
        told = await self._post("/v1/forget", {"filter": _NOTE, "yes": True, "undo_for": kept})
        if kept == _UNDONE and told and await self._call("/v1/forget/settled", {"wait_s": 1}):
            await self._call("/v1/forget/undo", {"id": told["id"]})

    async def _call(self, path: str, fields: dict[str, object]) -> bool:
        """Whether it is done; not when nobody is there to do it."""
        return await self._post(path, fields) is not None

    async def _post(self, path: str, fields: dict[str, object]) -> dict[str, object] | None:
        """POST to the runtime; returns the JSON of a success, None if the request fails or no runtime is up."""
        try:
            told = json.loads((self._home / "run" / "runtime.json").read_text("utf-8"))
            headers = {"authorization": f"Bearer {told['token']}"}
            response = await self._client.post(f"{told['url']}{path}", json=fields, headers=headers)
        except (FileNotFoundError, httpx2.TransportError):
            return None
        answer: dict[str, object] = response.json() if response.is_success else {}
        return answer if response.is_success else None


def _decision(delivery: int) -> str:
    """Some failed deliveries are retried, for ever; the rest is dismissed."""
    return f"/v1/deliveries/{show('delivery', delivery)}/{'requeue' if delivery % 2 else 'dismiss'}"
