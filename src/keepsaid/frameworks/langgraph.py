"""Memory as the store of LangGraph: `graph.compile(store=Store(ks.agent("ann")))`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from langgraph.store.base import BaseStore, GetOp, Item, ListNamespacesOp, Op, PutOp, Result, SearchItem, SearchOp

from keepsaid.errors import KeyConflict
from keepsaid.frameworks import items
from keepsaid.frameworks.bridge import BUDGET_S, MemoryBridge, MemoryCalls

Namespace = tuple[str, ...]
MemoryOf = Callable[[Namespace], MemoryCalls]
_LIMIT_MAX = 50


class ItemStore(BaseStore):
    """Items are memories of one person, or of whom a function says that a namespace belongs to.

    An item is saved under its namespace and key; put again, it is corrected, and what it said before is past; deleted,
    it is forgotten. A search with a query is a recall: of items in the namespace, and with `talk` of everything else
    that comes to mind, under the id of the memory. Where memory fails, reads find nothing and writes write nothing;
    `degraded` says why.
    """

    def __init__(self, memory: MemoryCalls | MemoryOf, *, talk: bool = True, budget_s: float = BUDGET_S) -> None:
        self._memory_of: MemoryOf = memory if callable(memory) else lambda _: memory
        self._talk = talk
        self._budget_s = budget_s
        self.degraded = ""
        """Why the latest operation got nothing; empty if it was done."""

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in order, from any thread but that of memory's own event loop. Raises as `abatch` does."""
        results: list[Result] = []
        for op in ops:
            bridge = self._bridge(op)
            results.append(self._done(op, bridge, bridge.run_sync(self._do(bridge.memory, op))))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in order. Raises NotImplementedError for a list of namespaces: memory is found, not walked."""
        results: list[Result] = []
        for op in ops:
            bridge = self._bridge(op)
            results.append(self._done(op, bridge, await bridge.run(self._do(bridge.memory, op))))
        return results

    def _bridge(self, op: Op) -> MemoryBridge:
        if isinstance(op, ListNamespacesOp):
            raise NotImplementedError("keepsaid lists no namespaces; search one with a query")
        where = op.namespace_prefix if isinstance(op, SearchOp) else op.namespace
        return MemoryBridge(self._memory_of(where), budget_s=self._budget_s)

    def _done(self, op: Op, bridge: MemoryBridge, result: Any) -> Result:
        self.degraded = bridge.degraded
        return [] if isinstance(op, SearchOp) and result is None else result

    async def _do(self, memory: MemoryCalls, op: Op) -> Result:
        if isinstance(op, GetOp):
            return await self._get(memory, op)
        if isinstance(op, SearchOp):
            return await self._search(memory, op)
        if isinstance(op, PutOp):
            await self._put(memory, op)
        return None

    async def _get(self, memory: MemoryCalls, op: GetOp) -> Item | None:
        found = (await memory.get(key=items.name_of(op.namespace, op.key)))["memories"]
        read = [items.item_in(one["memory"]) for one in found]
        return Item(**read[0]) if read and read[0] is not None else None

    async def _put(self, memory: MemoryCalls, op: PutOp) -> None:
        key, text = items.name_of(op.namespace, op.key), items.text_of(op.namespace, op.key, op.value)
        [story] = (await memory.get(key=key))["memories"] or [None]
        if op.value is None:
            if story is not None:
                ids = [one["id"] for one in story["history"]]
                await memory.forget(ids, (await memory.forget(ids))["confirm"])
        elif story is None:
            await self._save(memory, key, text)
        elif story["memory"]["text"] != text:
            await memory.correct(story["memory"]["id"], text)

    async def _save(self, memory: MemoryCalls, key: str, text: str) -> None:
        try:
            await memory.save(text, key=key)
        except KeyConflict:  # another put came first
            [story] = (await memory.get(key=key))["memories"]
            await memory.correct(story["memory"]["id"], text)

    async def _search(self, memory: MemoryCalls, op: SearchOp) -> list[SearchItem]:
        query, prefix = op.query or " ".join(op.namespace_prefix) or "item", op.namespace_prefix
        found: list[SearchItem] = []
        for hit in (await memory.recall(query, _LIMIT_MAX))["hits"]:
            if hit["memory"]["state"] != "active":
                continue
            one = items.item_in(hit["memory"])
            if one is None and self._talk and op.query:
                one = items.talk_item(hit["memory"], prefix)
            if one is not None and items.fits(one, prefix, op.filter or {}):
                found.append(SearchItem(**one, score=hit["score"]))
        return found[op.offset : op.offset + op.limit]


Store = ItemStore
"""The name that programs write."""
