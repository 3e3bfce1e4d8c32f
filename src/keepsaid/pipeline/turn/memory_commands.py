"""The commands `/forget`, `/wrong`, `/join` and `/widen`: a person's word on memory and on who is one person."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from keepsaid.domain import memory, process, receipt, visibility
from keepsaid.domain.command import ASKED, REFUSED, CommandResult, command_in
from keepsaid.domain.effects import Effect
from keepsaid.domain.forgetting import ForgetSelector, ForgetTargets
from keepsaid.domain.ids import read, show, when
from keepsaid.domain.message import SYSTEM, Lane, StoredMessage, Trust
from keepsaid.domain.revision import RevisionRefusal
from keepsaid.domain.views import MessageFilter, Story
from keepsaid.ports import memory_maintenance, memory_store, runtime, store, store_views
from keepsaid.text.normal import counted, cut, digest
from keepsaid.values import frozen


def refused(text: str) -> CommandResult:
    """A command that was not executed; `text` says why."""
    return CommandResult(text, REFUSED)


async def forget(
    lanes: store.Store, forgets: memory_maintenance.ForgetOperations, message: StoredMessage, arguments: str
) -> CommandResult:
    """`/forget that` and `/forget ID` say what would go; `/forget yes` and `/forget ID yes` delete it."""
    origin = message.inbound.origin
    if origin.trust is not Trust.OWNER or not origin.direct:
        return refused("Only the owner may have something forgotten, in a chat between the two of us.")
    name, _, sure = arguments.partition(" ")
    before = message
    if name == "yes":
        if (previewed := await _previewed(lanes, message.lane)) is None:
            return refused(f"No question waits for a yes here. {_SAY_WHAT}")
        before, name, sure = *previewed, "yes"
    if name == "that":
        name = await _last(lanes, before)
    if not name:
        return refused(_AFTER_REMEMBER if arguments == "that" else _SAY_WHAT)
    message_id = read("message", name) if name.startswith("msg_") else None
    memory_id = read("memory", name) if message_id is None else None
    selector = ForgetSelector(() if memory_id is None else (memory_id,), () if message_id is None else (message_id,))
    targets = await forgets.find_targets(selector)
    story = None if message_id is None else await lanes.story(message_id)
    if not targets.memories and (story is None or not targets.messages):
        return refused(f"There is no {name}.")
    if sure.strip() != "yes":
        confirm = f"send /forget yes or /forget {name} yes; anything else leaves it."
        return CommandResult(f"{taken(targets, story)} To forget it for good, {confirm}", ASKED)
    done = await forgets.forget(selector, memory.person_of(origin))
    return CommandResult("It is forgotten.") if done else refused(f"There is no {name} any more.")


_SAY_WHAT = "Say what: /forget that for what you said last, /undo for what /remember stored, or /forget and an id."


async def _previewed(lanes: store_views.LaneView, lane: Lane) -> tuple[StoredMessage, str] | None:
    """The `/forget` command of the newest turn, and what it would delete; None where another turn came after it."""
    newest = await lanes.last_turn(lane)
    story = None if newest is None else await lanes.turn(newest)
    command = command_in(story.messages[-1]) if story and story.messages else None
    if story is None or command is None or command.name != "forget" or command.misused:
        return None
    name, _, sure = command.arguments.partition(" ")
    return None if sure or not name or name == "yes" else (story.messages[-1], name)


_AFTER_REMEMBER = (
    "Nothing was said here before it, or /remember was: /undo takes that back. Else send /forget and an id."
)
_LOOKED_AT_MAX = 100
"""Messages of a conversation among which the last is looked for."""


async def _last(lanes: store.Store, command: StoredMessage) -> str:
    """The last message in a lane before a command, answered or waiting; "" where /remember came after it."""
    lane = command.lane
    newest = MessageFilter(channel=lane.channel, conversation=lane.conversation, limit=_LOOKED_AT_MAX)
    for story in await lanes.find(newest):
        one = story.message
        if one.id >= command.id or one.lane != lane or one.inbound.origin.sender == SYSTEM:
            continue
        if (before := command_in(one)) is None:
            return show("message", one.id)
        if before.name == "remember" and before.known and not before.misused:
            return ""
    return ""


def taken(targets: ForgetTargets, story: Story | None = None) -> str:
    """How much is forgotten, in words, and when the message was said; the text itself is not repeated."""
    found = (
        (targets.memories, ("memory", "memories")),
        (targets.messages, ("message", "messages")),
        (targets.turns, ("reply", "replies")),
        (targets.traces, ("trace", "traces")),
    )
    counts = ", ".join(counted(len(ids), *nouns) for ids, nouns in found if ids)
    if story is None or (said_at := when(story.message.received_at)) is None:
        return f"This deletes {counts}."
    words = counted(len(story.message.text.split()), "word")
    return f"This deletes what was said at {said_at[:19].replace('T', ' ')} UTC ({words}): {counts}."


CODE_MS = 600_000
"""How long a code is good for."""

_REACHED = {
    visibility.ShareReach.CONVERSATION: "in the whole conversation it was said in",
    visibility.ShareReach.PERSON: "in all direct chats of whom it was said by",
    visibility.ShareReach.GLOBAL: "everywhere",
}


def _name(what: str, of: str) -> str:
    return f"{what} {digest(what, of).hex()}"


_NOT_YOURS = "There is no such memory of what you said."


class _Claim(NamedTuple):
    """Who was shown a code, until when it is good, and who said it."""

    person: str
    until: int
    by: str = ""


@frozen
class Claims:
    """Joins who says the code that the other was shown, each in a direct chat.

    A code outlasts a restart; what is noted is not the code, but what it comes to when it is said.
    """

    people: memory_store.People
    sharing: memory_store.MemorySharing
    clock: runtime.Clock
    code: Callable[[], str]
    notes: store_views.Notes

    async def join(self, message: StoredMessage, arguments: str) -> CommandResult:
        """What `/join`, `/join CODE` or `/join undo` comes to; saying a code again changes nothing."""
        origin = message.inbound.origin
        person = memory.chat_of((origin,))
        if not person or origin.trust is Trust.EXTERNAL:
            return refused("That is for a chat between the two of us, if I know you.")
        if arguments == "undo":
            if await self.people.split(person):
                return CommandResult("You are a person alone again here.")
            return refused("You are joined with nobody.")
        if person == memory.OWNER:
            return refused("You join people on the command line: keepsaid memory people join.")
        return await self._said(person, arguments.upper()) if arguments else await self._offered(person)

    async def _offered(self, person: str) -> CommandResult:
        code = self.code()
        await self._note(code, _Claim(person, self.clock.due_ms() + CODE_MS))
        minutes = CODE_MS // 60_000
        return CommandResult(
            f"Say this to me in your other chat with me, within {minutes} minutes: /join {code}\n"
            "Give it to nobody: whoever says it hears what I keep for you."
        )

    async def _note(self, code: str, claim: _Claim) -> None:
        now, name = self.clock.due_ms(), _name("code", code)
        await self.notes.apply(process.Note(name, json.dumps(claim), claim.until, now))
        await self.notes.apply(process.Note(_name("last code", claim.person), name, claim.until, now))

    async def _shown(self, code: str) -> _Claim | None:
        """What was noted of a code; None for none, and for one after which its person was shown another."""
        now, name = self.clock.due_ms(), _name("code", code)
        noted = await self.notes.note(name, now)
        claim = _Claim(*json.loads(noted)) if noted else None
        last = "" if claim is None else await self.notes.note(_name("last code", claim.person), now)
        return claim if last == name else None

    async def _said(self, person: str, code: str) -> CommandResult:
        claim = await self._shown(code)
        if claim is None or claim.by not in ("", person):
            return refused("I gave out no such code, or it is used or too old. /join gives one.")
        if claim.person == person:
            return refused("That is for your other chat: you are yourself here already.")
        await self._note(code, claim._replace(by=person))
        if await self.people.join((claim.person, person), person, self.clock.now_ms()) is None:
            return refused("One of you is joined with my owner, and only my owner joins others with them.")
        return CommandResult("You are one person to me now, here and there. /join undo takes it back for this chat.")

    async def widen(self, message: StoredMessage, arguments: str) -> CommandResult:
        """What `/widen ID conversation|person|global [why]` comes to."""
        origin = message.inbound.origin
        if origin.trust is Trust.EXTERNAL:
            return refused("Only people known to me may do that.")
        if not arguments:
            return refused("/widen takes a memory, how far, and why: /widen mem_ID person so that I find it")
        named, to, *why = (*arguments.split(maxsplit=2), "")
        memory_id, reach = read("memory", named), visibility.ShareReach(to.lower())
        if memory_id is None:
            return refused(_NOT_YOURS)
        reason = why[0] or "said in a chat"
        word = visibility.ShareMemory(memory_id, reach, memory.person_of(origin), reason, self.clock.now_ms())
        done = await self.sharing.share(word)
        if done in (visibility.ShareRefusal.GONE, visibility.ShareRefusal.NOT_THEIRS):
            return refused(_NOT_YOURS)
        if isinstance(done, visibility.ShareRefusal):
            return refused(f"No: {done}.")
        if isinstance(done, RevisionRefusal):
            return refused(f"No: {done.sentence}.")
        return CommandResult(f"It can now be read {_REACHED[reach]}.")


_TEXT_CHARS = 100


@frozen
class FeedbackCommand:
    """Executes `/wrong`: a person's feedback on a memory; the turn's commit stores it."""

    receipts: store.Store

    async def run(self, message: StoredMessage, arguments: str) -> CommandResult:
        """Execute `/wrong`, `/wrong N`, `/wrong ID` or `/wrong undo [ID]`."""
        verb, _, which = arguments.partition(" ") if arguments.startswith("undo") else ("mark", "", arguments)
        by = memory.person_of(message.inbound.origin)
        if verb == "undo":
            return await self._withdrawn(message.lane, which.strip(), by)
        return await self._marked(message.lane, which, by)

    async def _marked(self, lane: Lane, which: str, by: str) -> CommandResult:
        if (reminded := await self.receipts.reminded(lane)) is None:
            return refused("No memory came to mind in the last turns here.")
        if not which and len(reminded.memories) > 1:
            return CommandResult(await self._listed(reminded), ASKED)
        memory_id = _meant(reminded, which)
        found = await self._known(lane, which) if memory_id is None else (reminded.turn_id, memory_id)
        if found is None:
            return refused(f"{which} is not among them.\n{await self._listed(reminded)}")
        turn_id, memory_id = found
        text = await self._text(turn_id, memory_id)
        effects: tuple[Effect, ...] = (receipt.JudgeMemory(turn_id, memory_id, by),)
        return CommandResult(f"Left out here from now on: {text}\n/wrong undo brings it back.", effects=effects)

    async def _known(self, lane: Lane, which: str) -> tuple[int, int] | None:
        """An earlier turn of the lane that was shown the memory named so."""
        memory_id = read("memory", which) if not which.isdecimal() else None
        uses = () if memory_id is None else await self.receipts.uses(memory_id, 0)
        return next(((use.turn_id, memory_id or 0) for use in uses if use.lane == lane), None)

    async def _withdrawn(self, lane: Lane, which: str, by: str) -> CommandResult:
        feedback = await self.receipts.list_active_feedback(lane)
        if not (active := [one for one in feedback if which in ("", show("memory", one.memory_id))]):
            return refused("Nothing here is said to be wrong." if not which else f"{which} is not left out here.")
        newest = active[0]
        text = await self._text(newest.turn_id, newest.memory_id)
        same = [one for one in active if one.memory_id == newest.memory_id]
        effects = tuple(receipt.JudgeMemory(one.turn_id, one.memory_id, by, "withdraw") for one in same)
        return CommandResult(f"May come to mind again: {text}", effects=effects)

    async def _listed(self, reminded: receipt.Reminded) -> str:
        texts = [await self._text(reminded.turn_id, memory_id) for memory_id in reminded.memories]
        return "\n".join(("Which one? /wrong and its number:", *(f"{n}. {text}" for n, text in enumerate(texts, 1))))

    async def _text(self, turn_id: int, memory_id: int) -> str:
        """A memory as its turn was shown it, with its name."""
        story = await self.receipts.turn(turn_id)
        found = receipt.candidate_in(story.trace, memory_id) if story else None
        words = f"[{found['kind']}] {cut(' '.join(str(found['text']).split()), _TEXT_CHARS)} " if found else ""
        return f"{words}({show('memory', memory_id)})"


def _meant(reminded: receipt.Reminded, which: str) -> int | None:
    """The memory of the last turn that was meant by its number, by its name, or as the only one."""
    if which.isdecimal():
        return reminded.memories[int(which) - 1] if 0 < int(which) <= len(reminded.memories) else None
    named = read("memory", which) if which else reminded.memories[0]
    return named if named in reminded.memories else None
