"""Turns: steps recorded around every outside call, and the one commit that settles a turn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from keepsaid.adapters.ram import steps
from keepsaid.adapters.ram.busy import steered_into
from keepsaid.adapters.ram.context import begin_anew
from keepsaid.adapters.ram.effects import leave
from keepsaid.adapters.ram.outbox import keep_reply
from keepsaid.adapters.ram.sessions import enter, mark_if_many
from keepsaid.adapters.ram.state import Entry, State, TurnRow
from keepsaid.domain.commits import EpisodesKept, Tell, TurnCommit
from keepsaid.domain.fact import answered
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.states import move


def commit_turn(state: State, commit: TurnCommit) -> bool:
    """Settle a turn in one piece."""
    turn = state.held_turn(commit.turn_id, commit.fence)
    if turn is None or turn.batch.id != commit.batch_id:
        return False
    joined = [batch for batch in steered_into(turn) if batch.state == "queued"]
    if tuple(batch.id for batch in joined) != commit.steered:
        return False
    if commit.ending is not None and not steps.end_step(state, commit.ending):
        return False
    batch, outcome = turn.batch, commit.outcome
    turn_state = move("turn", turn.state, "commit")
    batch.go("commit")
    batch.ended_at = commit.at
    turn.state, turn.ended_at = turn_state, commit.at
    turn.model, turn.usage = outcome.model, outcome.usage
    turn.chosen, turn.opened = outcome.chosen, outcome.opened
    if outcome.begins_anew:
        begin_anew(state, batch.lane, commit.at)
    _keep_records(state, turn, commit)
    leave(state, commit, batch.lane)
    if commit.reply is not None:
        keep_reply(state, batch, commit.reply, (turn.id, commit.at))
    state.told(commit.at, *answered(commit))
    state.episodes_due[batch.id] = turn.id
    for one in joined:
        one.go("steer")
        one.ended_at = commit.at
        state.episodes_due[one.id] = None
    return True


def _keep_records(state: State, turn: TurnRow, commit: TurnCommit) -> None:
    lane, said = turn.batch.lane, list(_said(turn, commit))
    if commit.outcome.obeyed and not said:
        return
    session = enter(state, lane, commit, said[0][2] if said else commit.at)
    lane.transcript += [_entry(state, turn, one) for one in said]
    mark_if_many(lane, session, commit.at)


def _entry(state: State, turn: TurnRow, said: tuple[Record, str, int]) -> Entry:
    """A record as the transcript keeps it, with who said it where that is a message."""
    record, ref, at = said
    entry = Entry(turn.id, record, ref, at)
    if record.role is not Role.USER or not ref.startswith("message:"):
        return entry
    message = state.messages.get(int(ref.removeprefix("message:")))
    if message is None:
        return entry
    origin = message.inbound.origin
    return replace(entry, sender=origin.sender, trust=origin.trust, direct=origin.direct)


def _said(turn: TurnRow, commit: TurnCommit) -> Iterator[tuple[Record, str, int]]:
    """The records of a turn, each with what it shows and when it was said."""
    commands, attached = {one.message_id for one in commit.outcome.obeyed}, dict(commit.outcome.attached)
    for message in turn.batch.messages:
        if message.id in commands:
            continue
        origin = message.inbound.origin
        who = origin.name or origin.sender
        record = Record(Role.USER, message.text, speaker=who, attached=attached.get(message.id, ""))
        yield record, f"message:{message.id}", message.received_at
    records = commit.outcome.records
    spoken = [n for n, record in enumerate(records) if record.role is Role.ASSISTANT and record.text]
    for n, record in enumerate(records):
        yield replace(record, ref=""), f"reply:{turn.id}" if n in spoken[-1:] else record.ref, commit.at


def tell(state: State, commit: Tell) -> None:
    """Write a fact to the journal."""
    state.tell(commit.topic, commit.payload, commit.correlation_id, commit.at)


def keep_episodes(state: State, commit: EpisodesKept) -> int:
    """Clear episode work that is done, and keep where messages hold secrets."""
    for message_id, marks in commit.redactions:
        if message_id in state.messages:
            state.redactions[message_id] = marks
    known = [batch_id for batch_id in commit.batch_ids if batch_id in state.episodes_due]
    for batch_id in known:
        turn_id = state.episodes_due.pop(batch_id)
        if turn_id is not None:
            state.staged.pop(turn_id, None)
    return len(known)
