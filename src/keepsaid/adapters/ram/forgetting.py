"""Forgetting in the RAM store: what was asked, and the text that goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from keepsaid.adapters.ram import collection, schedules, tasks
from keepsaid.adapters.ram.aside import drop_rows, kept_aside, put_back
from keepsaid.adapters.ram.drop import drop
from keepsaid.adapters.ram.forgetting_lanes import touched, unname
from keepsaid.adapters.ram.forgetting_work import notices_of
from keepsaid.adapters.ram.state import OPEN_BATCHES, OPEN_REPLIES, LaneRow, ReplyRow, State
from keepsaid.domain.commits import Drop
from keepsaid.domain.compaction import Cut
from keepsaid.domain.fact import forgot, replied
from keepsaid.domain.finding import emptied, stays
from keepsaid.domain.forgetting import (
    PIECE,
    DropAside,
    EmptyLog,
    Forgetting,
    MoveForgetting,
    PutBack,
    RequestForgetting,
    Scrubbed,
    ScrubForgotten,
    Wanted,
    summed,
    words_in,
)
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import person_scope
from keepsaid.domain.message import Content, Marks, Message
from keepsaid.domain.prompt import Role
from keepsaid.domain.slot import Question, SlotState
from keepsaid.domain.states import TABLES, move

FORGOTTEN = "forgotten"
_FROM_REPLY = {"pending": "refuse", "unknown": "bury"}
Item = tuple[str, int]


def request(state: State, commit: RequestForgetting) -> bool:
    """Write down what goes, and bury it."""
    if commit.id in state.forgettings:
        return False
    row = Forgetting(commit.id, "requested", commit.how, commit.by, commit.at, commit.at, (), commit.undo_until)
    state.forgettings[commit.id] = row
    state.forgotten_items[commit.id] = {}
    with kept_aside(state, commit.id):
        state.tombs |= set(commit.hashes)
        _keep(state, commit.id, commit.wanted)
    _hold(state, commit.id)
    return True


def _hold(state: State, number: int) -> None:
    """Let the lanes that a forgetting is about keep their names while it can be undone."""
    if state.forgettings[number].undo_until is not None:
        state.lanes_aside.setdefault(number, set()).update(touched(state, wanted_of(state, number)))


def _nameless(state: State, number: int, rows: set[LaneRow]) -> None:
    count = unname(state, rows)
    row = state.forgettings.get(number)
    if count and row is not None:
        state.forgettings[number] = replace(row, counts=summed(row.counts, (("lanes", count),)))


def _keep(state: State, number: int, wanted: Wanted) -> None:
    state.tombs |= set(wanted.digests)
    items: list[tuple[str, int | str | bytes]] = [("memory", one) for one in wanted.memories]
    items += [("message", one) for one in wanted.messages] + [("turn", one) for one in wanted.turns]
    items += [("trace", one) for one in wanted.traces] + [("word", one) for one in wanted.words]
    items += [("digest", one) for one in wanted.digests] + [("echo", one) for one in wanted.echoes]
    items += [("person", one) for one in wanted.people]
    items += [("task", one) for one in wanted.tasks] + [("schedule", one) for one in wanted.schedules]
    known = state.forgotten_items[number]
    known |= dict.fromkeys((item for item in items if item not in known), False)


def wanted_of(state: State, number: int) -> Wanted:
    """What a forgetting is about, while that is still kept."""
    items = state.forgotten_items.get(number, {})

    def ids(kind: str) -> tuple[int, ...]:
        return tuple(sorted(ref for one, ref in items if one == kind and isinstance(ref, int)))

    words = frozenset(ref for kind, ref in items if kind == "word" and isinstance(ref, str))

    def hashes(kind: str) -> tuple[bytes, ...]:
        return tuple(sorted(ref for one, ref in items if one == kind and isinstance(ref, bytes)))

    what = ids("memory"), ids("message"), ids("turn"), ids("trace")
    people = tuple(sorted(ref for kind, ref in items if kind == "person" and isinstance(ref, str)))
    return Wanted(*what, words, hashes("digest"), hashes("echo"), people, ids("task"), ids("schedule"))


def move_on(state: State, commit: MoveForgetting) -> bool:
    """A step is over."""
    row = state.forgettings.get(commit.id)
    if row is None or (row.state, commit.verb) not in TABLES["forgetting"]:
        return False
    after, counts = move("forgetting", row.state, commit.verb), summed(row.counts, commit.counts)
    state.forgettings[commit.id] = replace(row, state=after, changed_at=commit.at, counts=counts)
    if commit.verb == "scrub":
        lanes = touched(state, wanted_of(state, commit.id))
        state.forgotten_items[commit.id] = {}
        _nameless(state, commit.id, lanes)
    if commit.verb == "finish":
        state.told(commit.at, forgot(commit.id, dict(state.forgettings[commit.id].counts)))
    return True


def drop_aside(state: State, commit: DropAside) -> bool:
    """Nothing is kept of it, nor names of lanes with nothing left."""
    _nameless(state, commit.id, state.lanes_aside.pop(commit.id, set()))
    return drop_rows(state, commit)


def empty_log(_state: State, _commit: EmptyLog) -> bool:
    """There is no log."""
    return True


@dataclass(slots=True)
class _Piece:
    """One piece of scrubbing: what it counted, and the first record that went of each lane it touched."""

    state: State
    at: int
    counts: Counter[str] = field(default_factory=Counter)
    lanes: dict[int, tuple[LaneRow, int]] = field(default_factory=dict)
    places: dict[int, set[int]] = field(default_factory=dict)

    def empty(self, ref: str = "", turn_id: int = 0) -> None:
        for lane in self.state.lanes.values():
            for place, entry in enumerate(lane.transcript):
                of_turn = turn_id and entry.turn_id == turn_id and entry.record.role is not Role.USER
                if (ref and entry.ref == ref) or of_turn:
                    emptied = replace(entry.record, text="", attached="", calls=(), call_id="", speaker="")
                    lane.transcript[place] = replace(entry, record=emptied, unprompted=True, sender="")
                    first = self.lanes.get(id(lane), (lane, place + 1))[1]
                    self.lanes[id(lane)] = lane, min(place + 1, first)
                    self.places.setdefault(id(lane), set()).add(place + 1)
                    self.counts["records"] += 1


def scrub(state: State, commit: ScrubForgotten) -> Scrubbed:
    """Remove one piece."""
    with kept_aside(state, commit.id):
        done = _scrubbed(state, commit)
    _hold(state, commit.id)
    return done


def back(state: State, commit: PutBack) -> bool:
    """Put back what was kept aside; the lanes it belongs to are summarised anew from before it."""
    kept = bool(state.aside.get(commit.id))
    state.lanes_aside.pop(commit.id, None)
    for lane, position in put_back(state, commit.id).values():
        _summaries(state, lane, position, commit.at)
    return kept


def _scrubbed(state: State, commit: ScrubForgotten) -> Scrubbed:
    _keep(state, commit.id, commit.more)
    piece, items = _Piece(state, commit.at), state.forgotten_items.get(commit.id, {})
    waiting, room = 0, PIECE
    for kind, scrub_one in _EACH.items():
        refs = sorted(ref for (one, ref), done in items.items() if one == kind and not done and isinstance(ref, int))
        for ref in refs[:room]:
            done = scrub_one(ref, piece)
            items[kind, ref] = done
            waiting += not done
        room = max(1, room - len(refs))
    wanted = wanted_of(state, commit.id)
    for lane, position in piece.lanes.values():
        piece.counts["summaries"] += _summaries(state, lane, position, commit.at)
        piece.counts["statements"] += _statements(state, lane, piece.places[id(lane)], wanted.words)
        collection.read_anew(lane, commit.at)
    _standing(state, wanted)
    row = state.forgettings[commit.id]
    state.forgettings[commit.id] = replace(row, counts=summed(row.counts, tuple(piece.counts.items())))
    left = sum(not done for (kind, _), done in items.items() if kind in _EACH)
    return Scrubbed(left - waiting, waiting)


def _standing(state: State, wanted: Wanted) -> None:
    """Remove how one speaks with a person who goes, notes that name them, and how to speak in words of what goes."""
    for person in wanted.people:
        state.personalities.pop(person_scope(person), None)
        for name in [name for name, (text, _) in state.notes.items() if person in name or person in text]:
            del state.notes[name]
    for scope, one in [*state.personalities.items()]:
        if not wanted.words.isdisjoint(words_in(one.text)):
            del state.personalities[scope]


def _message(message_id: int, piece: _Piece) -> bool:
    state, name = piece.state, f"message:{message_id}"
    piece.empty(ref=name)
    message = state.messages.get(message_id)
    if message is None:
        return True
    lane = state.lanes[message.lane]
    if message_id not in state.forgotten:
        content = Content(b"", "", message.inbound.content.event)
        emptied = replace(message, inbound=replace(message.inbound, content=content))
        state.messages[message_id] = lane.messages[message.number - 1] = emptied
        state.forgotten[message_id] = piece.at
        piece.counts["messages"] += 1
    state.redactions.pop(message_id, None)
    state.placed.pop(message_id, None)
    for number, slot in lane.slots.items():
        if slot.filled_by == name:
            lane.slots[number] = replace(slot, value="")
    batch = lane.batch_of(message.number)
    if batch is None:
        return False
    if batch.task_id is not None and not _task(batch.task_id, piece):
        return False
    if batch.state == "queued" and batch.steered is None and all(m.id in state.forgotten for m in batch.messages):
        drop(state, Drop(batch.id, piece.at, FORGOTTEN))
    elif batch.state in OPEN_BATCHES:
        return False
    batch.error = ""
    _unname(state, state.messages[message_id])
    return True


def _unname(state: State, message: Message) -> None:
    """Remove who said it, and the names by which its provider knows it; the hash that tells a redelivery stays."""
    inbound = message.inbound
    _untarget(state, message.lane, inbound.marks.provider_id, (0, message.id))
    origin = replace(inbound.origin, sender=FORGOTTEN, name="")
    named = replace(inbound, origin=origin, marks=Marks(), topic=None, reply_url=None)
    unnamed = replace(message, inbound=named)
    state.messages[message.id] = state.lanes[message.lane].messages[message.number - 1] = unnamed


def _untarget(state: State, lane: Lane, provider_id: str | None, rank: tuple[int, int]) -> None:
    if provider_id is not None:
        target = (lane.channel, lane.account, lane.conversation), provider_id
        if state.named.get(target, (1, 0, lane))[:2] == rank:
            del state.named[target]


def _turn(turn_id: int, piece: _Piece) -> bool:
    state = piece.state
    turn = state.turns.get(turn_id)
    replies = [reply for reply in state.replies.values() if reply.turn_id == turn_id]
    made = {one.id for one in state.tasks.values() if one.task.turn_id == turn_id}
    replies += [reply for reply in state.replies.values() if reply.about_task in made]
    if (turn is not None and turn.state == "open") or not _replies(replies, piece):
        return False
    for lane in state.lanes.values():
        slot = lane.slots.get(turn_id)
        if slot is not None:
            ended = slot.state is SlotState.OPEN
            question = Question("", slot.question.expected)
            lane.slots[turn_id] = replace(slot, question=question, value="", person="", anchor="")
            if ended:
                cleared = SlotState(move("slot", slot.state, "clear"))
                lane.slots[turn_id] = replace(lane.slots[turn_id], state=cleared, reason=FORGOTTEN, ended_at=piece.at)
    if turn is not None:
        turn.reason = ""
    piece.counts["staged"] += len(state.staged.pop(turn_id, []))
    piece.empty(turn_id=turn_id)
    piece.counts["tasks"] += tasks.scrub_made_by(state, turn_id, piece.at)
    settled = [_schedule(schedule_id, piece) for schedule_id in schedules.made_by(state, turn_id)]
    return all(settled) and _trace(turn_id, piece)


def _replies(replies: Sequence[ReplyRow], piece: _Piece) -> bool:
    if any(reply.state == "sending" for reply in replies):
        return False
    for reply in replies:
        _empty_reply(piece.state, reply, piece.at)
        piece.counts["replies"] += 1
    return True


def _task(task_id: int, piece: _Piece) -> bool:
    piece.counts["tasks"] += tasks.scrub(piece.state, task_id, piece.at)
    return _replies(notices_of(piece.state, task_id), piece)


def _schedule(schedule_id: int, piece: _Piece) -> bool:
    if not _replies(schedules.posted_by(piece.state, schedule_id), piece):
        return False
    piece.counts["schedules"] += schedules.scrub(piece.state, schedule_id, piece.at)
    settled = [_message(message_id, piece) for message_id in schedules.asked_by(piece.state, schedule_id)]
    return all(settled)


def _empty_reply(state: State, reply: ReplyRow, at: int) -> None:
    verb = _FROM_REPLY.get(reply.state)
    if verb is not None:
        reply.state = move("reply", reply.state, verb)
        state.told(at, replied(reply.draft.id, reply.state, (reply.turn_id, reply.batch_id or None), reply.attempts))
    if reply.state not in OPEN_REPLIES:
        state.unsettled.pop(reply.draft.id, None)
    _untarget(state, reply.lane, reply.provider_id, (1, reply.draft.id))
    reply.draft, reply.detail, reply.owner = replace(reply.draft, text="", url=None, reply_to=None), "", ""
    reply.provider_id = None
    reply.ended_at = at if reply.ended_at is None else reply.ended_at


def _trace(turn_id: int, piece: _Piece) -> bool:
    turn = piece.state.turns.get(turn_id)
    if turn is None:
        return True
    if turn.state == "open":
        return False
    piece.counts["steps"] += len(turn.steps)
    piece.counts["traces"] += turn.trace != "null"
    turn.steps, turn.trace = {}, "null"
    return True


def _memory(memory_id: int, piece: _Piece) -> bool:
    for turn in piece.state.turns.values():
        piece.counts["uses"] += memory_id in turn.shown
        turn.chosen = tuple(one for one in turn.chosen if one != memory_id)
        turn.opened = tuple(one for one in turn.opened if one != memory_id)
    for place in [place for place in piece.state.feedback if place[1] == memory_id]:
        del piece.state.feedback[place]
    return True


_EACH = {
    "message": _message,
    "turn": _turn,
    "trace": _trace,
    "memory": _memory,
    "task": _task,
    "schedule": _schedule,
}


def _statements(state: State, lane: LaneRow, positions: set[int], words: frozenset[str]) -> int:
    """Empty the places of statements that cite records that go, or hold a word of it; all others stay as they are."""
    gone = 0
    for row in state.findings.values():
        before = row.finding.statements
        left = emptied(before, lambda one: stays(one, positions, words))
        if row.finding.lane == lane.lane and left != before:
            gone += left.count(None) - before.count(None)
            row.finding = replace(row.finding, statements=left)
    return gone


def _summaries(state: State, lane: LaneRow, position: int, at: int) -> int:
    """Remove the summaries made of a record; a lane is summarised anew from before it, and what is made now refused."""
    head = lane.context
    head.version, head.changed_at, head.error = head.version + 1, at, ""
    gone = [one for one in head.summaries if one.last >= position]
    if not gone:
        return 0
    first = min(one.version for one in gone)
    kept = [one for one in head.summaries if one.version < first]
    gone_count, head.summaries = len(head.summaries) - len(kept), kept
    last = kept[-1].last if kept else 0
    reset = max((one.last for one in head.cuts if one.why is Cut.RESET), default=0)
    head.summarised_until, head.floor = last, min(head.floor, max(reset, last))
    head.summary = kept[-1] if kept and last > reset else None
    head.attempts, head.next_at = 0, 0
    state.summaries_due.pop(lane.lane, None)
    if kept:
        state.summaries_due[lane.lane] = kept[-1].version
    return gone_count
