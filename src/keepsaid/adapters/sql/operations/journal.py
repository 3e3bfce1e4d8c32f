"""The journal: facts become lines in the transaction of what happened; deliveries to subscribers; views of both."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from keepsaid.adapters.sql import query
from keepsaid.adapters.sql.query import Row, SqlSession, column, every, load, reads, run, scalar, write_rows
from keepsaid.adapters.sql.tombstones import seal_of
from keepsaid.domain import commits, process, retention
from keepsaid.domain import event as events
from keepsaid.domain.states import move
from keepsaid.ports.runtime import Hint

_LINE = load("journal")["keep_line"]


def write_line(db: SqlSession, topic: str, payload: str, correlation_id: str, at: int) -> None:
    """Write a line; sealed here, because a trigger would write a long line twice and wait for other threads."""
    db.post(_LINE, (topic, payload, correlation_id, at, seal_of(topic, payload, correlation_id, at)))


def write_facts(db: SqlSession, at: int, *facts: events.Fact | None) -> None:
    """Write facts to the journal, a line each; None is skipped."""
    for fact in filter(None, facts):
        payload = json.dumps(fact.payload, ensure_ascii=False, separators=(",", ":"))
        write_line(db, fact.topic, payload, fact.about, at)


def write_facts_grouped(db: SqlSession, at: int, facts: Sequence[events.Fact]) -> None:
    """Write facts of one topic to the journal, up to `EACH` in a line."""
    for start in range(0, len(facts), events.EACH):
        run = facts[start : start + events.EACH]
        write_line(db, run[0].topic, events.several((fact.about, fact.payload) for fact in run), "", at)


SQL = load("journal")
NOTES = load("notes")


def write_fact(db: SqlSession, commit: commits.Tell) -> None:
    write_line(db, commit.topic, commit.payload, commit.correlation_id, commit.at)


def write_news(db: SqlSession, commit: events.TellNews) -> int:
    """Write news of memories to the journal, and store the mark of the last one."""
    if not commit.news:
        return 0
    last_mark = str(scalar(db, NOTES["read"], (events.TOLD, commit.at)) or "")
    facts = [fact for fact in map(events.of_memory, events.news_after(commit.news, last_mark)) if fact is not None]
    for what in events.MemoryChange:
        write_facts_grouped(db, commit.at, [fact for fact in facts if fact.topic == f"memory.{what}"])
    db.post(NOTES["keep"], (events.TOLD, commit.news[-1].mark, process.ENDLESSLY))
    return len(facts)


def write_received(db: SqlSession, stored: Sequence[commits.Received], at: int) -> None:
    """Write that messages were received: one line for up to `EACH` messages of a commit."""
    for start in range(0, len(stored), events.EACH):
        write_line(db, events.RECEIVED, events.arrivals(stored[start : start + events.EACH]), "", at)


def subscribe(db: SqlSession, commit: events.Subscribe) -> None:
    """Know a subscriber, put back what it was working on, and wait for nothing that a former process waited for."""
    db.post(SQL["subscribe"], (commit.name, json.dumps(commit.topics), commit.at, commit.from_start))
    db.post(SQL["pick_up"], (commit.name, move("delivery", "processing", "retry")))
    db.post(SQL["soon"], (commit.name, commit.at))


def unsubscribe(db: SqlSession, commit: events.Unsubscribe) -> bool:
    db.post(SQL["drop_deliveries"], (commit.name,))
    return bool(run(db, SQL["unsubscribe"], (commit.name,)))


def distribute(db: SqlSession, commit: events.Distribute) -> int:
    """Make deliveries of the next lines; subscribers that reached the same line share one reading of the next."""
    by_line: defaultdict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name, topics, reached in every(db, SQL["subscriptions"]):
        by_line[reached].append((name, tuple(json.loads(topics))))
    read = 0
    for reached, subscribers in by_line.items():
        found = _next(db, reached, commit.events_max)
        read += len(found)
        for name, topics in subscribers if found else ():
            wanted = {topic for topic in {event.topic for event in found} if events.wants(topics, topic)}
            due = (event for event in found if event.topic in wanted)
            rows = [(name, event.id, event.correlation_id, "pending", commit.at) for event in due]
            write_rows(db, SQL["keep_deliveries"], rows)
            db.post(SQL["reach"], (name, found[-1].id // events.EACH))
    return read


def _next(db: SqlSession, reached: int, events_max: int) -> list[events.Event]:
    """The events of the next lines; no line is split."""
    found: list[events.Event] = []
    for row in every(db, SQL["lines"], (reached, events_max)):
        found += events.events_of(events.JournalLine(*row))
        if len(found) >= events_max:
            break
    return found


def take(db: SqlSession, commit: events.TakeDeliveries) -> tuple[events.EventDelivery, ...]:
    """Take what is due, unless an earlier delivery about the same thing is not settled."""
    if overdue := column(db, SQL["overdue"], (commit.subscriber, commit.steady)):
        db.post(SQL["put_back"], (db.numbers(overdue), move("delivery", "processing", "retry")))
    ready = every(db, SQL["ready"], (commit.subscriber, commit.at, commit.limit))
    # the first alone, if it was attempted before; else those before the first that was
    ready = ready[: max(1, next((n for n, (_, _, attempts) in enumerate(ready) if attempts), len(ready)))]
    if not ready:
        return ()
    rows = [row for row in ready if row[2] < commit.attempts_max]
    taken = (move("delivery", "pending", "take"), commit.fence, commit.steady + commit.lease_ms)
    db.post(SQL["take"], (db.numbers([row[0] for row in ready]), *taken))
    endless = [events.DeliveryResult(row[0], events.ENDLESS) for row in ready if row[2] >= commit.attempts_max]
    _end(db, endless, commit.at)
    return _deliveries(db, commit, rows) if rows else ()


def _deliveries(db: SqlSession, commit: events.TakeDeliveries, rows: Sequence[Row]) -> tuple[events.EventDelivery, ...]:
    lines = sorted({event_id // events.EACH for _, event_id, _ in rows})
    found = {event.id: event for event in _parse_events(every(db, SQL["told"], (db.numbers(lines),)))}
    return tuple(
        events.EventDelivery(number, commit.subscriber, found[event_id], attempts + 1, commit.fence)
        for number, event_id, attempts in rows
    )


def settle(db: SqlSession, commit: events.SettleDeliveries) -> int:
    ids = db.numbers([result.delivery_id for result in commit.settled])
    held = set(column(db, SQL["held"], (ids, commit.subscriber, commit.fence)))
    results = [result for result in commit.settled if result.delivery_id in held]
    if done := [result.delivery_id for result in results if result.tried and not result.error]:
        db.post(SQL["finish"], (db.numbers(done), move("delivery", "processing", "finish"), commit.at))
    if untried := [result.delivery_id for result in results if not result.tried]:
        db.post(SQL["uncharge"], (db.numbers(untried), move("delivery", "processing", "retry")))
    _end(db, [result for result in results if result.error], commit.at)
    return len(results)


def prune(db: SqlSession, commit: commits.Prune) -> retention.Pruned:
    """Remove events that all subscribers received, then events that no subscriber needs."""
    deliveries = run(db, SQL["forget_deliveries"], (commit.before, commit.rows_max))
    lines = run(db, SQL["forget_lines"], (commit.before, commit.rows_max))
    more = commit.rows_max in (deliveries, lines)
    return retention.Pruned(0, 0, 0, (lines,) if more else None, lines)


def _end(db: SqlSession, failed: Iterable[events.DeliveryResult], at: int) -> None:
    for result in failed:
        dead = result.again_at is None
        state = move("delivery", "processing", "bury" if dead else "retry")
        due_at = at if result.again_at is None else result.again_at
        db.post(SQL["settle"], (result.delivery_id, state, due_at, at if dead else None, result.error))


def decide(db: SqlSession, commit: events.DecideDelivery) -> bool:
    if scalar(db, SQL["state_of"], (commit.delivery_id,)) != "dead":
        return False
    state = move("delivery", "dead", "requeue" if commit.again else "dismiss")
    db.post(SQL["decide"], (commit.delivery_id, state, commit.at, None if commit.again else commit.at))
    return True


def _parse_events(rows: Iterable[Row]) -> Iterator[events.Event]:
    return (event for row in rows for event in events.events_of(events.JournalLine(*row)))


def _events(db: SqlSession, after: int, limit: int) -> list[events.Event]:
    """The line of `after` is read again: it may hold more events."""
    rows = every(db, SQL["lines"], (after // events.EACH - 1, limit + 1))
    return [event for event in _parse_events(rows) if event.id > after]


def _latest(db: SqlSession, limit: int) -> list[events.Event]:
    return list(_parse_events(reversed(every(db, SQL["newest_lines"], (limit,)))))[-limit:]


def _happened(db: SqlSession, topic: str, correlation_id: str, after: int) -> events.Event | None:
    return next(_parse_events(every(db, SQL["happened"], (correlation_id, topic, after // events.EACH))), None)


def _subscribers(db: SqlSession) -> list[events.SubscriberLine]:
    found = every(db, SQL["subscribers"])
    return [events.SubscriberLine(name, tuple(json.loads(topics)), *counts) for name, topics, *counts in found]


def _deliveries_in(db: SqlSession, states: Sequence[str], subscriber: str, limit: int) -> list[events.DeliveryLine]:
    found = every(db, SQL["deliveries"], (query.as_json(states), subscriber, limit))
    return [events.DeliveryLine(*row) for row in found]


def _next_delivery(db: SqlSession, subscriber: str, after: int = -1) -> int | None:
    return scalar(db, SQL["next_due"], (subscriber, after))


class SqlJournal(query.SqlView):
    """Events, subscribers and deliveries, read only."""

    def __init__(self, readers: query.SqlReaders, hint: Hint) -> None:
        super().__init__(readers)
        self.hint = hint

    events = reads(_events)
    latest = reads(_latest)
    happened = reads(_happened)
    subscribers = reads(_subscribers)
    deliveries = reads(_deliveries_in)
    next_delivery = reads(_next_delivery)
