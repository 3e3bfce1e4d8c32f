"""What readers see of the RAM store."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, groupby

from keepsaid.adapters.ram import pruning
from keepsaid.adapters.ram.busy import steered, steered_into
from keepsaid.adapters.ram.collection import RamCollections
from keepsaid.adapters.ram.context_view import RamContexts
from keepsaid.adapters.ram.forgetting_view import RamForgettings, RamReach
from keepsaid.adapters.ram.journal import RamJournal
from keepsaid.adapters.ram.lane_list import RamLaneList
from keepsaid.adapters.ram.notes import RamNotes
from keepsaid.adapters.ram.outbox import first_to_push
from keepsaid.adapters.ram.receipts import RamReceipts, feedback_of_turn
from keepsaid.adapters.ram.schedule_view import RamSchedules
from keepsaid.adapters.ram.session_view import RamSessions, surroundings
from keepsaid.adapters.ram.state import BatchRow, Entry, LaneRow, State, TurnRow
from keepsaid.adapters.ram.task_view import RamTasks
from keepsaid.domain.batch import Due, Group
from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Message, Trust
from keepsaid.domain.priority import shared
from keepsaid.domain.prompt import Json, Record
from keepsaid.domain.provenance import from_outside
from keepsaid.domain.redaction import Mark
from keepsaid.domain.reply import Reply
from keepsaid.domain.retention import Backlog, Prunable, PruneHistory
from keepsaid.domain.states import message_state
from keepsaid.domain.suspicion import HELD_AFTER
from keepsaid.domain.turn import Claimed, Lease, Usage
from keepsaid.domain.views import ChannelDepth, EpisodeWork, MessageFilter, Overview, Spawned, Story, TurnStory

GROUP_MAX = 100
"""Messages in one group at most."""


class RamBuffer:
    """The buffer, read only."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._told = asyncio.Event()

    async def due(self, at: int, limit: int) -> tuple[Due, ...]:
        """Lanes whose window has closed by `at`."""
        rows = [row for row in self._state.lanes.values() if row.due_at is not None and row.due_at <= at]
        rows.sort(key=lambda row: (row.priority, row.due_at))
        levels = [list(level) for _, level in groupby(rows, key=lambda row: row.priority)]
        return tuple(_due(row) for row in shared(levels, limit))

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[Group, ...]:
        """What waits in these lanes."""
        rows = [row for lane in lanes if (row := self._state.lanes.get(lane)) is not None]
        return tuple(Group(row.lane, row.batched, row.waiting[:GROUP_MAX]) for row in rows if row.waiting)

    async def next_due(self) -> int | None:
        """When the next window closes."""
        return min((row.due_at for row in self._state.lanes.values() if row.due_at is not None), default=None)

    async def next_trial(self) -> int | None:
        """Return the age of the process at which a trial may begin."""
        ready = [batch for batch in (row.ready for row in self._state.lanes.values()) if batch is not None]
        held = [batch for batch in ready if batch.crashes >= HELD_AFTER and not batch.later]
        return min((batch.trial_after_ms for batch in held), default=None)

    async def story(self, message_id: int) -> Story | None:
        """One message and what became of it."""
        message = self._state.messages.get(message_id)
        return None if message is None else _story(self._state, message)

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""
        found: list[Story] = []
        newest_first = sorted(self._state.messages.values(), key=lambda m: m.id, reverse=True)
        for message in newest_first:
            if len(found) >= wanted.limit:
                break
            story = _story(self._state, message)
            if _is_wanted(story, wanted):
                found.append(story)
        return found

    async def marks(self, message_id: int) -> tuple[Mark, ...]:
        """Where a message's text holds secrets."""
        return self._state.redactions.get(message_id, ())

    async def overview(self) -> Overview:
        """Counts over the whole store."""
        state = self._state
        channels = sorted({lane.channel for lane in state.lanes})
        held = [b.id for b in state.batches.values() if b.state == "queued" and b.crashes >= HELD_AFTER]
        return Overview(
            channels=tuple(_depth(state, channel) for channel in channels),
            batches=dict(Counter(batch.state for batch in state.batches.values())),
            replies=dict(Counter(reply.state for reply in state.replies.values())),
            tasks=dict(Counter(task.state for task in state.tasks.values())),
            turns=dict(Counter(turn.state for turn in state.turns.values())),
            usage=sum((turn.usage for turn in state.turns.values()), Usage()),
            episodes_due=len(state.episodes_due),
            messages=sum(row.head for row in state.lanes.values()),
            deferred=sum(b.state == "queued" and b.deferrals > 0 for b in state.batches.values()),
            held=len(held),
            held_first=min(held, default=0),
        )

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes may not be in memory yet."""
        due = [self._state.batches[batch_id] for batch_id in sorted(self._state.episodes_due)]
        wanted = [batch for batch in due if conversation in (None, batch.lane.lane.conversation)]
        return [_work(self._state, batch, self._state.episodes_due[batch.id]) for batch in wanted[:limit]]

    async def backlog(self) -> Backlog:
        """What waits."""
        return pruning.backlog(self._state)

    async def prune_history(self) -> PruneHistory:
        """The runs of the pruner."""
        return pruning.history(self._state)

    async def prunable(self, messages_before: int, records_before: int) -> Prunable:
        """What a run of the pruner would remove."""
        return pruning.prunable(self._state, messages_before, records_before)


class RamLanes(RamNotes, RamCollections, RamContexts, RamBuffer, RamSessions, RamLaneList, RamReceipts):
    """The buffer, the lanes and the outbox, read only."""

    @property
    def forgettings(self) -> RamForgettings:
        """Requests to forget."""
        return RamForgettings(self._state)

    @property
    def reach(self) -> RamReach:
        """Everything that a wish to forget reaches."""
        return RamReach(self._state)

    @property
    def tasks(self) -> RamTasks:
        """Tasks."""
        return RamTasks(self._state)

    @property
    def journal(self) -> RamJournal:
        """What happened, and what is on its way to whom."""
        return RamJournal(self._state, self._told)

    @property
    def schedules(self) -> RamSchedules:
        """What comes at a time."""
        return RamSchedules(self._state)

    async def claimed(self, lease: Lease) -> Claimed | None:
        """What a lease is for."""
        batch, turn = lease.batch, self._state.held_turn(lease.turn_id, lease.batch.fence)
        if turn is None:
            return None
        messages, trace, joined = turn.batch.messages, json.loads(turn.trace), steered(turn)
        claimed = Claimed(batch, turn.id, messages, turn.recorded, lease.alone, trace, joined)
        return replace(claimed, around=surroundings(self._state, batch.lane, claimed.heard))

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn."""
        turn = self._state.turns.get(turn_id)
        if turn is None:
            return None
        batch = turn.batch
        messages = tuple(message for one in (batch, *steered_into(turn)) for message in one.messages)
        return TurnStory(
            turn_id=turn.id,
            state=turn.state,
            batch=batch.value,
            messages=messages,
            steps=turn.recorded,
            records=tuple(entry.record for entry in batch.lane.transcript if entry.turn_id == turn.id),
            replies=_replies(batch),
            trace=json.loads(turn.trace),
            usage=turn.usage,
            started_at=turn.started_at,
            ended_at=turn.ended_at,
            reason=turn.reason,
            before=_trace_before(self._state, turn),
            placed={one.id: why for one in messages if (why := self._state.placed.get(one.id))},
            feedback=feedback_of_turn(self._state, turn.id),
        )

    async def last_turn(self, lane: Lane | None) -> int | None:
        """The newest settled turn."""
        turns = self._state.turns.values()
        settled = (turn for turn in turns if turn.state != "open")
        return max((turn.id for turn in settled if lane in (None, turn.batch.lane.lane)), default=None)

    async def next_ready(self) -> int | None:
        """When the next queued batch may be claimed."""
        ready = [batch for batch in (row.ready for row in self._state.lanes.values()) if batch is not None]
        return min((batch.ready_at if batch.later else 0 for batch in ready), default=None)

    async def unseen(self, channel: str, conversation: str, limit: int = 1_000) -> Sequence[Reply]:
        """The first replies nobody has pulled yet; those with a URL are pushed there instead."""
        waiting = [self._state.unsettled[reply_id] for reply_id in sorted(self._state.unsettled)]
        pulled = [reply for reply in waiting if reply.state == "pending" and reply.draft.url is None]
        here = [reply for reply in pulled if (reply.lane.channel, reply.lane.conversation) == (channel, conversation)]
        return [reply.value for reply in here[:limit]]

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks."""
        state = self._state
        return max(chain(state.messages, state.batches, state.replies, state.tasks), default=0)

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply may be pushed, or one in doubt be queued again."""
        firsts = first_to_push(self._state, channels)
        return min((reply.next_at for reply in firsts if reply.state != "sending"), default=None)


def _due(row: LaneRow) -> Due:
    assert row.oldest_at is not None, "what is due waits"
    return Due(row.lane, row.batched, row.head, row.waiting[-1].id, row.oldest_at, row.priority, row.chars)


def _replies(batch: BatchRow) -> tuple[Reply, ...]:
    return tuple(reply.value for reply in sorted(batch.replies, key=lambda reply: reply.draft.id))


def _story(state: State, message: Message) -> Story:
    batch, why = state.lanes[message.lane].batch_of(message.number), state.placed.get(message.id, "")
    if batch is None:
        return Story(message, message_state(None), placed=why)
    turn_id = batch.steered or max((turn.id for turn in batch.turns), default=None)
    replies = _replies(batch)
    if batch.steered in state.turns:
        replies += tuple(one for one in _replies(state.turns[batch.steered].batch) if one.turn_id == batch.steered)
    return Story(message, message_state(batch.state), batch.value, turn_id, _task(state, batch), replies, why)


def _task(state: State, batch: BatchRow) -> Spawned | None:
    task = None if batch.task_id is None else state.tasks.get(batch.task_id)
    return None if task is None else Spawned(task.id, task.state, task.description)


def _is_wanted(story: Story, wanted: MessageFilter) -> bool:
    lane = story.message.lane
    asked = (wanted.channel, wanted.conversation, wanted.state)
    found = (lane.channel, lane.conversation, story.state)
    replies = {reply.state for reply in story.replies}
    same = all(want in (None, have) for want, have in zip(asked, found, strict=True))
    return same and (wanted.reply is None or wanted.reply in replies)


def _depth(state: State, channel: str) -> ChannelDepth:
    rows = [row for row in state.lanes.values() if row.lane.channel == channel]
    oldest = [row.oldest_at for row in rows if row.oldest_at is not None]
    return ChannelDepth(channel, sum(row.head - row.batched for row in rows), min(oldest, default=None))


def _work(state: State, batch: BatchRow, turn_id: int | None) -> EpisodeWork:
    if turn_id is None:
        return EpisodeWork(batch.id, batch.messages)
    ref = f"reply:{turn_id}"
    answer = next((entry for entry in batch.lane.transcript if entry.ref == ref), None)
    used, staged = state.turns[turn_id].shown, tuple(state.staged.get(turn_id, ()))
    if answer is None:
        return EpisodeWork(batch.id, batch.messages, turn_id, used=used, staged=staged)
    model = state.turns[turn_id].model
    before = batch.lane.span(1, max(one.last for one in (batch, *steered_into(state.turns[turn_id]))))
    external = batch.lane.external_from is not None and batch.lane.external_from <= batch.last
    external = external or any(message.inbound.origin.trust is Trust.EXTERNAL for message in before)
    external = external or from_outside(_shown(batch, answer))
    said = (answer.record.text, answer.created_at, model)
    return EpisodeWork(batch.id, batch.messages, turn_id, *said, external, used, staged, answer.record.trust)


def _shown(batch: BatchRow, answer: Entry) -> list[Record]:
    """What the session holds up to an answer."""
    transcript = batch.lane.transcript
    position = transcript.index(answer) + 1
    begins = max((one.first for one in batch.lane.sessions if one.first <= position), default=1)
    return [entry.record for entry in transcript[begins - 1 : position]]


def _trace_before(state: State, turn: TurnRow) -> Json:
    """The trace of the turn that was committed before this one in its lane."""
    lane = turn.batch.lane
    earlier = (one for one in state.turns.values() if one.batch.lane is lane and one.id < turn.id)
    before = max((one for one in earlier if one.state == "committed"), key=lambda one: one.id, default=None)
    found: Json = None if before is None else json.loads(before.trace)
    return found
