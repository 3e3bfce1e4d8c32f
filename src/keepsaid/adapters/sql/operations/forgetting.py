"""Forgetting in the operational store: requests and their steps, scrubbed rows, names of forgotten conversations."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from keepsaid.adapters.sql.operations import collection, journal, outbox, reply_parts, routing, schedules, tasks
from keepsaid.adapters.sql.operations import files as kept
from keepsaid.adapters.sql.query import Row, SqlSession, column, every, load, one, only, post_each, run, scalar
from keepsaid.adapters.sql.tombstones import TombstoneKeyring
from keepsaid.domain import commits, event, ids, learning, memory, personality, relay
from keepsaid.domain import forgetting as domain
from keepsaid.domain.forgetting import Counts, ForgetSelector, ForgetTargets, Scrubbed, ScrubForgotten, Work
from keepsaid.domain.message import Lane, conversation_note, forgotten_lane
from keepsaid.domain.quotation import delivered_quote
from keepsaid.domain.states import TABLES, move

SQL = load("forgetting")


def touched(db: SqlSession, number: int) -> tuple[int, ...]:
    """The lanes of the messages and turns that a forgetting is about."""
    return tuple(column(db, SQL["lanes_of_request"], (number,)))


def hold(db: SqlSession, number: int) -> None:
    """Let the lanes that a forgetting is about keep their names while it can be undone."""
    post_each(db, SQL["keep_item"], [(number, "lane", str(lane_id)) for lane_id in touched(db, number)])


def unname(db: SqlSession, lanes: Iterable[int]) -> int:
    """Take away the names of these lanes, and of others of their conversations, that are empty; returns how many.

    A lane in which anything is left, waits, is at work, comes later or can come back keeps its name.
    """
    count = 0
    for lane_id in lanes:
        named = every(db, SQL["beside_of_lane"], (lane_id,))
        empty = [(number, Lane(*lane)) for number, *lane in named if one(db, SQL["life_of_lane"], (number,)) is None]
        if len(empty) == len(named):
            post_each(db, SQL["forget_note"], [(conversation_note(lane),) for _, lane in empty[:1]])
        for number, lane in empty:
            after = forgotten_lane(lane, empty[0][0], number)
            db.post(SQL["forget_manner"], (personality.session_scope(lane),))
            db.post(SQL["unname_lane"], (number, after.conversation))
            db.post(SQL["unname_replies_of_lane"], (number, after.conversation))
            for statement in ("unname_schedules_of_lane", "unname_runs_of_lane"):
                db.post(SQL[statement], (*lane, after.conversation, after.key))
        count += len(empty)
    return count


def work_named(db: SqlSession, wish: ForgetSelector) -> Work:
    schedules = list(wish.schedules)
    if wish.conversation:
        schedules += column(db, SQL["schedules_of_conversation"], (wish.conversation,))
    if not wish.text:
        return _work(db, wish.tasks, schedules)
    text = wish.text.casefold()
    schedules += _holding(every(db, SQL["all_schedule_words"]), text)
    turns = [*_holding(every(db, SQL["all_records"]), text), *_holding(every(db, SQL["all_replies"]), text)]
    traces = _holding(every(db, SQL["all_steps"]), text)
    work = _work(db, _holding(every(db, SQL["all_task_words"]), text), schedules, turns, traces)
    quotes = ((number, delivered_quote(payload)) for number, payload in every(db, SQL["all_quoting"]))
    quoting = _holding([(number, quote.text) for number, quote in quotes if quote is not None], text)
    return work._replace(messages=(*work.messages, *quoting))


def work_made(db: SqlSession, messages: Sequence[int], turns: Sequence[int]) -> Work:
    of_messages, by_turns = db.numbers((0, *messages)), db.numbers((0, *turns))
    tasks = column(db, SQL["tasks_of"], (of_messages, by_turns))
    return _work(db, tasks, column(db, SQL["schedules_of"], (by_turns,)))


def _work(db: SqlSession, *reached: Iterable[int]) -> Work:
    """Tasks, schedules, turns and turns by their traces, with the messages that the first two led to."""
    tasks, schedules, turns, traces = (tuple(dict.fromkeys(of)) for of in (*reached, (), ())[:4])
    messages = column(db, SQL["asked_by_schedules"], (db.numbers((0, *schedules)),))
    results = every(db, SQL["results_after"], (min(tasks),)) if tasks else []
    messages += [message_id for message_id, text in results if relay.reported_task_id(text) in tasks]
    return Work(tasks, schedules, tuple(messages), turns, tuple(one for one in traces if one not in turns))


def _holding(rows: Iterable[Row], text: str) -> list[int]:
    return [row[0] for row in rows if text in str(row[1]).casefold()]


CONTEXT = load("context")
FORGOTTEN = "forgotten"
_FROM_REPLY = {"pending": "refuse", "unknown": "bury"}
_UNSETTLED = ("queued", "leased")
UNDOABLE: tuple[str, ...] = ("message", "redaction", "transcript", "turn", "step", "trace", "injection", "feedback")
UNDOABLE += ("finding", "task", "schedule", "schedule_run", "placed", "personality", "note", "tombstone", "file")
UNDOABLE += ("file_piece", "turn_file", "turn_file_piece")
"""Tables whose rows are put back when a forgetting is undone."""

_TARGETS = {"memory": "memories", "message": "messages", "turn": "turns", "trace": "traces", "word": "words"}
_TARGETS |= {"digest": "digests", "echo": "echoes", "person": "people", "task": "tasks", "schedule": "schedules"}
"""The fields of `ForgetTargets` by the kind under which their items are stored."""

_HASHES, _TEXTS = ("digest", "echo"), ("word", "person")
"""Kinds whose items are hashes, and texts; the others are numbers. All are stored as text."""


class ForgettingCommits:
    """Applies the commits of forgetting; `renamed` is called after lanes lost their names."""

    def __init__(self, keyring: TombstoneKeyring, renamed: Callable[[], None]) -> None:
        self._keyring = keyring
        self._renamed = renamed

    def request(self, db: SqlSession, commit: domain.RequestForgetting) -> bool:
        if not run(db, SQL["request"], (commit.id, commit.how, commit.by, commit.at, commit.undo_until)):
            return False
        with _record_undo(db, commit.id):
            post_each(db, SQL["bury"], [(hash_, commit.at) for hash_ in commit.hashes])
            self._keep(db, commit.id, commit.wanted, commit.at)
        if commit.undo_until is not None:
            hold(db, commit.id)
        return True

    def scrub(self, db: SqlSession, commit: ScrubForgotten) -> Scrubbed:
        with _record_undo(db, commit.id):
            self._keep(db, commit.id, commit.more, commit.at)
            done = _scrubbed(db, commit)
        if only(db, SQL["row"], (commit.id,))[-1] is not None:
            hold(db, commit.id)
        return done

    def move_on(self, db: SqlSession, commit: domain.MoveForgetting) -> bool:
        """Once scrubbed, lanes with nothing left lose their names, unless the forgetting can be undone."""
        row = one(db, SQL["row"], (commit.id,))
        if row is None or (row[1], commit.verb) not in TABLES["forgetting"]:
            return False
        db.post(SQL["move"], (commit.id, move("forgetting", row[1], commit.verb), commit.at))
        _count(db, commit.id, commit.counts, commit.at)
        if commit.verb == "scrub":
            lanes = touched(db, commit.id)
            db.post(SQL["forget_items"], (commit.id,))
            if row[-1] is None:
                self._unname(db, commit.id, lanes, commit.at)
            else:
                post_each(db, SQL["keep_item"], [(commit.id, "lane", str(lane_id)) for lane_id in lanes])
        if commit.verb == "finish":
            counts = json.loads(only(db, SQL["row"], (commit.id,))[6])
            journal.write_facts(db, commit.at, event.forgot(commit.id, counts))
        return True

    def drop_undo(self, db: SqlSession, commit: domain.DropUndo) -> bool:
        if (row := one(db, SQL["row"], (commit.id,))) is not None:
            lanes = touched(db, commit.id)
            db.post(SQL["forget_lane_items"], (commit.id,))
            self._unname(db, commit.id, lanes, row[5])
        if commit.emptied:
            run(db, SQL["for_good"], (commit.id,))
        return bool(run(db, SQL["drop_aside"], (commit.id,)))

    def _unname(self, db: SqlSession, number: int, lanes: Sequence[int], at: int) -> None:
        if count := unname(db, lanes):
            _count(db, number, (("lanes", count),), at)
            self._renamed()

    def _keep(self, db: SqlSession, number: int, targets: ForgetTargets, at: int) -> None:
        if targets.digests:
            post_each(db, SQL["bury"], [(hash_, at) for hash_ in self._keyring.make_tombstones(targets.digests)])
        for kind, name in _TARGETS.items():
            refs = getattr(targets, name)
            refs = sorted(refs) if isinstance(refs, frozenset) else refs
            post_each(db, SQL["keep_item"], [(number, kind, _as_text(ref)) for ref in refs])


def _as_text(ref: int | str | bytes) -> str:
    return ref.hex() if isinstance(ref, bytes) else str(ref)


def _as_target(kind: str, ref: int | str | bytes) -> int | str | bytes:
    """Return an item as it was named; former releases stored it as it was."""
    if kind in _HASHES:
        return bytes.fromhex(ref) if isinstance(ref, str) else ref
    return ref if kind in _TEXTS else int(ref)


def _record_undo(db: SqlSession, number: int) -> AbstractContextManager[None]:
    """Record an undo image of what the block deletes, if the forgetting can be undone."""
    kept = (one(db, SQL["row"], (number,)) or (None,))[-1] is not None
    return db.record_undo(number if kept else None, UNDOABLE, SQL["keep_aside"])


def restore(db: SqlSession, commit: domain.PutBack) -> bool:
    """Restore an undo image; the affected lanes are summarised again from before its first record."""
    found = db.put_back(commit.id, SQL["aside"])
    first: dict[int, int] = {}
    for table, key in found:
        if table == "transcript" and isinstance(key[0], int) and isinstance(key[1], int):
            first[key[0]] = min(key[1], first.get(key[0], key[1]))
    for lane_id, position in first.items():
        _summaries(db, lane_id, position, commit.at)
    for statement in ("drop_aside", "forget_lane_items", "for_good"):
        db.post(SQL[statement], (commit.id,))
    return bool(found)


def read_targets(db: SqlSession, number: int) -> ForgetTargets:
    found: dict[str, list[Any]] = {name: [] for name in _TARGETS.values()}
    for kind, ref in every(db, SQL["items"], (number,)):
        if kind in _TARGETS:
            found[_TARGETS[kind]].append(_as_target(kind, ref))
    words, people = frozenset(found.pop("words")), tuple(sorted(found.pop("people")))
    return ForgetTargets(words=words, people=people, **{name: tuple(refs) for name, refs in found.items()})


def _count(db: SqlSession, number: int, counts: Counts, at: int) -> None:
    if counts:
        before = json.loads(only(db, SQL["row"], (number,))[6])
        db.post(SQL["count"], (number, json.dumps(dict(domain.summed(tuple(before.items()), counts))), at))


@dataclass(slots=True)
class _Piece:
    """One piece of scrubbing: what it counted, and the records that went of each lane it touched."""

    at: int
    counts: Counter[str] = field(default_factory=Counter)
    places: dict[int, set[int]] = field(default_factory=dict)

    def empty(self, db: SqlSession, records: Sequence[Row]) -> None:
        for lane_id, position in records:
            self.counts["records"] += run(db, SQL["empty_record"], (lane_id, position))
            self.places.setdefault(lane_id, set()).add(position)


def _scrubbed(db: SqlSession, commit: ScrubForgotten) -> Scrubbed:
    piece = _Piece(commit.at)
    room, waiting = domain.PIECE, 0
    for kind, scrub_one in _SCRUBBERS.items():
        refs = [int(ref) for ref in column(db, SQL["open_items"], (commit.id, kind, room))]
        gone = [ref for ref in refs if scrub_one(db, ref, piece)]
        db.post(SQL["item_done"], (commit.id, kind, db.numbers((0, *gone))))
        waiting += len(refs) - len(gone)
        room = max(1, room - len(refs))
    targets = read_targets(db, commit.id)
    for lane_id, positions in piece.places.items():
        piece.counts["summaries"] += _summaries(db, lane_id, min(positions), commit.at)
        for number, after, lost in emptied_findings(db, lane_id, positions, targets.words):
            db.post(SQL["change_finding"], (number, learning.encoded(after)))
            piece.counts["statements"] += lost
        collection.read_anew(db, lane_id, commit.at)
    # how to speak with a person who goes, notes that name them, and instructions in words of what goes
    for person in targets.people:
        db.post(SQL["forget_manner"], (memory.person_scope(person),))
        db.post(SQL["forget_notes"], (person,))
    for scope, text in every(db, SQL["manners"]) if targets.words else ():
        if not targets.words.isdisjoint(domain.words_in(text)):
            db.post(SQL["forget_manner"], (scope,))
    for name, text in every(db, SQL["conversation_names"]) if targets.words else ():
        if not targets.words.isdisjoint(domain.words_in(text)):
            db.post(SQL["forget_note"], (name,))
    _count(db, commit.id, domain.summed(tuple(piece.counts.items()), commit.counts), commit.at)
    left = only(db, SQL["open_count"], (commit.id,))[0]
    return Scrubbed(left - waiting, waiting)


def _message(db: SqlSession, message_id: int, piece: _Piece) -> bool:
    """Empty a message and its record; False while somebody works on it."""
    piece.counts["messages"] += run(db, SQL["empty_message"], (message_id, piece.at))
    db.post(SQL["forget_marks"], (message_id,))
    db.post(SQL["forget_placing"], (message_id,))
    db.post(SQL["forget_client_calls"], (message_id,))
    kept.forget(db, message_id)
    name = f"message:{message_id}"
    piece.empty(db, every(db, SQL["positions_of"], (name,)))
    if (place := one(db, SQL["place"], (message_id,))) is None:
        return True
    db.post(SQL["empty_answers"], (place[0], name))
    if (batch := one(db, SQL["batch_holding"], place)) is None:
        return False
    batch_id, state, steered, task_id = batch
    if task_id is not None and not _task(db, task_id, piece):
        return False
    if state == "queued" and steered is None and only(db, SQL["all_forgotten"], (batch_id,))[0]:
        routing.drop(db, commits.Drop(batch_id, piece.at, FORGOTTEN))
    elif state in _UNSETTLED:
        return False
    db.post(SQL["empty_batch"], (batch_id,))
    db.post(SQL["unname_message"], (message_id,))
    return True


def _turn(db: SqlSession, turn_id: int, piece: _Piece) -> bool:
    """Remove all that a turn left; False while it is open, its reply on its way, or what it asked for later at work."""
    replies, notices = every(db, SQL["replies_of"], (turn_id,)), every(db, SQL["notices_of_made"], (turn_id,))
    if _is_open(db, turn_id) or _on_its_way(notices) or not _replies(db, replies, turn_id, piece):
        return False
    _replies(db, notices, None, piece)
    db.post(SQL["empty_turn"], (turn_id,))
    kept.forget_of_turn(db, turn_id)
    piece.counts["staged"] += outbox.forget_staged(db, turn_id)
    db.post(SQL["empty_question"], (turn_id, piece.at))
    piece.empty(db, every(db, SQL["positions_of_turn"], (turn_id,)))
    piece.counts["tasks"] += tasks.scrub_made_by(db, turn_id, piece.at)
    settled = [_schedule(db, made_id, piece) for made_id in column(db, schedules.SQL["made_by"], (turn_id,))]
    return all(settled) and _trace(db, turn_id, piece)


def _replies(db: SqlSession, replies: Sequence[Row], turn_id: int | None, piece: _Piece) -> bool:
    """Empty replies, given as id, state, batch and attempts; False, with none emptied, while one is on its way."""
    if _on_its_way(replies):
        return False
    for reply_id, state, batch_id, tries in replies:
        verb = _FROM_REPLY.get(state)
        after = state if verb is None else move("reply", state, verb)
        fact = None if verb is None else event.replied(reply_id, after, (turn_id, batch_id), tries)
        journal.write_facts(db, piece.at, fact)
        piece.counts["replies"] += only(db, SQL["reply_holds"], (reply_id,))[0]
        db.post(SQL["empty_reply"], (reply_id, after, piece.at))
        db.post(SQL["empty_moves"], (reply_id,))
        db.post(reply_parts.SQL["forget"], (reply_id,))
    return True


def _task(db: SqlSession, task_id: int, piece: _Piece) -> bool:
    """Remove the words of a task, its answer and the notices of it; False while one of these is on its way."""
    piece.counts["tasks"] += tasks.scrub(db, task_id, piece.at)
    about = every(db, SQL["notices_of"], (ids.show("task", task_id),)), every(db, SQL["replies_about"], (task_id,))
    return _replies(db, tuple({row[0]: row for rows in about for row in rows}.values()), None, piece)


def _schedule(db: SqlSession, schedule_id: int, piece: _Piece) -> bool:
    """Remove the words of a schedule, and what it posted and asked; False while that is on its way or at work."""
    if not _replies(db, every(db, schedules.SQL["posted_by"], (schedule_id,)), None, piece):
        return False
    piece.counts["schedules"] += schedules.scrub(db, schedule_id, piece.at)
    settled = [_message(db, asked_id, piece) for asked_id in column(db, schedules.SQL["asked_by"], (schedule_id,))]
    return all(settled)


def _on_its_way(replies: Sequence[Row]) -> bool:
    return any(state == "sending" for _, state, *_ in replies)


def _trace(db: SqlSession, turn_id: int, piece: _Piece) -> bool:
    """Remove what a turn was shown and what its calls returned; False while it is open."""
    if _is_open(db, turn_id):
        return False
    piece.counts["steps"] += run(db, SQL["forget_steps"], (turn_id,))
    piece.counts["traces"] += run(db, SQL["forget_trace"], (turn_id,))
    return True


def _memory(db: SqlSession, memory_id: int, piece: _Piece) -> bool:
    piece.counts["uses"] += run(db, SQL["forget_injections"], (memory_id,))
    db.post(SQL["forget_feedback"], (memory_id,))
    return True


def emptied_findings(
    db: SqlSession, lane_id: int, positions: set[int], words: frozenset[str]
) -> Iterator[tuple[int, tuple[learning.Statement | None, ...], int]]:
    """Findings that lose statements which cite records that go, or contain a word of them.

    Yields the number of each finding, its statements after that, and how many it loses.
    """
    found = {row for position in positions for row in every(db, SQL["findings_over"], (lane_id, position))}
    for number, text in found:
        before = learning.decoded(text)
        after = learning.emptied(before, lambda one: learning.stays(one, positions, words))
        if after != before:
            yield number, after, after.count(None) - before.count(None)


def _is_open(db: SqlSession, turn_id: int) -> bool:
    return scalar(db, SQL["turn_state"], (turn_id,)) == "open"


def _summaries(db: SqlSession, lane_id: int, position: int, at: int) -> int:
    """Delete the summaries made of a record; one being made now is refused, because the version changes."""
    if (version := only(db, SQL["summary_over"], (lane_id, position))[0]) is None:
        db.post(SQL["seen_anew"], (lane_id, at))
        return 0
    gone = run(db, SQL["forget_summaries"], (lane_id, version))
    number, last = one(db, SQL["summary_before"], (lane_id,)) or (None, 0)
    reset = only(db, SQL["reset_until"], (lane_id,))[0]
    standing = number if last > reset else None
    db.post(SQL["begin_summary_anew"], (lane_id, last, max(reset, last), standing, at))
    db.post(SQL["forget_copy"], (lane_id,))
    if number is not None:
        db.post(CONTEXT["copy_due"], (lane_id, number))
    return gone


_SCRUBBERS = {"message": _message, "turn": _turn, "trace": _trace, "memory": _memory, "task": _task}
_SCRUBBERS |= {"schedule": _schedule}
