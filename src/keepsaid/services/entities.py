"""Entities, for the owner: the people and things that memories mention, a page of each, and two merged into one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from keepsaid.config.home import write_file
from keepsaid.domain.entities import Entity, EntityKind, EntityPage
from keepsaid.domain.ids import show
from keepsaid.domain.memory import Memory
from keepsaid.errors import HomeError, InputError
from keepsaid.memory.block import date, folded
from keepsaid.ports.store import MemoryStore
from keepsaid.services.memories import OWNER_HEARS
from keepsaid.text.normal import counted, cut, digest
from keepsaid.text.words import fold, spelled
from keepsaid.values import frozen

_SAFE = "Nothing was changed."
_LIST = "keepsaid memory entities ls"
FACTS_MAX, MESSAGES_MAX, TOGETHER_MAX = 200, 10, 10
"""What a page has at most of each."""

_LINE_CHARS_MAX, _SLUG_CHARS_MAX = 300, 60


def kind_in(name: str) -> str:
    """A kind of entity, or "" for any; raises InputError for what is neither."""
    if name and name not in tuple(EntityKind):
        what = f"there is no kind of entity {name!r}; one of: {', '.join(EntityKind)}"
        raise InputError(what, safe=_SAFE, hint="keepsaid memory entities ls --help")
    return name


@frozen
class EntityService:
    """Reads and merges entities."""

    memories: MemoryStore

    async def list(self, kind: str, limit: int) -> Sequence[Entity]:
        """Return the entities of a kind, the most mentioned first. Raises InputError for an unknown kind."""
        return await self.memories.entities.listed(OWNER_HEARS, kind_in(kind), limit)

    async def pages(self, name: str) -> Sequence[EntityPage]:
        """Return the page of each entity of a name, or of one key. Raises InputError if there is none."""
        found = await self.memories.entities.found(OWNER_HEARS, name)
        if not found:
            raise InputError(f"no memory mentions {name!r}", safe=_SAFE, hint=_LIST)
        return [await self._page(one) for one in found]

    async def all_pages(self, limit: int) -> Sequence[EntityPage]:
        """Return the pages of the most mentioned entities."""
        return [await self._page(one) for one in await self.list("", limit)]

    async def merge(self, into: str, other: str) -> tuple[Entity, int]:
        """Make one entity of two, and return it with the number of mentions that were moved.

        Raises InputError if a name is unknown or means several, or both mean the same.
        """
        first, second = await self._one(into), await self._one(other)
        if first.key == second.key:
            raise InputError(f"{into!r} and {other!r} are one entity already", safe=_SAFE, hint=_LIST)
        moved = await self.memories.entities.merge(first.key, second.key)
        return await self._one(first.key), moved

    async def _one(self, name: str) -> Entity:
        found = await self.memories.entities.found(OWNER_HEARS, name)
        if exact := [one for one in found if one.key == name]:
            return exact[0]
        if not found:
            raise InputError(f"no memory mentions {name!r}", safe=_SAFE, hint=_LIST)
        if len(found) > 1:
            keys = ", ".join(one.key for one in found)
            raise InputError(f"{name!r} means several: {keys}; say which, by its key", safe=_SAFE, hint=_LIST)
        return found[0]

    async def _page(self, entity: Entity) -> EntityPage:
        keys = [entity.key]
        if entity.identity:
            keys = [f"{EntityKind.PERSON}:{one}" for one in await self.memories.people.joined_with(entity.identity)]
        learned = await self._mentioning(keys, FACTS_MAX, said=False)
        messages = await self._mentioning(keys, MESSAGES_MAX, said=True)
        together = await self.memories.entities.together(OWNER_HEARS, keys, TOGETHER_MAX)
        facts = tuple(one for one in learned if one.state == "active")
        past = tuple(one for one in learned if one.state != "active")
        return EntityPage(entity, facts, past, messages, tuple(together))

    async def _mentioning(self, keys: Sequence[str], limit: int, *, said: bool) -> tuple[Memory, ...]:
        """Memories that mention one of the entities; of those that say the same, for others too, the newest."""
        ids = await self.memories.entities.mentioning(OWNER_HEARS, keys, limit, said=said)
        found = {(one.text, one.state): one for one in reversed(await self.memories.fetch(OWNER_HEARS, ids))}
        return tuple(reversed(found.values()))


def markdown(page: EntityPage) -> Iterator[str]:
    """The lines of an entity's page, as Markdown."""
    entity = page.entity
    yield f"# {entity.names[0]}"
    yield ""
    also = f", also called {', '.join(entity.names[1:])}" if len(entity.names) > 1 else ""
    yield f"{entity.kind}{also}; {counted(entity.memories, 'memory', 'memories')}, the last on {date(entity.last_at)}"
    yield from _section("What holds", [_line(one) for one in page.facts])
    yield from _section("What held before", [_line(one) for one in page.past])
    yield from _section("Messages that mention it", [_line(one) for one in page.messages])
    together = [f"{one.name} ({one.entity.partition(':')[0]}): {one.memories}" for one in page.together]
    yield from _section("Mentioned together with", together)


def write_pages(folder: Path, pages: Sequence[EntityPage], begin: Callable[[], None]) -> None:
    """Write each page to a file of its own, and an index to index.md; call `begin` once the folder is there.

    Raises HomeError where that cannot be done.
    """
    names = {page.entity.key: f"{page.entity.kind}-{_slug(page.entity)}.md" for page in pages}
    index = (f"- [{page.entity.names[0]}]({names[page.entity.key]}): {page.entity.kind}" for page in pages)
    files = {names[page.entity.key]: markdown(page) for page in pages} | {"index.md": iter(["# Entities", "", *index])}
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        begin()
        for name, lines in files.items():
            write_file(folder / name, "\n".join(lines) + "\n")
    except OSError as error:
        what = f"the pages cannot be written to {folder} ({error.strerror})"
        raise HomeError(what, safe="Memories are unchanged.", hint="name a folder that you can write to") from error


def _slug(entity: Entity) -> str:
    """A name for a file: the letters of the entity's name, and a few of a digest, as several have the same name."""
    name = "-".join(fold(word) for word in spelled(entity.names[0]))[:_SLUG_CHARS_MAX]
    return f"{name}-{digest(entity.key).hex()[:6]}"


def _section(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines:
        yield ""
        yield f"## {title}"
        yield ""
        yield from (f"- {line}" for line in lines)


def _line(one: Memory) -> str:
    """A memory with its source: when it was said, by whom, and its id."""
    text = cut(folded(one.text), _LINE_CHARS_MAX)
    until = f", until {date(one.valid_to)}" if one.valid_to is not None else ""
    speaker = f" {one.new.speaker}" if one.new.speaker else ""
    return f"{text} ({date(one.holds_from)}{until};{speaker} {show('memory', one.id)})"
