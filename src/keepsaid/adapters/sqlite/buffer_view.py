"""What readers see of the buffer: waiting lanes, messages and what became of them, counts."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence

import apsw

from keepsaid.adapters.sqlite import rows, staging
from keepsaid.adapters.sqlite.claims import SQL as CLAIMS
from keepsaid.adapters.sqlite.query import Row, every, numbers, one, only
from keepsaid.adapters.sqlite.statements import load
from keepsaid.domain.batch import Batch, Due, Group, shared
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.states import message_state
from keepsaid.domain.suspicion import HELD_AFTER
from keepsaid.domain.turn import Usage
from keepsaid.domain.views import ChannelDepth, EpisodeWork, MessageFilter, Overview, Spawned, Story
from keepsaid.domain.visibility import OWN_TOOLS

SQL = load("views")
_OWN_TOOLS = json.dumps(sorted(OWN_TOOLS))
_GROUP_MAX = 100
_COUNTED = ("batches", "replies", "tasks")


def due(db: apsw.Connection, at: int, limit: int) -> tuple[Due, ...]:
    """Lanes whose window has closed."""
    levels = [
        every(db, SQL["due"], (priority, at, limit)) for priority, first in every(db, SQL["due_levels"]) if first <= at
    ]
    return tuple(Due(Lane(*row[:4]), *row[4:]) for row in shared(levels, limit))


def waiting(db: apsw.Connection, lanes: Sequence[Lane]) -> tuple[Group, ...]:
    """What waits in these lanes."""
    groups = []
    for lane in lanes:
        messages = tuple(rows.message(row) for row in every(db, SQL["waiting"], (*lane, _GROUP_MAX)))
        if messages:
            groups.append(Group(lane, messages[0].number - 1, messages))
    return tuple(groups)


def next_due(db: apsw.Connection) -> int | None:
    """When the next window closes."""
    return min((first for _, first in every(db, SQL["due_levels"])), default=None)


def story(db: apsw.Connection, message_id: int) -> Story | None:
    """One message and what became of it."""
    row = one(db, rows.SQL["message"], (message_id,))
    if row is None:
        return None
    message = rows.message(row)
    why = placed(db, (message,)).get(message_id, "")
    found = one(db, SQL["batch_of"], only(db, SQL["lane_of_message"], (message_id,)))
    if found is None:
        return Story(message, message_state(None), placed=why)
    batch, stored = batch_of(db, found[0])
    turn = one(db, SQL["turn_of_batch"], (batch.id,))
    replies = tuple(rows.replies(db, SQL["replies_of_batch"], (batch.id,)))
    task = one(db, SQL["task"], (stored[19],))
    spawned = Spawned(*task) if task else None
    return Story(message, message_state(batch.state), batch, turn[0] if turn else None, spawned, replies, why)


def placed(db: apsw.Connection, messages: Sequence[Message]) -> dict[int, str]:
    """Why messages are in their lanes, where that was inferred."""
    if not messages:
        return {}
    return dict(every(db, SQL["placed"], (numbers([message.id for message in messages]),)))


def batch_of(db: apsw.Connection, batch_id: int) -> tuple[Batch, Row]:
    """A batch, and its row."""
    row = only(db, CLAIMS["batch"], (numbers((batch_id,)),))
    return rows.batch(row), row


def find(db: apsw.Connection, wanted: MessageFilter) -> Sequence[Story]:
    """Messages, newest first."""
    bound = (wanted.channel, wanted.conversation, wanted.state, wanted.limit, wanted.reply)
    found = [story(db, row[0]) for row in every(db, SQL["find"], bound)]
    return [one_story for one_story in found if one_story is not None]


def overview(db: apsw.Connection) -> Overview:
    """Counts over the whole store: kept as things move, because counting a million rows takes too long."""
    tally: dict[str, dict[str, int]] = defaultdict(dict)
    for what, name, n in every(db, SQL["tally"]):
        tally[what][name] = n
    usage, routed, heard = tally["usage"], tally["routed"], tally["heard"]
    depths = (_depth(db, channel, n - routed.get(channel, 0)) for channel, n in heard.items())
    episodes_due, deferred, held, held_first = only(db, SQL["totals"], (HELD_AFTER,))
    return Overview(
        tuple(depths),
        _some(tally["batch"]),
        _some(tally["reply"]),
        dict(every(db, SQL["tasks"])),
        _some(tally["turn"]),
        Usage(usage.get("in", 0), usage.get("out", 0), usage.get("cost") if usage.get("priced") else None),
        episodes_due,
        sum(heard.values()),
        deferred,
        held,
        held_first,
    )


def _depth(db: apsw.Connection, channel: str, unrouted: int) -> ChannelDepth:
    return ChannelDepth(channel, unrouted, only(db, SQL["oldest"], (channel,))[0] if unrouted else None)


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {name: n for name, n in counts.items() if n}


def episode_work(db: apsw.Connection, limit: int, conversation: str | None) -> Sequence[EpisodeWork]:
    """Batches whose episodes may not be in memory yet."""
    work = []
    for batch_id, turn_id in every(db, SQL["work"], (conversation, limit)):
        messages = rows.messages_of(db, batch_id)
        answer = one(db, SQL["answer"], (turn_id, _OWN_TOOLS)) if turn_id is not None else None
        reply, replied_at, model, trusted, external = answer or ("", 0, "", "", False)
        used = tuple(row[0] for row in every(db, SQL["used"], (turn_id,)))
        asked = staging.staged(db, turn_id)
        trust = Trust(trusted) if trusted else None
        said = reply, replied_at, model, bool(external)
        work.append(EpisodeWork(batch_id, messages, turn_id, *said, used, asked, trust))
    return work
