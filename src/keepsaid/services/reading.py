"""Reading for extensions: messages and memory, within what their manifests declare."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain import ids, memory, message, visibility
from keepsaid.errors import ExtensionError, InputError
from keepsaid.memory.injection import listening
from keepsaid.ports.extension import ReadScope, RecalledText
from keepsaid.ports.memory_store import Recall
from keepsaid.ports.store import Store
from keepsaid.values import frozen

OWN, OWNER = "own", "owner"
"""What a manifest may declare under `reads`, beside `CHANNEL:CONVERSATION`."""

LIMIT_MAX = 50
_OWNER_HEARS = memory.Listener(None, memory.OWNER, direct=True, asked=True)


@frozen
class ReadingService:
    """Reads what an extension may read.

    A message: of its own channel (`own`), of a conversation that its manifest names, or what the owner may read in a
    direct chat (`owner`). Text from outside is readable in its own conversation only, and so is what was said in
    incognito. Memory: as the owner (`owner`), or as the answer to a message that it may read would recall.
    """

    store: Store
    search: Recall

    async def read(self, scope: ReadScope, thing: int | str) -> message.Trusted:
        """The text of a message, or the result of a task of the extension's own agent, with its trust.

        Raises ExtensionError if there is none that it may read: both cases read the same.
        """
        number = thing if isinstance(thing, int) else _number(thing)
        if number is not None and (found := await self._message(scope, number)) is not None:
            origin = found.inbound.origin
            return message.Trusted(found.text, visibility.trust_of_words(origin.trust, found.text))
        story = None if number is None else await self.store.tasks.task(number)
        if story is not None and story.task.terms.agent == scope.extension:
            return message.Trusted(story.task.result, message.Trust.EXTERNAL)
        raise _refused(scope, thing)

    async def recall(
        self, scope: ReadScope, query: str, limit: int, about: int | str | None
    ) -> tuple[RecalledText, ...]:
        """The best memories for a query, best first. Raises ExtensionError if it may not read them, and InputError."""
        if not 1 <= limit <= LIMIT_MAX:
            raise InputError(f"limit must be a whole number from 1 to {LIMIT_MAX}", safe="Nothing was read.")
        listener = _OWNER_HEARS
        if about is not None:
            number = about if isinstance(about, int) else _number(about)
            if number is None or (found := await self._message(scope, number)) is None:
                raise _refused(scope, about)
            listener = replace(listening(found.lane, [found.inbound.origin]), asked=True)
        elif OWNER not in scope.reads:
            raise ExtensionError(
                f"the manifest of {scope.extension} does not let it read as the owner (reads: [owner])",
                hint=f"keepsaid ext show {scope.extension}",
            )
        recalled = await self.search.recall(listener, query, limit)
        return tuple(_shape(hit.memory) for hit in recalled.hits)

    async def _message(self, scope: ReadScope, number: int) -> message.StoredMessage | None:
        """A message that the extension may read; None for any other."""
        if (story := await self.store.story(number)) is None:
            return None
        found, origin, lane = story.message, story.message.inbound.origin, story.message.lane
        is_own = OWN in scope.reads and lane.channel == scope.extension
        if is_own or f"{lane.channel}:{lane.conversation}" in scope.reads:
            return found
        if OWNER not in scope.reads or memory.episode_scope(origin, lane) not in _OWNER_HEARS.scopes:
            return None
        is_outside = visibility.trust_of_words(origin.trust, found.text) is message.Trust.EXTERNAL
        line = await self.store.line(lane)
        return None if is_outside or (line is not None and line.incognito) else found


def _number(thing: str) -> int | None:
    found = ids.read("message", thing)
    return ids.read("task", thing) if found is None else found


def _refused(scope: ReadScope, thing: int | str) -> ExtensionError:
    what = thing if isinstance(thing, str) else ids.show("message", thing)
    return ExtensionError(
        f"there is no message {what} that {scope.extension} may read", hint=f"keepsaid ext show {scope.extension}"
    )


def _shape(found: memory.Memory) -> RecalledText:
    new = found.new
    return RecalledText(
        ids.show("memory", found.id), str(new.kind), found.text, new.speaker, new.said_at, new.trust, found.state
    )
