"""Memory as a library: record what was said, recall what matters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from keepsaid.app.instance import Instance
from keepsaid.app.services import note_backup
from keepsaid.domain.ids import is_time, show
from keepsaid.domain.lane import Lane, lane_key
from keepsaid.domain.memory import IMPORTANCE, Kind, Listener, NewMemory, Source, conversation_scope
from keepsaid.domain.message import Trust
from keepsaid.errors import InputError, StoreError
from keepsaid.interfaces.sdk.inbox import CHANNEL, Episode, Remembered, remembered
from keepsaid.interfaces.transfer import export_shape, import_shape
from keepsaid.services.exporting import export
from keepsaid.services.importing import KEEPSAID, MEM0, ImportRequest, LocalMemory, import_memories, preview_import
from keepsaid.services.people import person_in
from keepsaid.text.normal import digest, normalise

_ACCOUNT = "default"
_FOUND_MAX = 10_000
_KINDS = (str(Kind.EPISODE), *map(str, IMPORTANCE))


class MemoryBook:
    """The memory of one home."""

    def __init__(self, instance: Instance) -> None:
        self._instance = instance

    async def record(self, episodes: Sequence[Episode]) -> tuple[str, ...]:
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
        self, query: str, limit: int = 10, conversation: str | None = None, as_of: int | None = None
    ) -> tuple[Remembered, ...]:
        """The best memories for a query, best first, ungated; 10,000 at most.

        Everything is heard without a conversation; with one, only what may be heard there. With `as_of`
        (milliseconds UTC), only what held true at that time. Raises StoreError when memory could not answer, which is
        not the same as finding nothing, and InputError when `as_of` is no time.
        """
        if as_of is not None and (type(as_of) is not int or not is_time(as_of)):
            raise InputError("as_of must be milliseconds UTC, a whole number within years 1 to 9999")
        listener = Listener(None, everything=True, cross=True)
        if conversation is not None:
            listener = Listener(_lane(conversation, ""), cross=True)
        found = await self._instance.search.recall(listener, query, max(0, min(limit, _FOUND_MAX)), as_of)
        if not found.answered:
            raise StoreError(f"memory could not answer: {'; '.join(found.missing)}", safe="Nothing was changed.")
        return tuple(remembered(hit) for hit in found.hits)

    async def export(
        self, target: str | Path, form: str = "jsonl", persons: Sequence[str] = (), *, force: bool = False
    ) -> dict[str, Any]:
        """Write all that is known, or what `persons` may hear, into one file; `form` is jsonl or markdown.

        Returns where it is and what it holds. Raises InputError and HomeError with nothing written.
        """
        done = await export(self._instance.memories.bundles, Path(target), form, persons, force=force)
        note_backup(self._instance.home, done.file)
        return export_shape(done)

    async def import_from(
        self,
        file: str | Path,
        source: str = KEEPSAID,
        persons: Mapping[str, str] | None = None,
        *,
        trust: str = "",
        dry_run: bool = False,
    ) -> dict[str, Any]:
        """Take over a bundle of `export`, or with `source` "mem0" a JSON file of it; what is here already stays.

        `persons` says who is who that mem0 names. Returns what became of the lines; again changes nothing. Raises
        InputError with nothing imported.
        """
        if source not in (KEEPSAID, MEM0) or trust not in ("", *Trust):
            raise InputError(f"source is {KEEPSAID} or {MEM0}, and trust one of: {', '.join(Trust)}")
        most = Trust(trust) if trust else Trust.KNOWN if source == MEM0 else Trust.OWNER
        named = {name: person_in(one, self._instance.config) for name, one in (persons or {}).items()}
        asked = ImportRequest(Path(file), source, most, named)
        memory = LocalMemory(self._instance.memories, self._instance.clock)
        take = preview_import if dry_run else import_memories
        report = await take(asked, memory, self._instance.redactor, self._instance.clock.now_ms())
        return import_shape(report, asked, dry_run=dry_run)


def _lane(conversation: str, key: str) -> Lane:
    return Lane(CHANNEL, _ACCOUNT, conversation, key or lane_key(conversation))


def _memory(n: int, episode: Episode) -> NewMemory:
    text, conversation = normalise(episode.text), normalise(episode.conversation)
    if not text.strip() or not conversation:
        raise InputError(f"episode {n} needs a text and a conversation")
    if episode.kind not in _KINDS:
        raise InputError(f"episode {n}: there is no kind {episode.kind!r}; one of: {', '.join(_KINDS)}")
    if type(episode.said_at) is not int or not is_time(episode.said_at):
        raise InputError(f"episode {n}: said_at must be milliseconds UTC, a whole number within years 1 to 9999")
    lane, kind = _lane(conversation, normalise(episode.lane)), Kind(episode.kind)
    name = episode.external_id
    if name is None:
        name = digest(text, episode.speaker, str(episode.said_at), episode.kind).hex()
    return NewMemory(
        f"external:{digest(conversation, name).hex()}",
        kind,
        text,
        conversation_scope(lane),
        Trust.KNOWN,
        lane,
        normalise(episode.speaker),
        said_at=episode.said_at,
        importance=IMPORTANCE.get(kind, 0.5),
        sources=(Source("external", normalise(name)),),
    )
