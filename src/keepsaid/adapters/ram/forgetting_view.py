"""What is read to forget: requests, and everything that a wish reaches in the RAM store."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from keepsaid.adapters.ram.forgetting import wanted_of
from keepsaid.adapters.ram.forgetting_work import work_made, work_named
from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.forgetting import (
    UNFINISHED,
    Forgetting,
    Held,
    Wanted,
    Wish,
    Work,
    message_name,
    name_digest,
    source_name,
    words_in,
)
from keepsaid.domain.ids import show
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import person_of
from keepsaid.domain.prompt import Role


class RamForgettings:
    """Requests to forget, and what they reach; read only."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def newest(self, limit: int) -> Sequence[Forgetting]:
        """The newest requests first."""
        return [self._state.forgettings[number] for number in sorted(self._state.forgettings, reverse=True)[:limit]]

    async def unfinished(self) -> Sequence[Forgetting]:
        """Requests that are not done, the oldest first."""
        return [row for _, row in sorted(self._state.forgettings.items()) if row.state in UNFINISHED]

    async def undoable(self) -> Sequence[Forgetting]:
        """Requests that kept something aside, those that end first."""
        kept = [row for row in self._state.forgettings.values() if row.undo_until is not None]
        return sorted(kept, key=lambda row: row.undo_until or 0)

    async def one(self, number: int) -> Forgetting | None:
        """One request."""
        return self._state.forgettings.get(number)

    async def wanted(self, number: int) -> Wanted:
        """What a request is about; nothing once it is scrubbed."""
        return wanted_of(self._state, number)

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""
        return tuple(sorted(self._state.tombs))

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        """Messages that are there although they have one of these tombstones."""
        there = [number for number in self._state.messages if number not in self._state.forgotten]
        return tuple(number for number in there if name_digest(message_name(number)) in hashes)


class RamReach:
    """Everything that a wish reaches; read only."""

    def __init__(self, state: State) -> None:
        self._state = state

    async def messages(self, wish: Wish) -> tuple[int, ...]:
        """The messages that a wish names, without those that are forgotten already."""
        text, found = wish.text.casefold(), dict.fromkeys(wish.messages)
        for number, message in self._state.messages.items():
            if number in self._state.forgotten:
                continue
            origin = message.inbound.origin
            named = bool(wish.conversation) and message.lane.conversation == wish.conversation
            named = named or person_of(origin) in wish.persons or (bool(wish.person) and wish.person == origin.sender)
            if named or (text and text in message.text.casefold()):
                found[number] = None
        for lane, ref, said in self._said():
            here = bool(wish.conversation) and lane.lane.conversation == wish.conversation
            if here or (text and text in said.casefold()):
                found[int(ref.removeprefix("message:"))] = None
        return tuple(found)

    def _said(self) -> Iterator[tuple[LaneRow, str, str]]:
        for lane in self._state.lanes.values():
            for entry in lane.transcript:
                if entry.ref.startswith("message:") and (entry.record.text or entry.record.attached):
                    yield lane, entry.ref, entry.record.text

    async def work(self, wish: Wish) -> Work:
        """Tasks, schedules and turns in whose words the text of a wish stands, and schedules into its conversation."""
        return work_named(self._state, wish)

    async def made(self, messages: Sequence[int], turns: Sequence[int]) -> Work:
        """Tasks that were made of these messages or by these turns, and schedules that the turns asked for."""
        return work_made(self._state, messages, turns)

    async def answering(self, messages: Sequence[int]) -> tuple[int, ...]:
        """The turns that answered these messages."""
        found: dict[int, None] = {}
        for number in messages:
            name, message = f"message:{number}", self._state.messages.get(number)
            for lane in self._state.lanes.values():
                found |= dict.fromkeys(entry.turn_id for entry in lane.transcript if entry.ref == name)
            batch = None if message is None else self._state.lanes[message.lane].batch_of(message.number)
            if batch is not None:
                found |= dict.fromkeys(turn.id for turn in batch.turns)
                found |= {} if batch.steered is None else {batch.steered: None}
        return tuple(found)

    async def said(self, messages: Sequence[int]) -> tuple[str, ...]:
        """What was said in these messages."""
        texts = [self._state.messages[number].text for number in messages if number in self._state.messages]
        names = {f"message:{number}" for number in messages}
        texts += [said for _, ref, said in self._said() if ref in names]
        return tuple(dict.fromkeys(text for text in texts if text))

    async def spoken(self, messages: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """Who said these messages, as persons are named, and what."""
        found = [self._state.messages[number] for number in messages if number in self._state.messages]
        return tuple((person_of(one.inbound.origin), one.text) for one in found if one.text)

    async def lanes(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes in which they stand."""
        names, found = {f"message:{number}" for number in messages}, dict[Lane, None]()
        for lane, row in self._state.lanes.items():
            stands = any(one is not None and one.id in messages for one in row.messages)
            stands = stands or any(entry.ref in names or entry.turn_id in turns for entry in row.transcript)
            if stands or any(turn.id in turns for batch in row.batches for turn in batch.turns):
                found[lane] = None
        return tuple(found)

    async def summarised(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes with a summary that was made of them."""
        names, found = {f"message:{number}" for number in messages}, dict[Lane, None]()
        for lane, row in self._state.lanes.items():
            until = max((one.last for one in row.context.summaries), default=0)
            for entry in row.transcript[:until]:
                if entry.ref in names or (entry.turn_id in turns and entry.record.role is not Role.USER):
                    found[lane] = None
        return tuple(found)

    async def forgotten(self, refs: Sequence[str]) -> frozenset[str]:
        """Those of the sources that were forgotten before."""
        return frozenset(ref for ref in refs if name_digest(source_name(ref)) in self._state.tombs)

    async def holding(self, lanes: Sequence[Lane], words: frozenset[str], memories: Sequence[int]) -> Held:
        """Turns of these lanes that hold one of the words, and turns anywhere that name one of the memories."""
        shown = [show("memory", number) for number in memories]
        state = self._state
        here = {turn.id for turn in state.turns.values() if not set(turn.shown).isdisjoint(memories)}

        def holds(turn_id: int, text: str, lane: Lane) -> bool:
            close = lane in lanes or turn_id in here
            return any(name in text for name in shown) or (close and not words.isdisjoint(words_in(text)))

        turns: dict[int, None] = {}
        for lane, row in state.lanes.items():
            for entry in row.transcript:
                calls = " ".join(str(call.arguments) for call in entry.record.calls)
                if entry.record.role is not Role.USER and holds(entry.turn_id, f"{entry.record.text} {calls}", lane):
                    turns[entry.turn_id] = None
        for reply in state.replies.values():
            if reply.turn_id is not None and holds(reply.turn_id, reply.draft.text, reply.lane):
                turns[reply.turn_id] = None
        traces = dict.fromkeys(here)
        for turn in state.turns.values():
            trace = json.dumps(json.loads(turn.trace), separators=(",", ":"), ensure_ascii=False)
            lane = turn.batch.lane.lane
            named = any(f'"id":{number},' in trace for number in memories) or holds(turn.id, trace, lane)
            said = (json.dumps(json.loads(one.output), ensure_ascii=False) for one in turn.steps.values())
            if named or any(holds(turn.id, text, lane) for text in said):
                traces[turn.id] = None
        return Held(tuple(turns), tuple(turn_id for turn_id in traces if turn_id not in turns))

    async def at_work(self, since: int, lanes: Sequence[Lane]) -> int:
        """Turns that are open since before a time and may still write what they were shown."""
        open_turns = [t for t in self._state.turns.values() if t.state == "open" and t.started_at <= since]
        return sum(turn.batch.state == "leased" or turn.batch.lane.lane in lanes for turn in open_turns)
