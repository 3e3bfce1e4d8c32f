"""The commands `/remember` and `/undo`: a person stores a memory, and takes back the newest one of a conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from keepsaid.domain import learning, memory
from keepsaid.domain.command import CommandResult
from keepsaid.domain.ids import show
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.statements import with_slot
from keepsaid.pipeline.turn.memory_commands import refused
from keepsaid.ports import runtime, store
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

_ANY = memory.Listener(None, everything=True)
_KIND = memory.Kind.FACT
_TEXT_CHARS = 500
_NOTHING = "There is nothing to undo: no memory of yours that was stored from this conversation is active."


@frozen
class SavingCommands:
    """Executes both, each once for its message, also after a crash.

    `record` stores what earlier turns of a conversation asked of memory.
    """

    memories: store.MemoryStore
    record: Callable[[str], Awaitable[object]]
    clock: runtime.Clock

    async def remember(self, message: StoredMessage, text: str) -> CommandResult:
        """Store a text as a memory of the person who says it, visible in that person's direct chats."""
        if message.inbound.origin.trust is Trust.EXTERNAL:
            return refused("Only people known to me may do that.")
        if not text:
            return refused("/remember takes a text: /remember the spare key is under the blue pot")
        new = _new_memory(message, text)
        [result] = await self.memories.learn([new], self.clock.now_ms())
        found = await self.memories.get(_ANY, result.memory_id) if result.memory_id else None
        if found is None:
            return refused(f"Not remembered: {result.why or 'it was forgotten before'}.")
        if found.new.key != new.key:
            return CommandResult(f"already remembered: {_words(found)}")
        return CommandResult(f"remembered: {_words(found)}   undo: /undo")

    async def undo(self, message: StoredMessage) -> CommandResult:
        """Take back the newest memory that the person stored from this conversation."""
        origin, now = message.inbound.origin, self.clock.now_ms()
        await self.record(message.lane.conversation)
        listener = memory.Listener(message.lane, memory.person_of(origin), origin.direct)
        request = learning.UndoRequest(listener, f"message:{message.id}", now)
        if (done := await self.memories.revisions.undo(request)) is None:
            return refused(_NOTHING)
        lines = [f"undone: {_words(done.memory)}"]
        lines += [f"active again: {_words(one)} ({show('memory', one.id)})" for one in done.restored]
        may = done.memory.new.derived and origin.trust is Trust.OWNER and origin.direct
        said = [one.name for one in done.memory.new.sources if one.kind == "message" and may]
        lines += [f"What was said stays; to delete it: /forget {name}" for name in said[:1]]
        return CommandResult("\n".join(lines))


def _new_memory(message: StoredMessage, text: str) -> memory.NewMemory:
    origin = message.inbound.origin
    person = memory.person_of(origin)
    new = memory.NewMemory(
        key=f"{learning.COMMAND_KEY}{message.id}",
        kind=_KIND,
        text=normalise(text),
        scope=memory.person_scope(person),
        trust=origin.trust,
        lane=message.lane,
        speaker=origin.name or origin.sender,
        speaker_id=person,
        chat_of=memory.chat_of((origin,)),
        said_at=message.received_at,
        importance=memory.IMPORTANCE[_KIND],
        sources=(memory.Source("message", str(message.id)),),
        asked=True,
    )
    return with_slot(new)


def _words(one: memory.Memory) -> str:
    """A memory on one line: its kind and its text, which holds no secrets."""
    return f"[{one.new.kind}] {cut(' '.join(one.text.split()), _TEXT_CHARS)}"
