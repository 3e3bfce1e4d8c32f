"""Routing: batches and verdicts of many lanes written at once, and batches that join a running turn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from keepsaid.adapters.sql.operations import rows as stored
from keepsaid.adapters.sql.operations.journal import write_facts, write_facts_grouped
from keepsaid.adapters.sql.query import CHUNK, Row, SqlSession, every, flat, load, many, one, row_of, scalar, write_rows
from keepsaid.domain import batch, busy, event, message, route, states
from keepsaid.domain.commits import Dispatch, Drop
from keepsaid.domain.route import Action, Verdict
from keepsaid.domain.turn import Steered
from keepsaid.values import frozen

SQL = load("routing")


@frozen
class _Stand:
    """A lane's row id, last number received, last number batched, and its last batch, if more messages may join it.

    `paused` says that its conversation is.
    """

    lane_id: int
    head: int
    batched: int
    tail: batch.Routed | None
    paused: bool


@frozen
class _Written:
    """The rows of a set of dispatches: new batches, those that grew, lanes moved on."""

    batches: list[Row] = field(default_factory=list)
    grown: list[Row] = field(default_factory=list)
    lanes: list[Row] = field(default_factory=list)
    facts: list[event.Fact] = field(default_factory=list)


def lane_id_of(db: SqlSession, lane: message.Lane) -> int | None:
    """The row of a lane, if it is known."""
    return scalar(db, SQL["lane"], lane)


def refresh_ready(db: SqlSession, *lane_ids: int) -> None:
    """Name the one batch of each lane that may be claimed: its first open one, unless one is leased.

    Of one lane, no answer is waited for where that costs more than to ask for both.
    """
    run = db.post if len(lane_ids) == 1 else db.execute
    run(SQL["set_ready"], (db.numbers(lane_ids),))
    if db.changes() < len(lane_ids):
        db.post(SQL["clear_ready"], (db.numbers(lane_ids),))


def is_incognito(db: SqlSession, lane_id: int, first: int, last: int) -> bool:
    """Whether one of the messages with these numbers was said in incognito."""
    return bool(scalar(db, SQL["incognito_between"], (lane_id, first, last)))


def dispatch(db: SqlSession, commits: Sequence[Dispatch]) -> list[bool]:
    """Write the batches of what waits in lanes, in few statements whatever their number."""
    return [kept for part in _apart(commits) for kept in _dispatched(db, part)]


def _apart(commits: Sequence[Dispatch]) -> Iterator[Sequence[Dispatch]]:
    """The commits in runs in which no lane comes twice: the second must find what the first did."""
    run: dict[message.Lane, Dispatch] = {}
    for commit in commits:
        if commit.lane in run or len(run) == CHUNK:
            yield tuple(run.values())
            run = {}
        run[commit.lane] = commit
    yield tuple(run.values())


def _dispatched(db: SqlSession, commits: Sequence[Dispatch]) -> list[bool]:
    stands = _stands(db, [commit.lane for commit in commits])
    written, routed, kept = _Written(), Counter[str](), list[bool]()
    for commit in commits:
        stand = stands[commit.lane]
        last = commit.batches[-1].last
        kept.append(stand.batched == commit.after and last <= stand.head and stand.paused == commit.paused)
        if kept[-1]:
            _write(db, commit, stand, written)
            routed[commit.lane.channel] += last - stand.batched
    write_rows(db, SQL["keep_batches"], written.batches)
    write_rows(db, SQL["grow_batches"], written.grown)
    write_rows(db, SQL["advance_lanes"], written.lanes)
    for counted in routed.items():
        db.post(SQL["routed"], counted)
    if written.lanes:
        refresh_ready(db, *(stand.lane_id for stand, done in zip(stands.values(), kept, strict=True) if done))
    write_facts_grouped(db, commits[-1].at, [one for one in written.facts if one.topic == event.ROUTED])
    write_facts(db, commits[-1].at, *(one for one in written.facts if one.topic != event.ROUTED))
    return kept


def _stands(db: SqlSession, lanes: Sequence[message.Lane]) -> dict[message.Lane, _Stand]:
    """Where these lanes stand, in their order."""
    found: dict[message.Lane, _Stand] = {}
    for row in every(db, many(SQL["stand"], row_of(4), len(lanes)), flat(lanes)):
        head, batched, batch_id, first, chars, rule, version, priority, paused = row[5:]
        verdict = Verdict(Action.FORWARD, rule, version, "")
        tail = None if batch_id is None else batch.Routed(batch_id, first, batched, 0, 0, chars, verdict, priority)
        found[message.Lane(*row[1:5])] = _Stand(row[0], head, batched, tail, bool(paused))
    if not found.keys() >= set(lanes):
        raise LookupError("no such lane")
    return {lane: found[lane] for lane in lanes}


def _write(db: SqlSession, commit: Dispatch, stand: _Stand, written: _Written) -> None:
    """Add the rows of one dispatch."""
    ends = (commit.after, *(routed.last for routed in commit.batches))
    if not all(end + 1 == routed.first <= routed.last for end, routed in zip(ends, commit.batches, strict=False)):
        raise ValueError("the batches of a dispatch must follow one another from the first waiting message")
    batches = _joined(stand.tail, commit)
    if stand.tail is not None:
        grown, *batches = batches
        if grown is not stand.tail:
            written.grown.append((grown.id, grown.last, grown.chars, grown.priority, grown.last_id))
            written.facts.append(event.judged(grown.id, grown.last - stand.tail.last, commit.batches[0].verdict))
    for routed in batches:
        task_id = _task(db, commit, stand.lane_id, routed)
        written.batches.append(_batch_row(commit, stand.lane_id, routed, task_id))
        written.facts.append(event.judged(routed.id, routed.last - routed.first + 1, routed.verdict, task_id))
    last, window = commit.batches[-1].last, commit.window
    until = min(stand.head, last + window.count_max)
    waiting = every(db, SQL["waiting"], (stand.lane_id, until)) if until != last else ()
    rest = [row for row in waiting if row[0] > last]
    written.lanes.append((stand.lane_id, last, *_begun(rest, window, commit.at)))


def _joined(tail: batch.Routed | None, commit: Dispatch) -> list[batch.Routed]:
    """The tail and the batches of a dispatch; one that may join the one before it does."""
    joined = [] if tail is None else [tail]
    for routed in commit.batches:
        before = joined[-1] if joined else routed
        count, chars = routed.last - before.first + 1, before.chars + routed.chars
        fits = count <= commit.window.count_max and chars <= commit.window.chars_max
        same = replace(before.verdict, reason=routed.verdict.reason) == routed.verdict
        if joined and fits and same and routed.verdict.action is Action.FORWARD:
            priority = min(before.priority, routed.priority)
            joined[-1] = replace(before, last=routed.last, last_id=routed.last_id, chars=chars, priority=priority)
        else:
            joined.append(routed)
    return joined


def _batch_row(commit: Dispatch, lane_id: int, routed: batch.Routed, task_id: int | None) -> Row:
    verdict, state = routed.verdict, "queued"
    if verdict.action in (Action.DROP, Action.SPAWN):
        state = states.move("batch", state, verdict.action)
    ended_at = None if state == "queued" else commit.at
    place = (routed.id, lane_id, routed.first, routed.last, routed.last_id, routed.first_at, routed.chars)
    decided = (state, str(verdict.action), verdict.rule, verdict.version, verdict.reason, routed.priority)
    return (*place, *decided, commit.at, commit.at, ended_at, task_id)


def _task(db: SqlSession, commit: Dispatch, lane_id: int, routed: batch.Routed) -> int | None:
    """The task of a batch that is spawned: a pending one of its key takes it in."""
    draft = routed.task
    if routed.verdict.action is not Action.SPAWN:
        return None
    assert draft is not None, "a spawn verdict carries its task"
    if not is_incognito(db, lane_id, routed.first, routed.last):
        db.post(SQL["episodes_due"], (routed.id, lane_id, None))
    count = routed.last - routed.first + 1
    if (task_id := scalar(db, SQL["pending_task"], (draft.key,))) is not None:
        more = (draft.description, count, batch.DESCRIPTION_CHARS_MAX, draft.outside, routed.priority)
        db.post(SQL["merge_task"], (task_id, *more))
        return int(task_id)
    place = (draft.id, draft.key, lane_id, routed.verdict.rule)
    what = (draft.description, route.encoded(draft.terms), draft.outside, count, routed.priority)
    db.post(SQL["keep_task"], (*place, *what, commit.at))
    stored.write_task_event(db, "created", draft.id, commit.at, kind=str(route.TaskKind.WORKER), after=0)
    return draft.id


def _begun(rest: Sequence[Row], window: batch.Window, at: int) -> Row:
    """What remains of a lane decides when it is due again: priority, oldest and newest arrival, characters, due."""
    if not rest:
        return 100, None, None, 0, None
    _, _, arrivals, priorities, chars = zip(*rest, strict=True)
    oldest, newest = min(arrivals), max(arrivals)
    full = len(rest) >= window.count_max or sum(chars) >= window.chars_max
    return min(priorities), oldest, newest, sum(chars), at if full else window.due_at(oldest, newest)


def interrupt(db: SqlSession, commit: busy.Interrupt) -> int | None:
    if (lane_id := lane_id_of(db, commit.lane)) is None:
        raise LookupError("no such lane")
    held = one(db, SQL["at_work"], (lane_id,))
    newer = None if held is None else one(db, SQL["next_open"], (lane_id, held[3]))
    if held is None or newer is None or one(db, SQL["unrepeatable"], (held[0],)) is not None:
        return None
    batch_id, _, first, last, chars, *rule, state = held
    newer_id, newer_first, newer_last, last_id, newer_chars, *newer_rule, priority = newer
    if newer_first != last + 1 or newer_rule != rule or one(db, SQL["has_turns"], (newer_id,)) is not None:
        return None
    if newer_last - first + 1 > commit.window.count_max or chars + newer_chars > commit.window.chars_max:
        return None
    db.post(SQL["interrupt"], (batch_id, states.move("batch", state, "interrupt")))
    abandon(db, batch_id, (busy.INTERRUPTED, event.AbandonReason.INTERRUPTED), commit.at)
    db.post(SQL["forget_batch"], (newer_id,))
    db.post(SQL["extend_batch"], (batch_id, newer_last, newer_chars, priority, last_id))
    refresh_ready(db, lane_id)
    return int(batch_id)


def abandon(db: SqlSession, batch_id: int, over: tuple[str, event.AbandonReason], at: int) -> Sequence[int]:
    """End the open turn of a batch, for a reason; what was steered into it waits for a turn of its own.

    But what the turn was shown before it began something that must not be repeated is parked: a turn of its own
    might ask for the same again. Returns what is parked.
    """
    doubtful = every(db, SQL["in_doubt"], (batch_id,))
    for joined_id, state in doubtful:
        parked = states.move("batch", state, "park")
        db.post(SQL["park"], (joined_id, parked, busy.JOINED_DOUBT, at))
        write_facts(db, at, event.ended(joined_id, parked))
    db.post(SQL["unsteer"], (batch_id,))
    reason, why = over
    for (turn_id,) in every(db, SQL["abandon"], (batch_id, reason, at)):
        write_facts(db, at, event.abandoned(turn_id, batch_id, why))
    return [joined_id for joined_id, _ in doubtful]


def steer(db: SqlSession, commit: busy.Steer) -> tuple[Steered, ...]:
    if (turn := one(db, SQL["steered_turn"], (commit.turn_id, commit.batch_id, commit.fence))) is None:
        return ()
    last, count, chars, lane_id = turn
    for joined in every(db, SQL["steered"], (commit.turn_id,)):
        last, count, chars = joined[2], count + joined[3], chars + joined[4]
    held = stored.messages_of(db, commit.batch_id)
    taken: list[Steered] = []
    while (row := one(db, SQL["next_open"], (lane_id, last))) is not None:
        batch_id, first, last, _, more_chars, *_ = row
        count, chars = count + last - first + 1, chars + more_chars
        if count > commit.window.count_max or chars > commit.window.chars_max:
            break
        messages = stored.messages_of(db, batch_id)
        if not busy.may_join(held, messages):
            break
        db.post(SQL["steer"], (batch_id, commit.turn_id, commit.n))
        taken.append(Steered(batch_id, commit.n, messages))
    return tuple(taken)


def leave_unseen(db: SqlSession, turn_id: int) -> None:
    """Leave batches out of an open turn again that none of its recorded steps was shown."""
    db.post(SQL["unseen"], (turn_id,))


def list_steered(db: SqlSession, turn_id: int) -> tuple[Steered, ...]:
    found = every(db, SQL["steered"], (turn_id,))
    return tuple(Steered(batch_id, n, stored.messages_of(db, batch_id)) for batch_id, n, *_ in found)


DROP = load("drop")


def drop(db: SqlSession, commit: Drop) -> bool:
    """Drop a batch that waits, or also one that is being answered; a turn of it that is open is over."""
    if (row := one(db, DROP["waiting"], (commit.batch_id, commit.running))) is None:
        return False
    state, lane_id, messages = row
    db.post(DROP["drop"], (commit.batch_id, states.move("batch", state, "drop"), commit.reason, commit.at))
    write_facts(db, commit.at, event.dropped(commit.batch_id, messages))
    abandon(db, commit.batch_id, (commit.reason, event.AbandonReason.DROPPED), commit.at)
    refresh_ready(db, lane_id)
    return True
