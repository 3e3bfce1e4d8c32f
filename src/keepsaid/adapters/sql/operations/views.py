"""Views: lists, counts and sessions of the operational store, read only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from keepsaid.adapters.sql.operations import collection, files, leases, modes, outbox, routing, rows, sessions, turns
from keepsaid.adapters.sql.query import JointStatement, Row, SqlSession, as_json, column, every, load, one, only, scalar
from keepsaid.domain import personality, prompt, session, states
from keepsaid.domain import views as domain
from keepsaid.domain.attachment import in_words
from keepsaid.domain.batch import HELD_AFTER, DueLane, StoredBatch, WaitingGroup, shared
from keepsaid.domain.context import Summary
from keepsaid.domain.files import StoredFile
from keepsaid.domain.memory import OWNER, chat_of
from keepsaid.domain.message import EDITED, SYSTEM, TERMINAL, Lane, Origin, StoredMessage, Trust, conversation_note
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.retention import Backlog
from keepsaid.domain.turn import SILENT, ClaimedBatch, Lease, ReplyTarget, TurnInputs, Usage

TASKS = load("tasks")


def read_turn_inputs(
    db: SqlSession, lane: Lane, lane_id: int | None, messages: Sequence[StoredMessage], with_files: Sequence[int]
) -> tuple[TurnInputs, tuple[StoredFile, ...]]:
    """Read the open questions of a lane, and what these messages reply to in any lane of its conversation.

    Also returns the files of the messages `with_files`. It is what a query asks for last.
    """
    names = dict.fromkeys(message.inbound.marks.reply_to for message in messages)
    targets = (_reply_target(db, lane, name) for name in names if name is not None)
    found = tuple(target for target in targets if target is not None)
    person, edits = _chat_of(db, lane, lane_id, messages), tuple(_edits(db, lane, messages))
    numbers = [message.number for message in messages] or [0]
    slots, flagged, incognito, persons, measured, named, attached = db.ask(
        JointStatement(sessions.SLOTS["open_slots"], (lane_id,)),
        JointStatement(turns.RECEIPTS["wrong_here"], (lane_id,)),
        JointStatement(routing.SQL["incognito_between"], (lane_id, min(numbers), max(numbers))),
        turns.ask_personalities(personality.scopes_around(lane, messages)),
        JointStatement(turns.STANDING["calibrations"]),
        JointStatement(turns.NOTES["read"], (conversation_note(lane), 0)),
        JointStatement(files.SQL["of_messages"], (db.numbers(with_files or [0]),)),
        ends=True,
    )
    inputs = TurnInputs(
        tuple(map(sessions.slot_of, slots)),
        found,
        turns.personalities_in(persons),
        turns.calibrations_in(measured),
        frozenset(memory_id for (memory_id,) in flagged),
        bool(incognito[0][0]),
        person,
        edits,
        str(named[0][0] or "") if named else "",
    )
    return inputs, tuple(map(files.file_of, attached))


def _edits(db: SqlSession, lane: Lane, messages: Sequence[StoredMessage]) -> Iterator[tuple[int, ReplyTarget]]:
    """What edited messages replace: the newest message before them with their provider id, by the same sender."""
    for message in messages:
        provider_id = message.inbound.marks.provider_id
        if message.inbound.content.event == EDITED and provider_id is not None:
            place = (
                provider_id,
                lane.channel,
                lane.account,
                lane.conversation,
                message.id,
                message.inbound.origin.sender,
            )
            found = one(db, sessions.SESSIONS["edited_message"], place)
            if found is not None and (target := _message_target(db, lane, provider_id, found[0])) is not None:
                yield message.id, target


def _chat_of(db: SqlSession, lane: Lane, lane_id: int | None, messages: Sequence[StoredMessage]) -> str:
    """The person to whom the program speaks: who wrote last in the direct chat, at the terminal the owner."""
    origins = [message.inbound.origin for message in messages]
    if lane_id is None or not all(one.direct and one.sender == SYSTEM for one in origins):
        return ""
    if (said := one(db, TASKS["last_said"], (lane_id, SYSTEM))) is None:
        return OWNER if lane.channel == TERMINAL else ""
    _, _, direct, sender, trust = said
    return chat_of([Origin(*lane[:3], sender, direct=bool(direct), trust=Trust(trust))])


def _message_target(db: SqlSession, lane: Lane, target: str, message_id: int) -> ReplyTarget | None:
    if (row := one(db, rows.SQL["message"], (message_id,))) is None or (message := rows.message(row)).damaged:
        return None
    origin, ref = message.inbound.origin, f"message:{message.id}"
    place_id = routing.lane_id_of(db, message.lane) or 0
    hidden = origin.trust is Trust.EXTERNAL or routing.is_incognito(db, place_id, message.number, message.number)
    if message.lane != lane and hidden:
        return ReplyTarget(target, ref, "")
    return ReplyTarget(target, ref, in_words(message.inbound.content), origin.name or origin.sender, origin.trust)


def _reply_target(db: SqlSession, lane: Lane, target: str) -> ReplyTarget | None:
    """The first message of that name that is whole, else the reply; without an outsider's words of another lane."""
    place = (target, lane.channel, lane.account, lane.conversation)
    if (named := one(db, sessions.SESSIONS["said_message"], place)) is not None:
        return _message_target(db, lane, target, named[0])
    if (reply := one(db, sessions.SESSIONS["said_reply"], (*place, lane.key))) is None:
        return None
    reply_id, turn_id, text, trust = reply
    ref = f"notice:{reply_id}" if turn_id is None else f"reply:{turn_id}"
    return ReplyTarget(target, ref, text, trust=Trust(trust or Trust.EXTERNAL))


def collections(db: SqlSession, states: Sequence[str], limit: int) -> Sequence[session.CollectionLine]:
    found = every(db, collection.COLLECTION["lines"], (as_json(states), limit))
    return [session.CollectionLine(row[0], Lane(*row[1:5]), *row[5:]) for row in found]


def passage(db: SqlSession, session_id: int, after: int, limit: int) -> session.Passage | None:
    if (extent := one(db, collection.COLLECTION["extent"], (session_id,))) is None:
        return None
    lane_id, *place, first, last, external = extent
    begins = max(after, first - 1)
    wanted = (lane_id, begins, last, limit, external, first, rows.OWN_TOOLS)
    found = every(db, collection.COLLECTION["utterances"], wanted)
    ends = found[-1][0] if len(found) == limit else last
    return session.Passage(Lane(*place), begins + 1, ends, tuple(map(_utterance, found)))


def marked_at(db: SqlSession) -> int | None:
    return scalar(db, collection.COLLECTION["last_run"], (collection.RUN,))


def _utterance(row: Row) -> session.Utterance:
    believed = Trust(row[6] or Trust.EXTERNAL)
    return session.Utterance(row[0], prompt.Role(row[1]), *(*row[2:6], believed, bool(row[7]), row[8]))


SQL = load("views")
_GROUP_MAX = 100
_COUNTED = ("batches", "replies", "tasks")


def due(db: SqlSession, at: int, limit: int) -> tuple[DueLane, ...]:
    levels: dict[int, list[DueLane]] = {}
    for row in every(db, SQL["due"], (at, limit)):
        found = replace(DueLane(Lane(*row[:4]), *row[4:10]), paused=bool(row[10]))
        levels.setdefault(found.priority, []).append(found)
    return tuple(shared(list(levels.values()), limit))


def waiting(db: SqlSession, lanes: Sequence[Lane]) -> tuple[WaitingGroup, ...]:
    found = ((lane, tuple(map(rows.message, every(db, SQL["waiting"], (*lane, _GROUP_MAX))))) for lane in lanes)
    return tuple(
        WaitingGroup(
            lane,
            messages[0].number - 1,
            messages,
            modes.is_paused(db, lane),
            _own_replies(db, lane, messages),
            addressed=_addressed(db, messages),
            settled=_settled_originals(db, lane, messages),
        )
        for lane, messages in found
        if messages
    )


def _addressed(db: SqlSession, messages: Sequence[StoredMessage]) -> frozenset[int]:
    """The ids of those that are to the agent, by the word of their medium; in a direct chat all are."""
    wanted = [one.id for one in messages if not one.inbound.origin.direct]
    return frozenset(column(db, SQL["addressed"], (db.numbers(wanted),))) if wanted else frozenset()


def _own_replies(db: SqlSession, lane: Lane, messages: Sequence[StoredMessage]) -> frozenset[str]:
    """The provider's ids of our replies in the conversation that the messages answer."""
    wanted = {one.inbound.marks.reply_to for one in messages} - {None, ""}
    if not wanted:
        return frozenset()
    place = lane.channel, lane.account, lane.conversation
    return frozenset(column(db, SQL["own_replies"], (as_json(sorted(map(str, wanted))), *place)))


def _settled_originals(db: SqlSession, lane: Lane, messages: Sequence[StoredMessage]) -> frozenset[str]:
    """The provider's ids of edited messages that were answered, or dropped, before they were edited."""
    edits = (one.inbound for one in messages if one.inbound.content.event == EDITED)
    if not (wanted := {one.marks.provider_id for one in edits} - {None, ""}):
        return frozenset()
    place = lane.channel, lane.account, lane.conversation
    return frozenset(column(db, SQL["settled_originals"], (as_json(sorted(map(str, wanted))), *place)))


def next_due(db: SqlSession) -> int | None:
    return min((first for _, first in every(db, SQL["due_levels"])), default=None)


def story(db: SqlSession, message_id: int) -> domain.Story | None:
    if (row := one(db, rows.SQL["message"], (message_id,))) is None:
        return None
    message = rows.message(row)
    why = placed(db, (message,)).get(message_id, "")
    found = scalar(db, SQL["batch_of"], only(db, SQL["lane_of_message"], (message_id,)))
    if found is None:
        return domain.Story(message, states.message_state(None), placed=why)
    batch, stored = batch_of(db, found)
    replies = tuple(rows.replies(db, SQL["replies_of_batch"], (batch.id,)))
    turn_id, task = scalar(db, SQL["turn_of_batch"], (batch.id,)), spawned_task(db, stored[1])
    staged = bool(outbox.staged(db, turn_id))
    is_answered = any(not reply.draft.notice for reply in replies)
    reason = "" if is_answered else str(scalar(db, SQL["reason_of_turn"], (turn_id,)) or "")
    outcome = (turn_id, task, replies, why, staged, None, reason.removeprefix(SILENT))
    return domain.Story(message, states.message_state(batch.state), batch, *outcome)


def spawned_task(db: SqlSession, task_id: int | None) -> domain.Spawned | None:
    return next((domain.Spawned(*row) for row in every(db, SQL["task"], (task_id,))), None)


def placed(db: SqlSession, messages: Sequence[StoredMessage]) -> dict[int, str]:
    """Why messages are in their lanes, where that was inferred."""
    return dict(every(db, SQL["placed"], (db.numbers([message.id for message in messages]),))) if messages else {}


def batch_of(db: SqlSession, batch_id: int) -> tuple[StoredBatch, Row]:
    """Return a batch, and its row: lane_id, task_id and the batch."""
    row = only(db, leases.CLAIMS["batch"], (db.numbers((batch_id,)),))
    return rows.batch(row), row


def find(db: SqlSession, wanted: domain.MessageFilter) -> Sequence[domain.Story]:
    bound = (wanted.channel, wanted.conversation, wanted.state, wanted.limit, wanted.reply)
    stories = (story(db, message_id) for message_id in column(db, SQL["find"], bound))
    return [found for found in stories if found is not None]


def overview(db: SqlSession) -> domain.Overview:
    """Counts over the whole store: kept as things move, because counting a million rows takes too long."""
    tally: dict[str, dict[str, int]] = defaultdict(dict)
    for what, name, n in every(db, SQL["tally"]):
        tally[what][name] = n
    usage, routed, heard = tally["usage"], tally["routed"], tally["heard"]
    unrouted = {channel: n - routed.get(channel, 0) for channel, n in heard.items()}
    depths = _depths(db, unrouted)
    batches, replies, turns = ({name: n for name, n in tally[of].items() if n} for of in ("batch", "reply", "turn"))
    spent = Usage(usage.get("in", 0), usage.get("out", 0), usage.get("cost") if usage.get("priced") else None)
    episodes_due, *held = only(db, SQL["totals"], (HELD_AFTER,))
    counts = (batches, replies, dict[str, int](every(db, SQL["tasks"])), turns)
    overview = domain.Overview(depths, *counts, spent, episodes_due, sum(heard.values()), *held)
    return replace(overview, paused=modes.paused(db), processes=leases.running_processes(db))


def _depths(db: SqlSession, unrouted: Mapping[str, int]) -> tuple[domain.ChannelDepth, ...]:
    """What waits by channel, and where."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    oldest: dict[str, dict[str, int]] = defaultdict(dict)
    for channel, state, n, first_at in every(db, SQL["depths"]):
        counts[channel][state] = n
        place = "person_at" if state in ("review", "dead") else "routed_at"
        oldest[channel][place] = min(first_at, oldest[channel].get(place, first_at))
    return tuple(
        domain.ChannelDepth(name, n, scalar(db, SQL["oldest"], (name,)) if n else None, **counts[name], **oldest[name])
        for name, n in sorted(unrouted.items())
    )


def episode_work(db: SqlSession, limit: int, conversation: str | None = None) -> Sequence[domain.EpisodeWork]:
    work, due = [], every(db, SQL["work"], (conversation, limit))
    found = iter(db.ask(*(one for of in due for one in _ask_work(*of)), ends=True) if due else ())
    for batch_id, turn_id in due:
        messages = tuple(map(rows.message, next(found)))
        answer, used, staged = (next(found), next(found), next(found)) if turn_id is not None else ([], [], [])
        *reply, trust, external = answer[0] if answer else ("", 0, "", "", False)
        memories = tuple(memory_id for (memory_id,) in used)
        columns = (*reply, bool(external), memories, outbox.staged_in(staged), rows.trust_of(trust))
        work.append(domain.EpisodeWork(batch_id, messages, turn_id, *columns))
    return work


def _ask_work(batch_id: int, turn_id: int | None) -> Iterator[JointStatement]:
    """What is to be known of a batch whose episode is due; of one without a turn its messages."""
    yield JointStatement(rows.SQL["range"], (batch_id,), replaces=True)
    if turn_id is not None:
        yield JointStatement(SQL["answer"], (turn_id, rows.OWN_TOOLS))
        yield JointStatement(SQL["used"], (turn_id,))
        yield JointStatement(outbox.STAGING["staged"], (turn_id,))


def claimed(db: SqlSession, lease: Lease) -> ClaimedBatch | None:
    batch, turn_id = lease.batch, lease.turn_id
    held, found, place = db.ask(
        JointStatement(leases.LEASES["held"], (batch.id, batch.fence)),
        JointStatement(rows.SQL["range"], (batch.id,), replaces=True),
        JointStatement(routing.SQL["lane"], batch.lane),
    )
    if not held:
        return None
    messages, lane_id = tuple(map(rows.message, found)), place[0][0] if place else None
    ids = [message.id for message in messages]
    if not lease.continued:
        around, brought = read_turn_inputs(db, batch.lane, lane_id, messages, ids)
        return ClaimedBatch(batch, turn_id, messages, (), lease.alone, around=around, files=brought)
    steps = tuple(map(rows.step, every(db, leases.CLAIMS["steps"], (turn_id,))))
    trace, joined = rows.trace(db, turn_id), routing.list_steered(db, turn_id)
    claimed = ClaimedBatch(batch, turn_id, messages, steps, lease.alone, trace, joined)
    around, brought = read_turn_inputs(db, batch.lane, lane_id, claimed.all_messages, ids)
    return replace(claimed, around=around, files=brought)


_EXPIRED_MAX = 100


def lease(db: SqlSession, batch_id: int, fence: int) -> tuple[str, Lease | None]:
    row = one(db, SQL["lease"], (batch_id, fence))
    if row is None:
        return "", None
    state, is_alone, turn_id = row
    if state != "leased" or turn_id is None:
        return state, None
    return state, Lease(batch_of(db, batch_id)[0], turn_id, bool(is_alone), continued=True)


def expired(db: SqlSession, at: int) -> tuple[Lease, ...]:
    found = every(db, SQL["expired"], (at, _EXPIRED_MAX))
    leases_there = (lease(db, batch_id, fence)[1] for batch_id, fence in found)
    return tuple(one for one in leases_there if one is not None)


def turn(db: SqlSession, turn_id: int) -> domain.TurnStory | None:
    if (row := one(db, SQL["turn"], (turn_id,))) is None:
        return None
    batch_id, state, reason, *spent, started_at, ended_at = row
    batch, _ = batch_of(db, batch_id)
    before = scalar(db, SQL["turn_before"], (turn_id,))
    joined = column(db, SQL["steered"], (turn_id,))
    messages = tuple(message for one in (batch_id, *joined) for message in rows.messages_of(db, one))
    steps = tuple(map(rows.step, every(db, leases.CLAIMS["steps"], (turn_id,))))
    records = tuple(map(rows.record, every(db, SQL["records"], (turn_id,))))
    replies = tuple(rows.replies(db, SQL["replies_of_batch"], (batch_id,)))
    of = (turn_id, state, batch, messages, steps, records, replies, rows.trace(db, turn_id))
    ends = (Usage(*spent), started_at, ended_at, reason, rows.trace(db, before) if before else None)
    return domain.TurnStory(*of, *ends, placed(db, messages), turns.feedback_of_turn(db, turn_id))


def last_turn(db: SqlSession, lane: Lane | None, *, commands: bool = True) -> int | None:
    if lane is None:
        return scalar(db, SQL["last_turn"], (commands,))
    return scalar(db, SQL["last_turn_of_lane"], (commands, routing.lane_id_of(db, lane)))


def next_ready(db: SqlSession) -> int | None:
    return scalar(db, SQL["next_ready"])


def next_trial(db: SqlSession) -> int | None:
    return scalar(db, SQL["next_trial"])


def unseen(db: SqlSession, channel: str, conversation: str, limit: int = 1_000) -> Sequence[StoredReply]:
    """Leave out replies with a URL: they are pushed there instead."""
    return rows.replies(db, SQL["unseen"], (channel, conversation, limit))


def unfetched(db: SqlSession, before: int) -> Backlog:
    return Backlog(*only(db, SQL["unfetched"], (before,)))


def last_id(db: SqlSession) -> int:
    return int(only(db, SQL["last_id"])[0])


def next_send(db: SqlSession, channels: tuple[str, ...]) -> int | None:
    return scalar(db, SQL["next_send"], (as_json(channels),))


LANE_LIST = load("lane_list")


def lanes(db: SqlSession, limit: int) -> Sequence[domain.LaneLine]:
    return [_line_of(row) for row in every(db, LANE_LIST["lanes"], (limit,))]


def line(db: SqlSession, lane: Lane) -> domain.LaneLine | None:
    return next(map(_line_of, every(db, LANE_LIST["line"], lane)), None)


def summaries(db: SqlSession, lane: Lane) -> Sequence[Summary]:
    return [sessions.summary_of(row) for row in every(db, LANE_LIST["versions"], (routing.lane_id_of(db, lane),))]


def _line_of(row: Row) -> domain.LaneLine:
    *line, is_paused, incognito = row
    return replace(domain.LaneLine(Lane(*line[:4]), *line[4:]), paused=bool(is_paused), incognito=bool(incognito))
