"""What agents and programs outside may ask: recall, context, records and changes, each within what its caller may.

The library, HTTP and MCP are faces of this one service (spec: doors). Whoever calls is a principal, and every read of
memory goes by the listener of that principal: no face can widen it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from keepsaid.domain import views
from keepsaid.domain.commits import Received
from keepsaid.domain.context import TranscriptSpan
from keepsaid.domain.ids import read, show
from keepsaid.domain.learning import LEARNABLE, LearnResult
from keepsaid.domain.memory import Memory, Recalled
from keepsaid.domain.message import ANSWERED, RECORDED, Content, Inbound, ProviderMarks, Trust
from keepsaid.domain.principal import Principal, Scope
from keepsaid.domain.prompt import Record as TranscriptRecord
from keepsaid.domain.prompt import Role
from keepsaid.domain.recorded_talk import RECORDED_MAX, recorded_key
from keepsaid.errors import InputError, NotAllowed, StoreError
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.context import BuiltContext, ContextService
from keepsaid.services.forgetting import ForgetPreview, ForgetReceipt, ForgetRequest, ForgettingService
from keepsaid.services.memories import (
    NO_METADATA,
    AddedMemory,
    MemoryAuthor,
    MemoryService,
    SearchRequest,
    SearchService,
)
from keepsaid.text.normal import digest
from keepsaid.values import frozen

_SAFE = "Nothing was changed."
IDS_MAX, TRANSCRIPT_MAX = 50, 200
"""Memories that one call names, and records that one call reads."""


class Talk(NamedTuple):
    """One thing that was said: by the sender of the key, or as the agent's answer (`answer`).

    `key` names it in its conversation: recording it again changes nothing. What came from outside, such as the result
    of a tool, is `external`: it is readable in its own conversation alone. `name` is what the sender is called.
    """

    text: str
    answer: bool = False
    key: str = ""
    external: bool = False
    name: str = ""


CLIENT_METADATA = "client"
"""The member of a memory's metadata that holds what its client gave."""


class MemoryDraft(NamedTuple):
    """A memory to be saved: its text, its kind, the key that its author gives it, and metadata, an object of JSON."""

    text: str
    kind: str = "fact"
    key: str = ""
    metadata: str = NO_METADATA


@frozen
class ForgetCount:
    """What would be forgotten, and the token that confirms just this."""

    preview: ForgetPreview
    confirm: str


@frozen
class MemoryStory:
    """A memory, what was known of the same before and after, and where it came from: sources with their neighbours."""

    memory: Memory
    history: Sequence[Memory]
    sources: Sequence[Memory]


Record = Callable[[Sequence[Inbound]], Awaitable[tuple[Received, ...]]]
"""Stores recorded talk of one lane; returns a receipt for each message."""


Remember = Callable[[str], Awaitable[object]]
"""Has what was recorded of a conversation remembered, so that its agent finds it with the next call."""

_REMEMBERED_WITHIN_S = 2.0


class Assistant:
    """Answers principals; every method raises NotAllowed where the key does not open it.

    `contexts` builds contexts without asking what a key opens.
    """

    def __init__(
        self,
        stores: tuple[Store, MemoryStore],
        search: SearchService,
        changes: tuple[MemoryService, ForgettingService],
        context: ContextService,
        record: tuple[Record, Remember],
    ) -> None:
        self._store, self._memories = stores
        self._search = search
        self._changes, self._forgetting = changes
        self.contexts = context
        self._record, self._remember = record

    async def recall(self, who: Principal, asked: SearchRequest, conversation: str = "") -> Recalled:
        """The best memories for a query, best first, with the legs that could not answer named."""
        check_scope(who, Scope.READ)
        return await self._search.search(asked, who.listener(conversation))

    async def get(self, who: Principal, names: Sequence[str], conversation: str = "") -> Sequence[MemoryStory]:
        """Memories by their ids, whole, each with its history and sources. Raises InputError for one that is none."""
        check_scope(who, Scope.READ)
        _bound(names, IDS_MAX, "memories")
        listener, found = who.listener(conversation), list[MemoryStory]()
        for name in names:
            one = await self._search.get(name, listener)
            history = await self._memories.revisions.history(listener, one.id)
            sources = await self._memories.library.sources(listener, one, 5)
            found.append(MemoryStory(one, history, sources))
        return found

    async def keyed(self, who: Principal, key: str, conversation: str = "") -> MemoryStory | None:
        """What holds now of the memory that the caller saved under a key; None for none, and for what was forgotten."""
        check_scope(who, Scope.READ)
        listener, named = who.listener(conversation), _author(who, conversation).note_key(key)
        for one in await self._memories.library.keyed(listener, named):
            history = await self._memories.revisions.history(listener, one.id)
            for now in history:
                if now.state == "active" and now.superseded_by is None:
                    return MemoryStory(now, history, await self._memories.library.sources(listener, now, 5))
        return None

    async def context(self, who: Principal, conversation: str, text: str, tokens: int) -> BuiltContext:
        """What a model should be shown before it answers a text in a conversation. Stores nothing."""
        check_scope(who, Scope.READ)
        return await self.contexts.build(who, conversation, text, tokens)

    async def save(
        self, who: Principal, text: str, kind: str = "fact", *, key: str = "", conversation: str = ""
    ) -> AddedMemory:
        """Remember a text as its sender's word. Under a key that was used for another text, raises KeyConflict."""
        return await self.save_draft(who, MemoryDraft(text, kind, key), conversation)

    async def save_draft(self, who: Principal, draft: MemoryDraft, conversation: str = "") -> AddedMemory:
        """Remember a text with its metadata; otherwise like `save`. One that is there keeps its own metadata."""
        check_scope(who, Scope.WRITE)
        return await self._changes.add(draft.text, draft.kind, _author(who, conversation), draft.key, draft.metadata)

    async def correct(
        self, who: Principal, name: str, text: str, value: str = "", conversation: str = ""
    ) -> LearnResult:
        """Put a memory right by its sender's word; what it said before is kept as past. Raises InputError."""
        check_scope(who, Scope.WRITE)
        found = await self._search.get(name, who.listener(conversation))
        if found.new.kind not in LEARNABLE:
            raise InputError(f"{name} is what was said; save what is known now beside it", safe=_SAFE)
        if found.new.trust is Trust.OWNER and who.trust is not Trust.OWNER:
            raise NotAllowed(f"only the owner can change {name}")
        if not who.commands(found.new.scope, [conversation] if conversation else ()):
            raise NotAllowed(f"{name} belongs to others as well: only the owner can change it")
        author = _author(who, conversation)
        return await self._changes.edit(found.id, text, value, author, kept_metadata(found.new.metadata))

    async def count(self, who: Principal, names: Sequence[str], conversation: str = "") -> ForgetCount:
        """What forgetting memories would take, and the token that confirms it. Raises InputError and NotAllowed."""
        check_scope(who, Scope.WRITE)
        _bound(names, IDS_MAX, "memories")
        for name in names:
            found = await self._search.get(name, who.listener(conversation))
            if not who.commands(found.new.scope, [conversation] if conversation else ()):
                raise NotAllowed(f"{name} belongs to others as well: only the owner can forget it")
        preview = await self._forgetting.preview(ForgetRequest(tuple(names)))
        # what goes with them may be what others hear: it is counted, and not shown
        named = [one for one in preview.memories if show("memory", one.id) in names]
        return ForgetCount(replace(preview, memories=named), _confirmation(who, names, preview))

    async def forget(self, who: Principal, names: Sequence[str], confirm: str, conversation: str = "") -> ForgetReceipt:
        """Forget memories, with the token that `count` gave for them. Raises InputError with nothing forgotten."""
        counted = await self.count(who, names, conversation)
        if confirm != counted.confirm:
            what = "the confirmation token is not that of these memories: count first what would be forgotten"
            raise InputError(what, safe=_SAFE)
        return await self._forgetting.forget(ForgetRequest(tuple(names)), who.person)

    async def record(
        self, who: Principal, conversation: str, said: Sequence[Talk], *, wait: bool = True
    ) -> Sequence[Received]:
        """Keep what was said and answered in a conversation, in order; a receipt for each.

        It is remembered and collected as any other talk, and nobody answers it. Raises InputError with nothing stored.
        Without `wait` it returns once the talk is stored, and memory has it some milliseconds later.
        """
        check_scope(who, Scope.WRITE)
        _bound(said, RECORDED_MAX, "messages")
        if not conversation.strip():
            raise InputError("recorded talk needs the name of its conversation", safe="Nothing was recorded.")
        received = await self._record([recorded_inbound(who, conversation, one) for one in said])
        if not wait:
            return received
        with suppress(StoreError, TimeoutError):  # it is stored: who remembers it comes to it later
            async with asyncio.timeout(_REMEMBERED_WITHIN_S):
                await self._remember(conversation)
        return received

    async def explain(self, who: Principal, name: str) -> views.TurnStory:
        """A turn of its own conversations, with its context and the reasons for each memory. Raises InputError."""
        check_scope(who, Scope.READ)
        number = read("turn", name)
        story = None if number is None else await self._store.turn(number)
        if story is None or not who.owns(story.batch.lane):
            raise InputError(f"there is no turn {name}", safe=_SAFE)
        return story

    async def transcript(
        self, who: Principal, conversation: str, *, after: int = 0, limit: int = TRANSCRIPT_MAX
    ) -> TranscriptSpan:
        """What was said in one of its conversations after a position, oldest first: recorded talk, else all other."""
        check_scope(who, Scope.READ)
        lane, most = who.recorded_lane(conversation), max(1, min(limit, TRANSCRIPT_MAX))
        if await self._store.line(lane) is None:
            return await self._store.span(who.lane(conversation), after, most)
        found = await self._store.span(lane, after, most)
        if who.trust is Trust.EXTERNAL:  # what its users say is external too
            return found
        return replace(found, records=tuple(map(_recorded_role, found.records)))


def _recorded_role(record: TranscriptRecord) -> TranscriptRecord:
    """A record with the role that it was recorded under: nobody but tools is external in the talk of an agent."""
    is_of_tool = record.role is Role.USER and record.trust is Trust.EXTERNAL
    return replace(record, role=Role.TOOL) if is_of_tool else record


def kept_metadata(metadata: str) -> str:
    """What a correction keeps of the metadata of a memory: that of its client, if there is any."""
    found = client_metadata(metadata)
    return json.dumps({CLIENT_METADATA: found}, ensure_ascii=False) if found else NO_METADATA


def client_metadata(metadata: str) -> dict[str, object]:
    """The metadata that a client gave a memory; empty where it gave none."""
    found = json.loads(metadata).get(CLIENT_METADATA)
    return found if isinstance(found, dict) else {}


def check_scope(who: Principal, scope: Scope) -> None:
    """Raise NotAllowed where a caller does not have a scope."""
    if not who.may(scope):
        raise NotAllowed(f"the key {who.name} does not open this: it needs the scope {scope}")


def _bound(given: Sequence[object], most: int, what: str) -> None:
    if not 0 < len(given) <= most:
        raise InputError(f"a call names 1 to {most} {what}; this names {len(given)}", safe=_SAFE)


def _author(who: Principal, conversation: str) -> MemoryAuthor:
    if not who.direct and not conversation and not who.everything:
        raise InputError("others are in the conversations of this key: name the one that it belongs to", safe=_SAFE)
    return MemoryAuthor(who.scope(conversation), who.trust, who.sender, who.person)


def _confirmation(who: Principal, names: Sequence[str], preview: ForgetPreview) -> str:
    counts = (f"{name}={number}" for name, number in sorted(preview.counts.items()))
    return digest(who.name, *sorted(names), *counts).hex()[:16]


def recorded_inbound(who: Principal, conversation: str, one: Talk) -> Inbound:
    """One thing that was said, as it is stored."""
    origin, event = replace(who.origin(conversation), name=one.name), ANSWERED if one.answer else RECORDED
    if one.external:
        # nobody here said it, and nobody in particular may read it elsewhere
        origin = replace(origin, sender="outside", direct=False, trust=Trust.EXTERNAL)
    named = f"{conversation}\0{one.key}" if one.key else None
    marks = ProviderMarks(None if named is None else digest(named).hex())
    content = Content(one.text.encode("utf-8", "surrogatepass"), one.text, event)
    return Inbound(origin, content, marks, key=recorded_key(conversation))
