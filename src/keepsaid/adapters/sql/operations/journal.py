"""The journal: facts become lines in the transaction of what happened; deliveries to subscribers; views of both."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Iterable, Sequence

from keepsaid.adapters.sql.query import chunks, every, flat, load, many, one, only, reads, run
from keepsaid.adapters.sql.session import Row, SqlReaders, SqlSession
from keepsaid.adapters.sql.tombstones import seal_of
from keepsaid.domain.commits import Prune, Received, Tell
from keepsaid.domain.event import (
    EACH,
    ENDLESS,
    RECEIVED,
    TOLD,
    DecideDelivery,
    DeliveryLine,
    DeliveryResult,
    Distribute,
    Event,
    EventDelivery,
    Fact,
    JournalLine,
    MemoryChange,
    SettleDeliveries,
    Subscribe,
    SubscriberLine,
    TakeDeliveries,
    TellNews,
    Unsubscribe,
    arrivals,
    events_of,
    news_after,
    of_memory,
    several,
    wants,
)
from keepsaid.domain.process import ENDLESSLY
from keepsaid.domain.retention import Pruned
from keepsaid.domain.states import move

_LINE = load("journal")["keep_line"]


def write_line(db: SqlSession, topic: str, payload: str, correlation_id: str, at: int) -> None:
    """Write a line; sealed here, because a trigger would write a long line twice and wait for other threads."""
    db.execute(_LINE, (topic, payload, correlation_id, at, seal_of(topic, payload, correlation_id, at)))


def write_facts(db: SqlSession, at: int, *facts: Fact | None) -> None:
    """Write facts to the journal, a line each; None is skipped."""
    for fact in facts:
        if fact is not None:
            payload = json.dumps(fact.payload, ensure_ascii=False, separators=(",", ":"))
            write_line(db, fact.topic, payload, fact.about, at)


def write_facts_grouped(db: SqlSession, at: int, facts: Sequence[Fact]) -> None:
    """Write facts of one topic to the journal, up to `EACH` in a line."""
    for start in range(0, len(facts), EACH):
        run = facts[start : start + EACH]
        write_line(db, run[0].topic, several((one.about, one.payload) for one in run), "", at)


SQL = load("journal")
NOTES = load("notes")
_DELIVERY_ROW = "(?, ?, ?, ?, ?)"


def write_fact(db: SqlSession, commit: Tell) -> None:
    """Write a fact to the journal."""
    write_line(db, commit.topic, commit.payload, commit.correlation_id, commit.at)


def write_news(db: SqlSession, commit: TellNews) -> int:
    """Write news of memories to the journal, and store the mark of the last one."""
    if not commit.news:
        return 0
    told = one(db, NOTES["read"], (TOLD, commit.at))
    fresh = news_after(commit.news, "" if told is None else str(told[0]))
    facts = [fact for fact in map(of_memory, fresh) if fact is not None]
    for what in MemoryChange:
        write_facts_grouped(db, commit.at, [one for one in facts if one.topic == f"memory.{what}"])
    db.execute(NOTES["keep"], (TOLD, commit.news[-1].mark, ENDLESSLY))
    return len(facts)


def write_received(db: SqlSession, stored: Sequence[Received], at: int) -> None:
    """Write that messages were received: one line for up to `EACH` messages of a commit."""
    for start in range(0, len(stored), EACH):
        write_line(db, RECEIVED, arrivals(stored[start : start + EACH]), "", at)


def subscribe(db: SqlSession, commit: Subscribe) -> None:
    """Know a subscriber, put back what it was working on, and wait for nothing that a former process waited for."""
    topics = json.dumps(commit.topics)
    db.execute(SQL["subscribe"], (commit.name, topics, commit.at, commit.from_start))
    db.execute(SQL["pick_up"], (commit.name, move("delivery", "processing", "retry")))
    db.execute(SQL["soon"], (commit.name, commit.at))


def unsubscribe(db: SqlSession, commit: Unsubscribe) -> bool:
    """Know a subscriber no more."""
    db.execute(SQL["drop_deliveries"], (commit.name,))
    return bool(run(db, SQL["unsubscribe"], (commit.name,)))


def distribute(db: SqlSession, commit: Distribute) -> int:
    """Make deliveries of the next lines; those who have come equally far are served by one reading."""
    abreast: defaultdict[int, list[tuple[str, tuple[str, ...]]]] = defaultdict(list)
    for name, topics, reached in every(db, SQL["subscriptions"]):
        abreast[reached].append((name, tuple(json.loads(topics))))
    read = 0
    for reached, subscribers in abreast.items():
        events = _next(db, reached, commit.events_max)
        read += len(events)
        for name, topics in subscribers:
            if events:
                _keep(db, _make_delivery_rows(name, topics, events, commit.at))
                db.execute(SQL["reach"], (name, events[-1].id // EACH))
    return read


def _next(db: SqlSession, reached: int, events_max: int) -> list[Event]:
    """What the next lines tell, and no part of a line."""
    events: list[Event] = []
    for row in every(db, SQL["lines"], (reached, events_max)):
        events += events_of(JournalLine(*row))
        if len(events) >= events_max:
            break
    return events


def _make_delivery_rows(
    name: str, topics: tuple[str, ...], events: Sequence[Event], at: int
) -> list[tuple[object, ...]]:
    heard = {topic for topic in {event.topic for event in events} if wants(topics, topic)}
    return [(name, event.id, event.correlation_id, "pending", at) for event in events if event.topic in heard]


def _keep(db: SqlSession, rows: Sequence[tuple[object, ...]]) -> None:
    for part in chunks(rows):
        db.execute(many(SQL["keep_deliveries"], _DELIVERY_ROW, len(part)), flat(part))


def take(db: SqlSession, commit: TakeDeliveries) -> tuple[EventDelivery, ...]:
    """Take what is due and not behind something about the same."""
    overdue = [row[0] for row in every(db, SQL["overdue"], (commit.subscriber, commit.steady))]
    if overdue:
        db.execute(SQL["put_back"], (db.numbers(overdue), move("delivery", "processing", "retry")))
    ready = _select_ready(every(db, SQL["ready"], (commit.subscriber, commit.at, commit.limit)))
    if not ready:
        return ()
    rows = [row for row in ready if row[2] < commit.attempts_max]
    held_until = commit.steady + commit.lease_ms
    taken = move("delivery", "pending", "take")
    db.execute(SQL["take"], (db.numbers([row[0] for row in ready]), taken, commit.fence, held_until))
    endless = [DeliveryResult(row[0], ENDLESS) for row in ready if row[2] >= commit.attempts_max]
    _end(db, endless, commit.at)
    return _deliveries(db, commit, rows) if rows else ()


def _select_ready(ready: list[Row]) -> list[Row]:
    """The first row only, if it was attempted before; else the rows before the first that was."""
    tried = next((n for n, (_, _, attempts) in enumerate(ready) if attempts), len(ready))
    return ready[: max(1, tried)]


def _deliveries(db: SqlSession, commit: TakeDeliveries, rows: Sequence[Row]) -> tuple[EventDelivery, ...]:
    lines = sorted({event_id // EACH for _, event_id, _ in rows})
    told = {
        event.id: event
        for row in every(db, SQL["told"], (db.numbers(lines),))
        for event in events_of(JournalLine(*row))
    }
    return tuple(
        EventDelivery(number, commit.subscriber, told[event_id], attempts + 1, commit.fence)
        for number, event_id, attempts in rows
    )


def settle(db: SqlSession, commit: SettleDeliveries) -> int:
    """End attempts that are still held."""
    asked = [one.delivery_id for one in commit.settled]
    held = {row[0] for row in every(db, SQL["held"], (db.numbers(asked), commit.subscriber, commit.fence))}
    mine = [one for one in commit.settled if one.delivery_id in held]
    done = [one.delivery_id for one in mine if one.tried and not one.error]
    if done:
        db.execute(SQL["finish"], (db.numbers(done), move("delivery", "processing", "finish"), commit.at))
    untried = [one.delivery_id for one in mine if not one.tried]
    if untried:
        db.execute(SQL["uncharge"], (db.numbers(untried), move("delivery", "processing", "retry")))
    _end(db, [one for one in mine if one.error], commit.at)
    return len(mine)


def prune(db: SqlSession, commit: Prune) -> Pruned:
    """Remove what everybody has been told of, and then what nobody has to be told of."""
    deliveries = run(db, SQL["forget_deliveries"], (commit.before, commit.rows_max))
    lines = run(db, SQL["forget_lines"], (commit.before, commit.rows_max))
    more = commit.rows_max in (deliveries, lines)
    return Pruned(0, 0, 0, (lines,) if more else None, lines)


def _end(db: SqlSession, failed: Iterable[DeliveryResult], at: int) -> None:
    for one_of in failed:
        dead = one_of.again_at is None
        state = move("delivery", "processing", "bury" if dead else "retry")
        due_at = at if one_of.again_at is None else one_of.again_at
        db.execute(SQL["settle"], (one_of.delivery_id, state, due_at, at if dead else None, one_of.error))


def decide(db: SqlSession, commit: DecideDelivery) -> bool:
    """Queue a dead delivery again, or dismiss it."""
    found = one(db, SQL["state_of"], (commit.delivery_id,))
    if found is None or found[0] != "dead":
        return False
    state = move("delivery", "dead", "requeue" if commit.again else "dismiss")
    db.execute(SQL["decide"], (commit.delivery_id, state, commit.at, None if commit.again else commit.at))
    return True


def _events(db: SqlSession, after: int, limit: int) -> list[Event]:
    """The line of `after` is read again: it may tell of more."""
    rows = every(db, SQL["lines"], (after // EACH - 1, limit + 1))
    return [event for event in _parse_events(rows) if event.id > after]


def _latest(db: SqlSession, limit: int) -> list[Event]:
    """The newest events, oldest first."""
    return list(_parse_events(reversed(every(db, SQL["newest_lines"], (limit,)))))[-limit:]


def _parse_events(rows: Iterable[Row]) -> Iterable[Event]:
    return (event for row in rows for event in events_of(JournalLine(*row)))


def _happened(db: SqlSession, topic: str, correlation_id: str, after: int) -> Event | None:
    """The first event of a topic about something."""
    row = one(db, SQL["happened"], (correlation_id, topic, after // EACH))
    return None if row is None else next(events_of(JournalLine(*row)))


def _subscribers(db: SqlSession) -> list[SubscriberLine]:
    """Who is told of what."""
    return [
        SubscriberLine(name, tuple(json.loads(topics)), *counts)
        for name, topics, *counts in every(db, SQL["subscribers"])
    ]


def _deliveries_seen(db: SqlSession, states: Sequence[str], subscriber: str, limit: int) -> list[DeliveryLine]:
    """Deliveries in some states."""
    return [DeliveryLine(*row) for row in every(db, SQL["deliveries"], (json.dumps(list(states)), subscriber, limit))]


def _next_due(db: SqlSession, subscriber: str, after: int = -1) -> int | None:
    """When the next attempt is due after a time."""
    due: int | None = only(db, SQL["next_due"], (subscriber, after))[0]
    return due


class SqlJournal:
    """What happened, and what is on its way to whom."""

    def __init__(self, readers: SqlReaders, hint: asyncio.Event) -> None:
        self.hint = hint
        self._readers = readers

    events = reads(_events)
    latest = reads(_latest)
    happened = reads(_happened)
    subscribers = reads(_subscribers)
    deliveries = reads(_deliveries_seen)
    next_delivery = reads(_next_due)
