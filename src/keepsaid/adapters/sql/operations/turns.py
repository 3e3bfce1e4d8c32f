"""Turns: receipts of what they were shown, and the commit at their end."""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from keepsaid.adapters.sql.operations import journal, modes, outbox, routing, rows, schedules, sessions, tasks
from keepsaid.adapters.sql.query import (
    JointStatement,
    Row,
    SqlSession,
    column,
    every,
    load,
    one,
    only,
    post_each,
    scalar,
    write_rows,
)
from keepsaid.domain import commits, effects, event, personality, process, receipt, trust, turn
from keepsaid.domain.context import Block, Reminders
from keepsaid.domain.message import ANSWERED, Lane, conversation_note
from keepsaid.domain.prompt import Record, Role
from keepsaid.domain.states import move
from keepsaid.text.tokens import Calibration

NOTES = load("notes")


def keep(db: SqlSession, commit: process.Note) -> None:
    db.post(NOTES["over"], (commit.at,))
    db.post(NOTES["keep"], (commit.name, commit.text, commit.until))


def notify(db: SqlSession, commit: process.NotifyOwner) -> bool:
    is_told = one(db, NOTES["read"], (commit.name, commit.at)) is not None
    if not is_told and (is_told := outbox.keep_for_owner(db, commit.notice, commit.at)):
        keep(db, process.Note(commit.name, "told", commit.until, commit.at))
    return is_told


def note(db: SqlSession, name: str, at: int) -> str:
    return str(scalar(db, NOTES["read"], (name, at)) or "")


def conversation_name(db: SqlSession, lane: Lane) -> str:
    """The title of a lane's conversation; "" if its medium gave none."""
    return note(db, conversation_note(lane), 0)


RECEIPTS = load("receipts")


def judged(db: SqlSession, word: receipt.JudgeMemory, at: int) -> bool:
    """Whether the word stands now; False where the turn was not shown the memory, or nothing is to withdraw."""
    place = (word.turn_id, word.memory_id)
    if (known := scalar(db, RECEIPTS["judged"], place)) is not None:
        stands = receipt.FeedbackState.WRONG if word.verb == "mark" else receipt.FeedbackState.WITHDRAWN
        if known != stands:
            db.post(RECEIPTS["judge_again"], (*place, move("feedback", known, word.verb), word.by, at))
        return True
    if (lane_id := scalar(db, RECEIPTS["shown"], place)) is None or word.verb != "mark":
        return False
    db.post(RECEIPTS["judge"], (*place, lane_id, str(receipt.FeedbackState.WRONG), word.by, at))
    return True


def record_feedback(db: SqlSession, commit: commits.RecordFeedback) -> bool:
    if commit.once and note(db, commit.once, commit.at):
        return False
    stands = judged(db, commit.word, commit.at)
    if commit.once:
        keep(db, process.Note(commit.once, "done", process.ENDLESSLY, commit.at))
    return stands


def list_flagged_memories(db: SqlSession, lane_id: int) -> frozenset[int]:
    """The memories that feedback in force marks as wrong for turns of a lane."""
    return frozenset(column(db, RECEIPTS["wrong_here"], (lane_id,)))


def feedback_of_turn(db: SqlSession, turn_id: int) -> tuple[receipt.Feedback, ...]:
    return tuple(_feedback(row) for row in every(db, RECEIPTS["feedback_of_turn"], (turn_id,)))


def reminded(db: SqlSession, lane: Lane) -> receipt.Reminded | None:
    shown = every(db, RECEIPTS["reminded"], (routing.lane_id_of(db, lane),))
    return receipt.Reminded(shown[0][0], tuple(memory_id for _, memory_id in shown)) if shown else None


def reminded_by(db: SqlSession, place: Lane, provider_id: str) -> receipt.Reminded | None:
    shown = every(db, RECEIPTS["reminded_by"], (provider_id, *place[:3]))
    return receipt.Reminded(shown[0][0], tuple(memory_id for _, memory_id in shown)) if shown else None


def uses(db: SqlSession, memory_id: int, turns: int) -> Sequence[receipt.Use]:
    found = {}
    for turn_id, *lane, at, how in every(db, RECEIPTS["shown_to"], (memory_id,)):
        candidate = receipt.candidate_in(rows.trace(db, turn_id), memory_id)
        found[turn_id] = receipt.Use(turn_id, Lane(*lane), at, receipt.MemoryUse(how), candidate)
    named = f'"id":{memory_id},'.encode()
    for turn_id, *lane, at, body in every(db, RECEIPTS["traces"], (turns,)):
        text = zlib.decompress(body)
        if turn_id in found or named not in text:
            continue
        trace = json.loads(text)
        considered, behind = receipt.candidate_in(trace, memory_id), receipt.beyond_in(trace, memory_id)
        if considered is not None and not considered["chosen"]:
            found[turn_id] = receipt.Use(turn_id, Lane(*lane), at, receipt.MemoryUse.LEFT_OUT, considered)
        elif behind is not None:
            found[turn_id] = receipt.Use(turn_id, Lane(*lane), at, receipt.MemoryUse.BEYOND, behind)
    return [found[turn_id] for turn_id in sorted(found, reverse=True)]


def list_active_feedback(db: SqlSession, lane: Lane) -> Sequence[receipt.Feedback]:
    return [_feedback(row) for row in every(db, RECEIPTS["wrong_of_lane"], (routing.lane_id_of(db, lane),))]


def feedback(db: SqlSession, memory_id: int) -> Sequence[receipt.Feedback]:
    return [_feedback(row) for row in every(db, RECEIPTS["feedback"], (memory_id,))]


def _feedback(row: Row) -> receipt.Feedback:
    turn_id, memory_id, state, by, at = row
    return receipt.Feedback(turn_id, memory_id, receipt.FeedbackState(state), by, at)


STANDING = load("standing")


def personalities(db: SqlSession, scopes: Sequence[str]) -> tuple[personality.Personality, ...]:
    [found] = db.ask(ask_personalities(scopes))
    return personalities_in(found)


def ask_personalities(scopes: Sequence[str]) -> JointStatement:
    """The statement that finds the personalities of some scopes."""
    return JointStatement(STANDING["personalities"], (json.dumps(scopes),))


def personalities_in(found: Sequence[Row]) -> tuple[personality.Personality, ...]:
    """The personalities in rows, by scope."""
    return tuple(sorted((personality.Personality(*row) for row in found), key=lambda each: each.scope))


def calibration(db: SqlSession, model: str) -> Calibration:
    return Calibration(*(one(db, STANDING["calibration"], (model,)) or (model,)))


def calibrations(db: SqlSession) -> tuple[Calibration, ...]:
    return calibrations_in(every(db, STANDING["calibrations"]))


def calibrations_in(found: Sequence[Row]) -> tuple[Calibration, ...]:
    """The calibrations in rows."""
    return tuple(Calibration(*row) for row in found)


REMINDERS = load("reminders")


def reminders(db: SqlSession, lane: Lane, turns: int, blocks: int) -> Reminders:
    if (lane_id := routing.lane_id_of(db, lane)) is None:
        return Reminders()
    lately = column(db, REMINDERS["lately"], (lane_id, turns)) if turns > 0 else ()
    last = column(db, REMINDERS["reminded"], (lane_id, blocks)) if blocks > 0 else []
    found = (_block(db, lane_id, turn_id) for turn_id in reversed(last))
    return Reminders(tuple(block for block in found if block is not None), frozenset(lately))


def _block(db: SqlSession, lane_id: int, turn_id: int) -> Block | None:
    begins = scalar(db, REMINDERS["begins"], (lane_id, turn_id))
    trace = rows.trace(db, turn_id)
    if begins is None or not (text := receipt.block_in(trace)):
        return None
    return Block(begins, text, tuple(column(db, REMINDERS["shown"], (turn_id,))), trust.taint_in(trace).trust)


TURNS = load("turns")


class _Found(NamedTuple):
    """What the commit of a turn finds: the turn and its batch while they are held, and what joined them.

    `said` are the batch's messages, `step` is the state of the step that the commit ends, `totals` are what was
    measured of models so far.
    """

    held: Row | None
    steered: list[Row]
    batch: Row | None
    said: list[Row]
    step: str | None
    totals: dict[str, Calibration]


def _find(db: SqlSession, commit: commits.TurnCommit) -> _Found:
    models = list(dict.fromkeys(one.model for one in commit.outcome.effects if isinstance(one, effects.Measured)))
    step = (0, 0) if commit.ending is None else (commit.ending.turn_id, commit.ending.n)
    held, steered, batch, said, steps, *measured = db.ask(
        JointStatement(TURNS["held_turn"], (commit.turn_id, commit.fence)),
        JointStatement(routing.SQL["steered"], (commit.turn_id,)),
        JointStatement(TURNS["lane_of_batch"], (commit.batch_id,)),
        JointStatement(TURNS["speakers"], (commit.batch_id,)),
        JointStatement(TURNS["step_state"], step),
        *(JointStatement(STANDING["calibration"], (model,)) for model in models),
    )
    totals = {model: Calibration(*next(iter(of), (model,))) for model, of in zip(models, measured, strict=True)}
    state = steps[0][0] if steps else None
    return _Found(next(iter(held), None), steered, next(iter(batch), None), said, state, totals)


def _apply_effects(db: SqlSession, commit: commits.TurnCommit, lane_id: int, totals: dict[str, Calibration]) -> None:
    made_by = (commit.turn_id, commit.at)
    for effect in commit.outcome.effects:
        match effect:
            case effects.OpenSlot() | effects.FillSlot() | effects.ClearSlot():
                sessions.apply_effect(db, effect, lane_id, made_by)
            case effects.SetPersonality():
                _set_personality(db, effect, commit.at)
            case effects.SetPaused():
                modes.apply_effect(db, effect, lane_id, commit.at)
            case receipt.JudgeMemory():
                judged(db, effect, commit.at)
            case effects.StageMemory():
                outbox.stage(db, effect, commit.turn_id)
            case effects.KeepTime() | effects.EndSchedule():
                schedules.apply_effect(db, effect, *made_by)
            case effects.Measured():
                total = totals[effect.model].with_sample(effect.estimated, effect.reported)
                totals[effect.model] = total
                db.post(STANDING["calibrate"], (total.model, total.estimated, total.reported))
            case _:
                _apply_other(db, effect, commit, lane_id)


def _apply_other(
    db: SqlSession, effect: effects.SetIncognito | effects.OfTask, commit: commits.TurnCommit, lane_id: int
) -> None:
    """Apply an effect on tasks; incognito was set before the records of the turn were kept."""
    if not isinstance(effect, effects.SetIncognito):
        lane = Lane(*only(db, TURNS["lane"], (lane_id,)))
        tasks.apply_effect(db, effect, lane, (commit.turn_id, commit.at))


def _set_personality(db: SqlSession, effect: effects.SetPersonality, at: int) -> None:
    if effect.text:
        db.post(STANDING["set_personality"], (effect.scope, effect.text, at, effect.by))
    else:
        db.post(STANDING["reset_personality"], (effect.scope,))


def commit_turn(db: SqlSession, commit: commits.TurnCommit) -> bool:
    found = _find(db, commit)
    held, steered = found.held, found.steered
    if held is None or held[1] != commit.batch_id or tuple(row[0] for row in steered) != commit.steered:
        return False
    if not _end_step(db, commit, found.step):
        return False
    assert found.batch is not None, "a batch that is held is there"
    lane_id, before, first, last = found.batch
    outcome, usage = commit.outcome, commit.outcome.usage
    db.post(TURNS["finish_batch"], (commit.batch_id, move("batch", before, "commit"), commit.at))
    settled = (move("turn", held[0], "commit"), outcome.model, usage.tokens_in, usage.tokens_out, usage.cost_micros)
    reason = turn.SILENT + outcome.silent if outcome.silent else ""
    db.post(TURNS["commit_turn"], (commit.turn_id, *settled, commit.at, reason))
    if outcome.begins_anew:
        sessions.begin_anew(db, lane_id, Lane(*only(db, TURNS["lane"], (lane_id,))), commit.at)
    for effect in outcome.effects:
        if isinstance(effect, effects.SetIncognito):
            modes.set_incognito(db, effect, lane_id, commit.batch_id)
    numbers = first, max([last, *(row[2] for row in steered)])
    incognito = _keep_records(db, commit, lane_id, numbers, found.said)
    if incognito:
        kept = tuple(one for one in outcome.effects if not isinstance(one, effects.StageMemory))
        commit = replace(commit, outcome=replace(outcome, effects=kept))
    _apply_effects(db, commit, lane_id, found.totals)
    if commit.reply is not None:
        outbox.keep_reply(db, lane_id, (commit.turn_id, commit.batch_id), commit.reply, commit.at)
    shown = [(receipt.MemoryUse.INJECTED, memory_id) for memory_id in outcome.chosen]
    shown += [(receipt.MemoryUse.OPENED, memory_id) for memory_id in outcome.opened]
    used = [(commit.turn_id, memory_id, rank, str(how)) for rank, (how, memory_id) in enumerate(shown, 1)]
    write_rows(db, TURNS["keep_injections"], used)
    journal.write_facts(db, commit.at, *event.answered(commit))
    due = [(commit.batch_id, lane_id, commit.turn_id), *((row[0], lane_id, None) for row in steered)]
    post_each(db, routing.SQL["episodes_due"], [] if incognito else due)
    for batch_id, _, _, _, _, waiting in steered:
        db.post(TURNS["finish_batch"], (batch_id, move("batch", waiting, "steer"), commit.at))
    if incognito and not modes.is_incognito_on(db, lane_id):
        # the model must not repeat later what was said in incognito
        sessions.begin_anew(db, lane_id, Lane(*only(db, TURNS["lane"], (lane_id,))), commit.at)
    routing.refresh_ready(db, lane_id)
    return True


def _end_step(db: SqlSession, commit: commits.TurnCommit, known: str | None) -> bool:
    """End the step whose result settles the turn, if there is one; `known` is its state."""
    ending = commit.ending
    if ending is None:
        return True
    is_same = (ending.turn_id, ending.fence) == (commit.turn_id, commit.fence)
    return outbox.finish_step(db, ending, known) if is_same else outbox.end_step(db, ending)


def _records_of(commit: commits.TurnCommit, said: Sequence[Row]) -> list[tuple[Record, str, int]]:
    """The records of a turn, each with what it is of and its time: its messages but for commands, then its own."""
    commands = {one.message_id for one in commit.outcome.executed}
    attached, repeats = dict(commit.outcome.attached), dict(commit.outcome.repeats)
    records = list[tuple[Record, str, int]]()
    for message_id, speaker, text, at, what, *_ in said:
        shown = repeats.get(message_id)
        if message_id in commands or (message_id in repeats and shown is None):
            continue
        with_it = attached.get(message_id, "")
        record = replace(shown, attached=with_it) if shown else _record(what, speaker, text, with_it)
        records.append((record, record.ref or f"message:{message_id}", at))
    records += [(record, record.ref, commit.at) for record in commit.outcome.records]
    if commit.outcome.records and records[-1][0].role is Role.ASSISTANT:
        records[-1] = (records[-1][0], f"reply:{commit.turn_id}", commit.at)
    return records


def _keep_records(
    db: SqlSession, commit: commits.TurnCommit, lane_id: int, numbers: tuple[int, int], said: Sequence[Row]
) -> bool:
    """Keep the records of a turn; returns whether one of its messages, by number, was said in incognito."""
    records = _records_of(commit, said)
    is_empty = bool(commit.outcome.executed) and not records
    asked = [
        JointStatement(routing.SQL["incognito_between"], (lane_id, *numbers)),
        JointStatement(sessions.SESSIONS["current"], (lane_id,)),
    ]
    if not is_empty:
        asked.append(JointStatement(TURNS["extend_transcript"], (lane_id, len(records))))
    [[(hidden,)], current, *extended] = db.ask(*asked)
    incognito = bool(hidden)
    if is_empty:
        return incognito
    start = extended[0][0][0]
    heard_at = records[0][2] if records else commit.at
    grown = sessions.Grown(lane_id, start, heard_at, incognito, next(iter(current), None))
    session = sessions.enter(db, commit, grown)
    origins = _origins(db, said, records)
    table = list[Row]()
    for position, (record, ref, at) in enumerate(records, start + 1):
        place = (lane_id, position, session[0], commit.turn_id)
        content = (str(record.role), record.speaker, record.text, record.attached, rows.calls_text(record))
        # nobody said a record that shows no message, and its trust is its own
        origin = origins.get(ref) or ("", "" if record.trust is None else str(record.trust), 0)
        table.append((*place, *content, record.call_id, ref, at, *origin))
    write_rows(db, TURNS["keep_records"], table)
    sessions.mark_if_many(db, lane_id, session, (start + len(records), commit.at))
    return incognito


def _record(what: str, speaker: str, text: str, attached: str) -> Record:
    """The record of a message: what another agent answered is the agent's word."""
    if what == ANSWERED:
        return Record(Role.ASSISTANT, text, attached=attached)
    return Record(Role.USER, text, speaker=speaker, attached=attached)


def _origins(
    db: SqlSession, said: Sequence[Row], records: Sequence[tuple[Record, str, int]]
) -> dict[str, tuple[object, ...]]:
    """Who said the messages that records show: of those that joined the turn they are read."""
    origins: dict[str, tuple[object, ...]] = {f"message:{row[0]}": tuple(row[5:]) for row in said}
    joined = [ref for one, ref, _ in records if one.role is Role.USER and ref.startswith("message:")]
    if missing := [int(ref.removeprefix("message:")) for ref in joined if ref not in origins]:
        found = every(db, TURNS["origins"], (db.numbers(missing),))
        origins.update({f"message:{row[0]}": tuple(row[1:]) for row in found})
    return origins
