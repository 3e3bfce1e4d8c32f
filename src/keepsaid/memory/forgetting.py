"""Finds what a request to forget deletes: all that was made of what it names, in both stores (design: section 4.3).

A message is deleted with the reply to it, and with the memories learned from it and from nothing that stays. Words
that only occur in deleted texts are telling: replies and traces of the same lanes that hold one are deleted too, and
summaries and bulletins of all lanes, which are made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from keepsaid.domain import forgetting, ids, message
from keepsaid.domain.memory import TASK, Kind, Listener, summary_key
from keepsaid.domain.prompt import Json, object_schema
from keepsaid.errors import ToolError
from keepsaid.memory.tools import Opening, memory_in
from keepsaid.ports.memory_maintenance import ForgetfulMemory, ForgetOperations, ReachView
from keepsaid.ports.model import Tool
from keepsaid.text.normal import joined

_ROUNDS_MAX = 6
_NAMES = (f"{TASK}:", "finding:")
"""Sources that only name what made a memory: the messages, replies and turns that it was made of stand beside them."""

_KINDS = ("memories", "messages", "turns", "traces", "tasks", "schedules")
"""The fields of ForgetTargets that hold ids."""

_SUMMARIES = frozenset({Kind.THREAD_SUMMARY, Kind.SESSION_SUMMARY, Kind.THREAD_STATE, Kind.BULLETIN})


@dataclass(slots=True)
class _Reach:
    """What is reached so far.

    A memory that was chosen leads to the messages it was made of. One that was not chosen `by_id` does not if one of
    them is `matched` by the wish itself, or was forgotten `before`: then the others are not part of what was named.
    """

    named: frozenset[int]
    leads: bool = True
    memories: dict[int, forgetting.Traced] = field(default_factory=dict)
    messages: dict[int, None] = field(default_factory=dict)
    turns: dict[int, None] = field(default_factory=dict)
    traces: dict[int, None] = field(default_factory=dict)
    tasks: dict[int, None] = field(default_factory=dict)
    schedules: dict[int, None] = field(default_factory=dict)
    imports: dict[str, None] = field(default_factory=dict)
    words: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    matched: frozenset[str] = frozenset()
    by_id: bool = False

    @property
    def refs(self) -> frozenset[str]:
        """What goes, as sources name it."""
        names = frozenset(map(forgetting.message_name, self.messages))
        turns = (f"turn:{number}" for number in self.turns)
        tasks = map(forgetting.task_name, self.tasks)
        return names.union(map(forgetting.reply_name, self.turns), turns, tasks, self.imports)

    def leads_on(self, chosen: forgetting.Traced) -> bool:
        """Whether the sources of a memory that was chosen go with it."""
        return self.leads and (self.by_id or (self.matched | self.before).isdisjoint(chosen.refs))

    def take(self, work: forgetting.Work | forgetting.ForgetTargets) -> None:
        """Reach tasks and schedules, what the schedules asked, and turns."""
        for kind in _KINDS[1:]:
            getattr(self, kind).update(dict.fromkeys(getattr(work, kind)))

    def take_merged(self, found: Sequence[forgetting.Traced]) -> None:
        """Reach the memories that were merged into one that goes: they are deleted with it."""
        below: dict[int, list[forgetting.Traced]] = {}
        for one in found:
            below.setdefault(one.into, []).append(one)
        waiting = list(self.memories)
        while waiting:
            merged = [one for one in below.get(waiting.pop(), ()) if one.into and one.id not in self.memories]
            self.memories |= {one.id: one for one in merged}
            waiting += [one.id for one in merged]

    @property
    def size(self) -> tuple[int, ...]:
        """How far it reaches."""
        return (*(len(getattr(self, kind)) for kind in _KINDS), len(self.imports))


class ForgetTargetFinder:
    """Finds everything that a selector reaches; changes nothing."""

    def __init__(self, view: ReachView, memory: ForgetfulMemory) -> None:
        self._view = view
        self._memory = memory

    async def find_targets(self, wish: forgetting.ForgetSelector) -> forgetting.ForgetTargets:
        """Find everything that a request to forget reaches; nothing is changed."""
        if wish.person:
            wish = replace(wish, joined=await self._memory.joined(wish.person))
        named = await self._memory.named(wish)
        reach = _Reach(frozenset(named), not wish.is_repeat)
        reach.messages |= dict.fromkeys(await self._view.messages(wish))
        reach.take(await self._view.work(wish))
        reach.by_id = bool(wish.memories)
        reach.matched = frozenset(map(forgetting.message_name, reach.messages))
        await self._follow(reach, named)
        return replace(await self._whole(reach), people=tuple(sorted(wish.persons)))

    async def widened(self, known: forgetting.ForgetTargets) -> forgetting.ForgetTargets:
        """What goes as well, because it came to hold what goes since that was looked for."""
        again = await self._memory.said_elsewhere(known.words, known.memories)
        reach = _Reach(frozenset(known.memories), leads=False, words=known.words - again)
        reach.take(known)
        await self._follow(reach, known.memories)
        return await self._whole(reach)

    async def lanes(self, targets: forgetting.ForgetTargets) -> tuple[message.Lane, ...]:
        """The lanes whose prompts held it."""
        return await self._view.lanes(targets.messages, targets.turns)

    async def _follow(self, reach: _Reach, named: Sequence[int]) -> None:
        """Everything that leads from one to another, until nothing new is found."""
        for _ in range(_ROUNDS_MAX):
            before = reach.size
            reach.turns |= dict.fromkeys(await self._view.answering(tuple(reach.messages)))
            reach.take(await self._view.made(tuple(reach.messages), tuple(reach.turns)))
            found = await self._memory.lineage(named, tuple(reach.refs))
            reach.before = await self._view.forgotten(sorted({ref for one in found for ref in one.refs}))
            same = {digest for one in found if one.id in reach.named for digest in one.said}
            for one in found:
                chosen = one.id in reach.named or not same.isdisjoint(one.said)
                if chosen or _goes(one, reach):
                    reach.memories[one.id] = one
                    leads = chosen and reach.leads_on(one)
                    _lead((one.key, *(ref for ref in one.refs if leads and ref not in reach.before)), reach)
            reach.take_merged(found)
            reach.words |= await self._telling(reach)
            await self._spread(reach)
            if reach.size == before:
                return

    async def _telling(self, reach: _Reach) -> frozenset[str]:
        """The words of what goes that nothing that stays says."""
        first = [one for one in reach.memories.values() if one.id in reach.named or one.key.startswith("message:")]
        words = forgetting.telling((*(one.text for one in first), *await self._view.list_texts(tuple(reach.messages))))
        words -= reach.words
        return words - await self._memory.said_elsewhere(words, tuple(reach.memories))

    async def _spread(self, reach: _Reach) -> None:
        """What holds telling words: turns that were shown what goes, and what the program made."""
        lanes = await self._view.lanes(tuple(reach.messages), tuple(reach.turns))
        held: forgetting.HoldingTurns = await self._view.holding(lanes, reach.words, tuple(reach.memories))
        reach.turns |= dict.fromkeys(held.turns)
        reach.traces = {number: None for number in (*reach.traces, *held.traces) if number not in reach.turns}
        made = await self._memory.holding(reach.words, tuple(reach.memories))
        summarised = await self._view.summarised(tuple(reach.messages), tuple(reach.turns))
        found = await self._memory.lineage(made, [name for lane in summarised for name in _summaries(lane)])
        reach.memories |= {one.id: one for one in found if one.id in made or one.kind in _SUMMARIES}

    async def _whole(self, reach: _Reach) -> forgetting.ForgetTargets:
        digests = {digest for one in reach.memories.values() for digest in one.digests}
        digests |= {forgetting.name_digest(forgetting.message_name(number)) for number in reach.messages}
        digests |= {forgetting.name_digest(forgetting.reply_name(number)) for number in reach.turns}
        digests |= {forgetting.name_digest(forgetting.task_name(number)) for number in reach.tasks}
        digests |= {forgetting.work_digest("task", number) for number in reach.tasks}
        digests |= {forgetting.work_digest("schedule", number) for number in reach.schedules}
        echoes = await self._echoes(reach)
        numbers = {kind: tuple(sorted(getattr(reach, kind))) for kind in _KINDS}
        return forgetting.ForgetTargets(words=reach.words, digests=tuple(sorted(digests)), echoes=echoes, **numbers)

    async def _echoes(self, reach: _Reach) -> tuple[bytes, ...]:
        """Digests of the sentences that go and that no memory repeats that stays, for the same person and the agent."""
        said = [(one.person, one.text) for one in reach.memories.values() if one.said and one.kind not in _SUMMARIES]
        said += await self._view.list_attributed_texts(tuple(reach.messages))
        each = {(who, one): None for who, text in said if who for one in forgetting.sentences(text)}
        stays = await self._memory.echoes.repeated(sorted({one for _, one in each}), tuple(reach.memories))
        known = {
            who: {who, *await self._memory.joined(who), forgetting.AGENT} for who in sorted({who for who, _ in each})
        }
        found = {forgetting.sentence_digest(name, one) for who, one in each if one not in stays for name in known[who]}
        return tuple(sorted(found))


def fresh(found: forgetting.ForgetTargets, known: forgetting.ForgetTargets) -> forgetting.ForgetTargets:
    """What was found that was not known."""
    before: dict[str, set[int]] = {kind: set(getattr(known, kind)) for kind in _KINDS}
    before["traces"] |= before["turns"]
    new: dict[str, Any] = {kind: tuple(sorted(set(getattr(found, kind)) - before[kind])) for kind in _KINDS}
    return replace(found, **new)


def repeats(text: str, targets: forgetting.ForgetTargets) -> bool:
    """Whether a text holds a word that only what goes says, or a sentence of it."""
    if not targets.words.isdisjoint(forgetting.words_in(text)):
        return True
    return any(
        forgetting.sentence_digest(forgetting.AGENT, one) in targets.echoes for one in forgetting.sentences(text)
    )


def _goes(one: forgetting.Traced, reach: _Reach) -> bool:
    """Whether a memory goes with what is reached: it records that, no source of it stays, or it repeats a word."""
    if one.kind in _SUMMARIES:
        return False
    if one.key in reach.refs:
        return True
    gone = reach.refs | reach.before
    stays = [ref for ref in one.refs if ref not in gone and not ref.startswith(_NAMES)]
    return not stays or not reach.words.isdisjoint(forgetting.words_in(one.text))


def _lead(refs: Iterable[str], reach: _Reach) -> None:
    """Add the messages and turns that these sources name, and what was imported."""
    for ref in refs:
        kind, _, number = ref.partition(":")
        if kind == "import":
            reach.imports[ref] = None
        if number.isdecimal():
            if kind == "message":
                reach.messages[int(number)] = None
            if kind in ("reply", "turn"):
                reach.turns[int(number)] = None


def _summaries(lane: message.Lane) -> tuple[str, str]:
    return summary_key(lane), joined(":", str(Kind.SESSION_SUMMARY), *lane[:3])


_SCHEMA = object_schema({"id": {"type": "string", "description": "mem_..., as memory_search names it"}}, "id")


def memory_forget(memories: Opening, forgets: ForgetOperations, listener: Listener) -> Tool:
    """A tool that prepares forgetting a memory `listener` hears, and tells what the owner has to say to confirm it."""
    hearing = replace(listener, everything=False)

    async def run(arguments: dict[str, Json]) -> str:
        if set(arguments) - {"id"}:
            raise ToolError("there is no other argument than id")
        memory_id = memory_in(arguments)
        name = ids.show("memory", memory_id)
        if await memories.get(hearing, memory_id) is None:
            raise ToolError(f"there is no memory {name} that can be read here")
        targets = await forgets.find_targets(forgetting.ForgetSelector((memory_id,)))
        return (
            f"Nothing is forgotten yet: only the owner can confirm it, in a direct chat. It would take "
            f"{len(targets.memories)} memories, {len(targets.messages)} messages and {len(targets.turns)} replies. "
            f"Ask the owner to send this, if it is meant: /forget {name} yes"
        )

    says = "Prepare to forget a memory for good; nothing is forgotten before its owner confirms it in a chat."
    return Tool("memory_forget", says, _SCHEMA, run, output=message.Trust.OWNER)
