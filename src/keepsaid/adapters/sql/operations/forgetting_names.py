"""Forgetting of names: lanes of forgotten conversations, and words in tasks, schedules and what turns wrote."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from keepsaid.adapters.sql.query import every, load, one
from keepsaid.adapters.sql.session import Row, SqlSession
from keepsaid.domain.forgetting import ForgetSelector, Work
from keepsaid.domain.lane import Lane, forgotten_lane
from keepsaid.domain.personality import session_scope
from keepsaid.domain.relay import reported_task_id

SQL = load("forgetting")


def touched(db: SqlSession, number: int) -> tuple[int, ...]:
    """The lanes of the messages and turns that a forgetting is about."""
    return tuple(int(row[0]) for row in every(db, SQL["lanes_of_request"], (number,)))


def hold(db: SqlSession, number: int) -> None:
    """Let the lanes that a forgetting is about keep their names while it can be undone."""
    db.executemany(SQL["keep_item"], [(number, "lane", lane_id) for lane_id in touched(db, number)])


def unname(db: SqlSession, lanes: Iterable[int]) -> int:
    """Take away the names of these lanes, and of others of their conversations, that are empty; returns how many.

    A lane in which anything is left, waits, is at work, comes later or can come back keeps its name.
    """
    count = 0
    for lane_id in lanes:
        named = [(int(row[0]), Lane(*row[1:])) for row in every(db, SQL["beside_of_lane"], (lane_id,))]
        empty = [(number, lane) for number, lane in named if one(db, SQL["life_of_lane"], (number,)) is None]
        for number, lane in empty:
            after = forgotten_lane(lane, empty[0][0], number)
            db.execute(SQL["forget_manner"], (session_scope(lane),))
            db.execute(SQL["unname_lane"], (number, after.conversation))
            db.execute(SQL["unname_replies_of_lane"], (number, after.conversation))
            for statement in ("unname_schedules_of_lane", "unname_runs_of_lane"):
                db.execute(SQL[statement], (*lane, after.conversation, after.key))
        count += len(empty)
    return count


def work_named(db: SqlSession, wish: ForgetSelector) -> Work:
    of_conversation = every(db, SQL["schedules_of_conversation"], (wish.conversation,)) if wish.conversation else []
    schedules = [row[0] for row in of_conversation]
    if not wish.text:
        return _work(db, (), schedules)
    text = wish.text.casefold()
    schedules += _holding(every(db, SQL["all_schedule_words"]), text)
    turns = [*_holding(every(db, SQL["all_records"]), text), *_holding(every(db, SQL["all_replies"]), text)]
    traces = _holding(every(db, SQL["all_steps"]), text)
    return _work(db, _holding(every(db, SQL["all_task_words"]), text), schedules, turns, traces)


def work_made(db: SqlSession, messages: Sequence[int], turns: Sequence[int]) -> Work:
    of_messages, by_turns = db.numbers((0, *messages)), db.numbers((0, *turns))
    tasks = [row[0] for row in every(db, SQL["tasks_of"], (of_messages, by_turns))]
    return _work(db, tasks, [row[0] for row in every(db, SQL["schedules_of"], (by_turns,))])


def _work(db: SqlSession, *reached: Iterable[int]) -> Work:
    """Tasks, schedules, turns and turns by their traces, with the messages that the first two led to."""
    tasks, schedules, turns, traces = (tuple(dict.fromkeys(ids)) for ids in (*reached, (), ())[:4])
    messages = [row[0] for row in every(db, SQL["asked_by_schedules"], (db.numbers((0, *schedules)),))]
    results = every(db, SQL["results_after"], (min(tasks),)) if tasks else []
    messages += [message_id for message_id, text in results if reported_task_id(text) in tasks]
    return Work(tasks, schedules, tuple(messages), turns, tuple(one for one in traces if one not in turns))


def _holding(rows: Iterable[Row], text: str) -> list[int]:
    return [row[0] for row in rows if text in str(row[1]).casefold()]
