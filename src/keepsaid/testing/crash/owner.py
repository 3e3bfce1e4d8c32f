"""The owner: queues again what died, drops too late, pulls replies, gives up what nobody takes, judges memories."""

from __future__ import annotations

import json
from pathlib import Path

import httpx2

from keepsaid.domain.ids import show
from keepsaid.testing.crash.evidence import numbers

_A_FEW = 4


class Owner:
    """Looks after one home, whichever life of its runtime is there."""

    def __init__(self, home: Path, client: httpx2.AsyncClient) -> None:
        self._home = home
        self._client = client
        self._requeued: set[int] = set()

    async def look(self) -> None:
        """Do what there is to do, if anybody is there to do it; what fails is tried again at the next look."""
        found = numbers(self._home, "dead", "done", "unseen", "undelivered", "shown_turn", "shown_memory")
        if found is None:
            return
        dead, done, unseen, undelivered, turns, memories = found
        try:
            for batch in [one for one in dead if one not in self._requeued][:_A_FEW]:
                if await self._call(f"/v1/batches/{show('batch', batch)}/requeue", {"reason": "once more"}):
                    self._requeued.add(batch)
            for batch in done:
                await self._call(f"/v1/batches/{show('batch', batch)}/drop", {"reason": "too late: it must stay done"})
            for reply in unseen:
                await self._call(f"/v1/replies/{show('reply', reply)}/seen", {})
            for reply in undelivered:
                await self._call(f"/v1/replies/{show('reply', reply)}/resend", {"accept": True})
            for turn, memory in zip(turns, memories, strict=True):
                await self._wrong(memory, turn)
            await self._call("/v1/prune", {})
        except (FileNotFoundError, httpx2.TransportError):
            return

    async def _wrong(self, memory: int, turn: int) -> None:
        """Say that a memory was wrong, and take it back, so that what comes to mind stays as it was."""
        fields: dict[str, object] = {"turn": show("turn", turn)}
        for undo in (False, True):
            await self._call(f"/v1/memories/{show('memory', memory)}/wrong", {**fields, "undo": undo})

    async def _call(self, path: str, fields: dict[str, object]) -> bool:
        told = json.loads((self._home / "run" / "runtime.json").read_text("utf-8"))
        headers = {"authorization": f"Bearer {told['token']}"}
        response = await self._client.post(f"{told['url']}{path}", json=fields, headers=headers)
        return response.is_success
