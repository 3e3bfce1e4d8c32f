"""Searching memory, by its owner's word: by words, meaning and filters, in the archive, or one memory by its id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from keepsaid.domain.ids import moment, read
from keepsaid.domain.memory import Kind, Listener, Memory, Narrowing, Recalled
from keepsaid.errors import InputError
from keepsaid.memory.recall.recollection import narrowed
from keepsaid.ports.memory_store import Recall
from keepsaid.ports.store import MemoryStore
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

FOUND_MAX = 10_000
"""So many memories one search or list gives at most."""

_SAFE = "Nothing was changed."
OWNER_HEARS = Listener(None, everything=True, cross=True)


@frozen
class SearchRequest:
    """What is looked for, how many are wanted, what the search keeps to, and whether what was `archived` is meant."""

    query: str
    limit: int = 10
    narrowing: Narrowing = Narrowing()
    archived: bool = False

    def check(self) -> None:
        """Raise InputError for filters that contradict each other."""
        since, until = self.narrowing.since, self.narrowing.until
        if since is not None and until is not None and since > until:
            raise InputError("since must not be later than until", safe=_SAFE)
        if self.archived and replace(self.narrowing, as_of=None) != Narrowing():
            raise InputError("what was archived is searched by its words and by as_of alone", safe=_SAFE)


def filters_of(given: Mapping[str, str]) -> Narrowing:
    """The filters `kind`, `person`, `since`, `until` and `as_of` as people write them; a day as `until` or `as_of` is
    meant to its end. An empty text is no filter. Raises InputError that names the filter.
    """
    kind = given.get("kind", "")
    if kind and kind not in list(Kind):
        raise InputError(f"kind: {kind!r} is none of: {', '.join(Kind)}", safe=_SAFE)
    times: dict[str, int | None] = {}
    for name in ("since", "until", "as_of"):
        text = given.get(name, "")
        try:
            times[name] = moment(text, ends=name != "since") if text else None
        except ValueError as error:
            raise InputError(f"{name}: {text!r} is not {error}", safe=_SAFE) from None
    return Narrowing(Kind(kind) if kind else None, normalise(given.get("person", "")), **times)


class SearchService:
    """Reads memories as its owner hears them, or as the listener that is named; changes nothing."""

    def __init__(self, memories: MemoryStore, recall: Recall, archive: Recall) -> None:
        self._memories = memories
        self._recall = recall
        self._archive = archive

    async def search(self, asked: SearchRequest, listener: Listener = OWNER_HEARS) -> Recalled:
        """The best memories, best first, with the legs that could not answer named.

        Raises InputError for filters that contradict each other.
        """
        asked.check()
        keeps, limit = asked.narrowing, max(0, min(asked.limit, FOUND_MAX))
        if not asked.archived:
            return await narrowed(self._recall, self._memories.library, listener, (asked.query, limit), keeps)
        return await self._archive.recall(listener, asked.query, limit, keeps.as_of)

    async def newest(self, kinds: Sequence[Kind] = (), limit: int = 20) -> Sequence[Memory]:
        """Memories, newest first; of all kinds when none is named."""
        return await self._memories.find(OWNER_HEARS, kinds, max(0, min(limit, FOUND_MAX)))

    async def get(self, name: str) -> Memory:
        """One memory by its id as people see it; raises InputError when there is none."""
        number = read("memory", name)
        found = None if number is None else await self._memories.get(OWNER_HEARS, number)
        if found is None:
            raise InputError(f"there is no memory {name}", safe=_SAFE, hint="keepsaid memory ls")
        return found

    async def history(self, name: str) -> Sequence[Memory]:
        """What was known when of the same, in the order in which it began to hold. Raises InputError."""
        return await self._memories.revisions.history(OWNER_HEARS, (await self.get(name)).id)
