"""Memory as a library: record, recall, look up, change, forget, export and import."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypedDict, Unpack

from keepsaid.app.backups import note_backup
from keepsaid.app.instance import Instance
from keepsaid.app.stores import session_reader
from keepsaid.config import Config
from keepsaid.domain.ids import show
from keepsaid.domain.memory import IMPORTANCE, Kind, Listener, Memory, Narrowing, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Lane, Trust, lane_key
from keepsaid.errors import InputError
from keepsaid.interfaces.sdk import values
from keepsaid.interfaces.transfer_shapes import export_shape, import_shape
from keepsaid.ports.runtime import Redactor
from keepsaid.services import bundles, forgetting, importing, memories, people
from keepsaid.services.imports import formats
from keepsaid.text.normal import digest, normalise


async def import_request(
    file: str | Path, source: str, trust: str, persons: Mapping[str, str], config: Config
) -> importing.ImportRequest:
    """What a program wants to be imported. Raises InputError for an unknown format, trust or person."""
    if source not in ("", *formats.NAMES) or trust not in ("", *Trust):
        raise InputError(f"source is one of: {', '.join(formats.NAMES)}; trust is one of: {', '.join(Trust)}")
    named = {name: people.person_in(one, config) for name, one in persons.items()}
    plain = await asyncio.to_thread(importing.ImportRequest.of, Path(file), source, trust, named)
    return plain.reading(session_reader())


async def run_import(
    wanted: importing.ImportRequest, memory: importing.Keyed, redactor: Redactor, at: int, *, dry_run: bool
) -> dict[str, Any]:
    """Import, or with `dry_run` only look what that would do; `at` is milliseconds UTC. Returns the outcome."""
    take = importing.preview_import if dry_run else importing.import_memories
    return import_shape(await take(wanted, memory, redactor, at), wanted, dry_run=dry_run)


class MemoryFiles:
    """Exports and imports of the memory of one home."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance
        self._services = instance.services

    async def export(
        self, target: str | Path, form: str = "jsonl", persons: Sequence[str] = (), *, force: bool = False
    ) -> dict[str, Any]:
        """Write all that is known, or what `persons` may hear, into one file; `form` is jsonl or markdown.

        Returns where it is and what it holds. Raises InputError and HomeError with nothing written.
        """
        done = await bundles.export(self._instance.memories.bundles, Path(target), form, persons, force=force)
        note_backup(self._instance.home, done.file, self._instance.clock.now_ms())
        return export_shape(done)

    async def import_from(
        self,
        file: str | Path,
        source: str = "",
        persons: Mapping[str, str] | None = None,
        *,
        trust: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Import a bundle of `export`, or the files of another program; existing memories stay.

        `source` is the format, "" for what the content shows. `persons` maps the names of that program to persons.
        Returns the outcome of each line; a repetition changes nothing. Raises InputError with nothing imported.
        """
        wanted = await import_request(file, source, trust, persons or {}, self._instance.config)
        memory = importing.LocalMemory(self._instance.memories, self._instance.clock, self._instance.recorder.facts)
        at = self._instance.clock.now_ms()
        return await run_import(wanted, memory, self._instance.redactor, at, dry_run=dry_run)


_KINDS = (str(Kind.EPISODE), *map(str, IMPORTANCE))


class Filters(TypedDict, total=False):
    """What a search keeps to."""

    kind: str
    person: str
    since: values.Time
    until: values.Time
    as_of: values.Time
    archived: bool


class ToForget(TypedDict, total=False):
    """What is to be forgotten, where it is not named by ids; and for how long that can be undone."""

    person: str
    conversation: str
    text: str
    undo_for: str


class MemoryClient(MemoryFiles):
    """The memory of one home, as its owner hears it."""

    async def record(self, episodes: Sequence[values.Episode]) -> tuple[str, ...]:
        """Remember what was said, all or nothing; returns the memories' ids in order.

        An episode whose external id was recorded before in its conversation, or without one whose
        content was, is the same memory. Raises InputError naming the episode that cannot be taken.
        """
        made = [_memory(n, episode) for n, episode in enumerate(episodes)]
        ids = await self._instance.memories.keep(made, self._instance.clock.now_ms())
        return tuple(show("memory", one) for one in ids)

    async def embed(self) -> bool:
        """Give all that was recorded its vectors now rather than in the background; whether there is an embedder.

        Raises EmbedderError when it cannot answer; recall then goes by words.
        """
        if self._instance.embedding is None:
            return False
        await self._instance.embedding.finish()
        return True

    async def recall(
        self, query: str, limit: int = 10, conversation: str | None = None, as_of: values.Time | None = None
    ) -> tuple[values.Remembered, ...]:
        """The best memories for a query, best first, ungated; 10,000 at most.

        Without a conversation, all memories are searched; with one, only those that are readable there. With `as_of`,
        only those that held true at that time. Raises StoreError when memory could not
        answer, which differs from no result, and InputError when `as_of` is not a time.
        """
        at, listener = values.time_in(as_of, "as_of"), memories.OWNER_HEARS
        if conversation is not None:
            listener = Listener(_lane(conversation, ""), cross=True)
        found = await self._instance.search.recall(listener, query, max(0, min(limit, memories.FOUND_MAX)), at)
        now = self._instance.clock.now_ms()
        return tuple(values.remembered(hit, now) for hit in memories.hits_in(found))

    async def search(self, query: str, limit: int = 10, **filters: Unpack[Filters]) -> tuple[values.Remembered, ...]:
        """The best memories for a query that keep within filters: matches first, of these the current ones first.

        `kind` of memory, `person` who said it or whom it is about, `since` and `until` of when it was said, `as_of` for
        what was known and held true then, `archived` for what faded. Raises StoreError when memory could not answer,
        and InputError for a filter that is none.
        """
        kind = filters.get("kind")
        since, until = values.time_in(filters.get("since"), "since"), values.time_in(filters.get("until"), "until")
        at, person = values.time_in(filters.get("as_of"), "as_of"), normalise(filters.get("person", ""))
        keeps = Narrowing(None if kind is None else memories.kind_in(kind), person, since, until, at)
        asked = memories.SearchRequest(query, limit, keeps, archived=filters.get("archived", False))
        found, now = await self._services.search.search(asked), self._instance.clock.now_ms()
        return tuple(values.remembered(hit, now) for hit in memories.hits_in(found))

    async def get(self, memory: str) -> values.MemoryRecord:
        """One memory by its id; raises InputError when there is none."""
        return self._record(await self._services.search.get(memory))

    async def list(self, kinds: str | Sequence[str] = (), limit: int = 20) -> tuple[values.MemoryRecord, ...]:
        """Memories, newest first; of all kinds when none is named. Raises InputError for a kind that is none."""
        kinds = (kinds,) if isinstance(kinds, str) else kinds
        found = await self._services.search.newest([memories.kind_in(kind) for kind in kinds], limit)
        return tuple(map(self._record, found))

    async def history(self, memory: str) -> tuple[values.MemoryRecord, ...]:
        """What was known when of the same, in the order in which it began to hold. Raises InputError."""
        return tuple(map(self._record, await self._services.search.history(memory)))

    async def add(self, text: str, kind: str = "fact") -> str:
        """Remember what the owner says, without the secrets in it; returns its id. Raises InputError."""
        return show("memory", (await self._services.memories.add(values.text_in(text, "text"), kind)).id)

    async def edit(self, memory: str, text: str, value: str = "") -> str:
        """Put a memory right, as its owner; what it said before is kept as past. Returns the id of what holds now.

        `value` is what its slot is from now on, where it has one. Raises InputError when it cannot be done.
        """
        number = (await self._services.search.get(memory)).id
        return show("memory", (await self._services.memories.edit(number, text, value)).memory_id)

    async def pin(self, memory: str, *, pinned: bool = True) -> None:
        """Pin a memory, so that it never fades, or unpin it. Raises InputError if it is not current."""
        await self._services.memories.pin((await self._services.search.get(memory)).id, pinned=pinned)

    def _record(self, memory: Memory) -> values.MemoryRecord:
        return values.record_of(memory, self._instance.clock.now_ms())

    async def forget(
        self, *ids: str | Sequence[str], dry_run: bool = False, **named: Unpack[ToForget]
    ) -> values.Forgotten:
        """Forget memories and messages by their ids, or all of a `person`, of a `conversation`, or that holds a `text`.

        The memories are unreadable once this returns. `undo_for` (`30d`, `12h`) keeps an undo for that time. `dry_run`
        only counts. Raises InputError when nothing matches.
        """
        each = tuple(one for given in ids for one in ((given,) if isinstance(given, str) else given))
        asked, service = forgetting.ForgetRequest(each, **named), self._services.forgetting
        if dry_run:
            return values.preview_of(await service.preview(asked))
        return values.forgotten_of(await service.forget(asked))

    async def undo(self, request: str) -> None:
        """Put back what a request to forget took, while that can be; raises InputError."""
        await self._services.forgetting.undo(request)


def _lane(conversation: str, key: str) -> Lane:
    return Lane(values.CHANNEL, "default", conversation, key or lane_key(conversation))


def _memory(n: int, episode: values.Episode) -> NewMemory:
    text, conversation = normalise(episode.text), normalise(episode.conversation)
    if not text.strip() or not conversation:
        raise InputError(f"episode {n} needs a text and a conversation")
    if episode.kind not in _KINDS:
        raise InputError(f"episode {n}: there is no kind {episode.kind!r}; one of: {', '.join(_KINDS)}")
    if (said_at := values.time_in(episode.said_at, f"episode {n}: said_at")) is None:
        raise InputError(f"episode {n}: said_at must be milliseconds UTC or a datetime, not None")
    lane, kind = _lane(conversation, normalise(episode.lane)), Kind(episode.kind)
    if (name := episode.external_id) is None:
        name = digest(text, episode.speaker, str(said_at), episode.kind).hex()
    key, weight = f"external:{digest(conversation, name).hex()}", IMPORTANCE.get(kind, 0.5)
    said = kind, text, conversation_scope(lane), Trust.KNOWN, lane, normalise(episode.speaker)
    return NewMemory(key, *said, said_at=said_at, importance=weight, sources=(Source("external", normalise(name)),))
