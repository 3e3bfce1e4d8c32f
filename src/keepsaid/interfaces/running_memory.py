"""The memory of a running instance as a place to import into, over its HTTP route."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from keepsaid.domain import bundle_lines
from keepsaid.domain.bundle import BundleEntry, ImportOutcome, ImportVerdict, Record

_ROUTE = "/v1/memories/import"


class Post(Protocol):
    """Makes a request of the operator with fields; returns the JSON object of the answer."""

    async def __call__(self, path: str, fields: Mapping[str, object], /) -> Any:
        """Raises NotRunning, or the error that the instance answered with."""


class RunningMemory:
    """What an import asks of a home, answered by the process that has it open."""

    def __init__(self, post: Post) -> None:
        self._post = post

    async def look(self, records: Sequence[Record]) -> Sequence[ImportVerdict]:
        """What an import would make of these records; nothing is changed."""
        return await self._judged("look", records)

    async def take(self, records: Sequence[Record], contested: Sequence[bytes]) -> Sequence[ImportVerdict]:
        """Import records of a bundle; `contested` names the slots that several of its records fill."""
        return await self._judged("take", records, [one.hex() for one in contested])

    async def learn(self, records: Sequence[BundleEntry]) -> Sequence[ImportVerdict]:
        """Learn memories of another program."""
        return await self._judged("learn", records)

    async def key_print(self) -> str:
        """Which key its tombstones are made with; "" while it has none."""
        return str((await self._post(_ROUTE, {"do": "key"}))["key_print"])

    async def adopt_key(self, key: bytes) -> bool:
        """Make tombstones with this key from now on; False where there is another."""
        return bool((await self._post(_ROUTE, {"do": "key", "key": key.hex()}))["adopted"])

    async def _judged(self, do: str, records: Sequence[Record], contested: Sequence[str] = ()) -> list[ImportVerdict]:
        lines = [bundle_lines.line_of(one) for one in records]
        answer = await self._post(_ROUTE, {"do": do, "records": lines, "contested": list(contested)})
        return [
            ImportVerdict(ImportOutcome(one["outcome"]), one["why"], tuple(one["beside"]), tuple(one["like"]))
            for one in answer["verdicts"]
        ]
