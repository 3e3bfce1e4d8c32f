"""Intake: stores a message, gives it its number, and tells duplicates from conflicts."""

from __future__ import annotations

from keepsaid.adapters.ram.state import LaneRow, State
from keepsaid.domain.batch import Window
from keepsaid.domain.commits import Arrival, Intake, Receive, Received
from keepsaid.domain.event import RECEIVED, arrivals
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message
from keepsaid.domain.strand import LATELY_MAX, RECORDS_EACH, Spoken, answered, inferable, remembered, strand_of


def receive(state: State, commit: Receive) -> Received:
    """Store one message, unless its body or its key came before."""
    arrival = commit.arrival
    known = _same_body(state, arrival) or _known(state, arrival)
    if known is not None:
        return known
    lane = _lane_of(state, commit)
    row = state.lanes.setdefault(lane, LaneRow(lane))
    message = Message(arrival.id, lane, row.head + 1, arrival.inbound, arrival.at)
    row.messages.append(message)
    row.last_id = message.id
    state.messages[message.id] = message
    if arrival.key_hash is not None:
        state.keys[arrival.key_hash] = (arrival.content_hash, message.id)
    if arrival.body is not None:
        state.bodies[arrival.body.hash] = (arrival.body.until, message.id)
    provider_id = arrival.inbound.marks.provider_id
    if provider_id is not None:
        name_target(state, lane, provider_id, (0, message.id))
    _collect(row, message, commit.window)
    received = Received(Intake.STORED, message.id, lane, message.number)
    state.tell(RECEIVED, arrivals([received]), "", arrival.at)
    return received


def name_target(state: State, lane: Lane, provider_id: str, rank: tuple[int, int]) -> None:
    """Remember the lane of something that can be replied to: messages before replies, the oldest of each first."""
    target = (lane.channel, lane.account, lane.conversation), provider_id
    kept = state.named.get(target)
    if kept is None or rank < kept[:2]:
        state.named[target] = (*rank, lane)


def collect_rest(row: LaneRow, window: Window, at: int) -> None:
    """Begin the window of what a dispatch left behind."""
    row.oldest_at = row.newest_at = row.due_at = None
    row.chars = 0
    rest = row.waiting
    for message in rest:
        _collect(row, message, window)
    if rest and _full(row, window):
        row.due_at = at


def _known(state: State, arrival: Arrival) -> Received | None:
    """The receipt of the message that came first under this key."""
    kept = None if arrival.key_hash is None else state.keys.get(arrival.key_hash)
    if kept is None:
        return None
    content_hash, message_id = kept
    intake = Intake.DUPLICATE if content_hash == arrival.content_hash else Intake.CONFLICT
    return _receipt(state, arrival, intake, message_id)


def _same_body(state: State, arrival: Arrival) -> Received | None:
    """The receipt of the message that was stored with this body and still counts."""
    until, message_id = (0, 0) if arrival.body is None else state.bodies.get(arrival.body.hash, (0, 0))
    return _receipt(state, arrival, Intake.DUPLICATE, message_id) if until > arrival.at else None


def _receipt(state: State, arrival: Arrival, intake: Intake, message_id: int) -> Received:
    first = state.messages.get(message_id)
    if first is None:
        return Received(intake, message_id, arrival.inbound.lane, 0)
    return Received(intake, first.id, first.lane, first.number)


def _lane_of(state: State, commit: Receive) -> Lane:
    """The lane of the reply's target, where that is known; or of what it is inferred to answer."""
    arrival, rules = commit.arrival, commit.lanes
    inbound = arrival.inbound
    lane, reply_to = inbound.lane, inbound.marks.reply_to
    if reply_to is not None and rules.join and not inbound.topic:
        target = state.named.get(((lane.channel, lane.account, lane.conversation), reply_to))
        return lane if target is None else target[2]
    if rules.infer and inferable(inbound):
        placed = strand_of(_lately(state, lane), arrival.id, inbound, arrival.at)
        state.placed[arrival.id] = placed.reason
        return lane._replace(key=placed.key)
    return lane


def _lately(state: State, lane: Lane) -> list[Spoken]:
    """What was said last in the conversation, by people and in the agent's answers to them."""
    rows = [row for place, row in state.lanes.items() if place._replace(key="") == lane._replace(key="")]
    found = (
        remembered(message.id, message.inbound, message.received_at, row.lane.key)
        for row in rows
        for message in row.messages
        if message is not None
    )
    spoken = sorted((one for one in found if one is not None), key=lambda one: one.id)[-LATELY_MAX:]
    heard = {one.key for one in spoken}
    named = {reply.turn_id: reply.provider_id for reply in state.replies.values() if reply.provider_id is not None}
    for row in rows:
        if row.lane.key in heard:
            last = row.transcript[-RECORDS_EACH:]
            records = ((one.turn_id, one.ref, one.record.text, one.created_at, named.get(one.turn_id)) for one in last)
            spoken += answered(row.lane.key, records)
    return spoken


def _collect(row: LaneRow, message: Message, window: Window) -> None:
    at, priority = message.received_at, message.inbound.priority
    row.priority = priority if row.oldest_at is None else min(row.priority, priority)
    row.oldest_at = at if row.oldest_at is None else min(row.oldest_at, at)
    row.newest_at = at if row.newest_at is None else max(row.newest_at, at)
    row.chars += len(message.text)
    row.due_at = at if _full(row, window) else window.due_at(row.oldest_at, row.newest_at)


def _full(row: LaneRow, window: Window) -> bool:
    return row.head - row.batched >= window.count_max or row.chars >= window.chars_max
