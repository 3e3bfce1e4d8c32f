"""Watched stores: a process's way to its disk, slow and full by chance, and noted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from keepsaid.domain.batch import DueLane, WaitingGroup
from keepsaid.domain.commits import Commit, Fail, Received, TurnCommit
from keepsaid.domain.context import DroppedSpan, LaneSummary, LaneTail, Reminders, Summary, TranscriptSpan
from keepsaid.domain.event import Distribute, TellNews
from keepsaid.domain.message import Lane
from keepsaid.domain.personality import Personality
from keepsaid.domain.process import Pulse, VoidLeases
from keepsaid.domain.receipt import Feedback, Reminded, Use
from keepsaid.domain.reply import StoredReply
from keepsaid.domain.retention import Backlog, Prunable, PruneHistory
from keepsaid.domain.scheduling import EndRun
from keepsaid.domain.session import CollectionLine, ExtractionLease, Marked, Passage, QuietSince, Session
from keepsaid.domain.slot import Slot
from keepsaid.domain.turn import ClaimedBatch, Lease
from keepsaid.domain.views import EpisodeWork, LaneLine, MessageFilter, Overview, Story, TurnStory
from keepsaid.errors import StoreFull
from keepsaid.ports.memory_maintenance import ForgettingView, ReachView
from keepsaid.ports.store import Store
from keepsaid.ports.store_views import FileView, HistoryView, JournalView, PairingView, R, ScheduleView, TaskView
from keepsaid_testkit.simulator.ears import note
from keepsaid_testkit.simulator.ledger import RunRecord
from keepsaid_testkit.simulator.loop import Killed, SimulatedLife
from keepsaid_testkit.simulator.making import note_made
from keepsaid_testkit.simulator.net import Net

_SLOW_S = 0.02
_NIGHT = Marked(0, None)
"""The result of a night in which every session was read already."""

_HEARTBEAT = Pulse(trial_waits=False)
"""What a process learns that has nothing to do."""


class _Retention:
    """What waits and what may go, as it is."""

    def __init__(self, store: Store) -> None:
        self.store = store

    @property
    def tasks(self) -> TaskView:
        """Tasks."""
        return self.store.tasks

    @property
    def forgettings(self) -> ForgettingView:
        """Requests to forget."""
        return self.store.forgettings

    @property
    def files(self) -> FileView:
        """What came with messages."""
        return self.store.files

    @property
    def pairings(self) -> PairingView:
        """Who may talk."""
        return self.store.pairings

    @property
    def reach(self) -> ReachView:
        """Everything that a wish to forget reaches."""
        return self.store.reach

    async def cursors(self, channel: str, account: str) -> Mapping[str, str]:
        """How far an account has been read."""
        return await self.store.cursors(channel, account)

    async def backlog(self) -> Backlog:
        """What waits."""
        return await self.store.backlog()

    async def unfetched(self, before: int) -> Backlog:
        """How many replies wait to be fetched or sent."""
        return await self.store.unfetched(before)

    async def prune_history(self) -> PruneHistory:
        """The runs of the pruner."""
        return await self.store.prune_history()

    async def prunable(self, messages_before: int, records_before: int) -> Prunable:
        """What a run of the pruner would remove."""
        return await self.store.prunable(messages_before, records_before)

    async def received(self) -> Mapping[str, int]:
        """Messages that were ever stored."""
        return await self.store.received()

    async def lost(self) -> int:
        """Messages that no lane accounts for."""
        return await self.store.lost()


class _Listed(_Retention):
    """Lanes and their summaries, as they are."""

    @property
    def histories(self) -> HistoryView:
        """Messages of clients that keep their history."""
        return self.store.histories

    async def lanes(self, limit: int) -> Sequence[LaneLine]:
        """Lanes, those first where somebody spoke last."""
        return await self.store.lanes(limit)

    async def line(self, lane: Lane) -> LaneLine | None:
        """One lane as it is listed."""
        return await self.store.line(lane)

    async def summaries(self, lane: Lane) -> Sequence[Summary]:
        """Every version of a lane's summary."""
        return await self.store.summaries(lane)


class _Receipts(_Listed):
    """Where memories came up, and what people said of that, as it is."""

    async def reminded(self, lane: Lane) -> Reminded | None:
        """The newest turn of a lane that was shown any memory."""
        return await self.store.reminded(lane)

    async def uses(self, memory_id: int, turns: int) -> Sequence[Use]:
        """The turns a memory came up in."""
        return await self.store.uses(memory_id, turns)

    async def reminded_by(self, place: Lane, provider_id: str) -> Reminded | None:
        """The turn whose answer has a provider id, if it was shown any memory."""
        return await self.store.reminded_by(place, provider_id)

    async def list_active_feedback(self, lane: Lane) -> Sequence[Feedback]:
        """Feedback in force for turns of a lane."""
        return await self.store.list_active_feedback(lane)

    async def feedback(self, memory_id: int) -> Sequence[Feedback]:
        """What people said of a memory."""
        return await self.store.feedback(memory_id)


class _Strands(_Receipts):
    """Contexts, sessions and questions, as they are."""

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the records after it."""
        return await self.store.context(lane, limit)

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """What a lane was reminded of."""
        return await self.store.reminders(lane, turns, blocks)

    async def span(self, lane: Lane, after: int, limit: int) -> TranscriptSpan:
        """The oldest records after a position."""
        return await self.store.span(lane, after, limit)

    async def past(self, lane: Lane) -> tuple[DroppedSpan, ...]:
        """Every span that left the lane's context."""
        return await self.store.past(lane)

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """Summaries of which memory has no copy yet."""
        return await self.store.summaries_due(limit)

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """The summaries a conversation is made of."""
        return await self.store.summaries_of(lane, keep)

    async def sessions(self, lane: Lane, limit: int) -> Sequence[Session]:
        """The newest sessions of a lane."""
        return await self.store.sessions(lane, limit)

    async def slots(self, lane: Lane, limit: int) -> Sequence[Slot]:
        """The newest questions of a lane."""
        return await self.store.slots(lane, limit)

    async def quiet_since(self) -> QuietSince:
        """Since when the longest quiet lanes are."""
        return await self.store.quiet_since()

    async def personalities(self, scopes: Sequence[str]) -> tuple[Personality, ...]:
        """What is set for these scopes."""
        return await self.store.personalities(scopes)


class _Collections(_Strands):
    """Marked sessions and their records, as they are."""

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[CollectionLine]:
        """Sessions by the state of their collection."""
        return await self.store.collections(states, limit)

    async def passage(self, session_id: int, after: int, limit: int) -> Passage | None:
        """What was said in a session after a position."""
        return await self.store.passage(session_id, after, limit)

    async def marked_at(self) -> int | None:
        """When every unread session was marked last."""
        return await self.store.marked_at()

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name."""
        return await self.store.note(name, at)


class _Views(_Collections):
    """What has views of its own."""

    @property
    def journal(self) -> JournalView:
        """What happened."""
        return self.store.journal

    @property
    def schedules(self) -> ScheduleView:
        """What comes at a time."""
        return self.store.schedules


class Views(_Views):
    """Every read of a store, as it is."""

    async def due(self, at: int, limit: int) -> tuple[DueLane, ...]:
        """Lanes whose window has closed."""
        return await self.store.due(at, limit)

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[WaitingGroup, ...]:
        """What waits in these lanes."""
        return await self.store.waiting(lanes)

    async def next_due(self) -> int | None:
        """When the next window closes."""
        return await self.store.next_due()

    async def story(self, message_id: int) -> Story | None:
        """One message."""
        return await self.store.story(message_id)

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""
        return await self.store.find(wanted)

    async def overview(self) -> Overview:
        """Counts."""
        return await self.store.overview()

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes may not be in memory yet."""
        return await self.store.episode_work(limit, conversation)

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn."""
        return await self.store.turn(turn_id)

    async def last_turn(self, lane: Lane | None, *, commands: bool = True) -> int | None:
        """The newest settled turn."""
        return await self.store.last_turn(lane, commands=commands)

    async def next_ready(self) -> int | None:
        """When the next batch may be claimed."""
        return await self.store.next_ready()

    async def next_trial(self) -> int | None:
        """At which age of the process a trial may begin."""
        return await self.store.next_trial()

    async def unseen(self, channel: str, conversation: str, limit: int = 1_000) -> Sequence[StoredReply]:
        """The first replies nobody has pulled yet."""
        return await self.store.unseen(channel, conversation, limit)


class Watched(Views):
    """The store as one process has it open: after its death it takes nothing more."""

    def __init__(self, store: Store, net: Net, seen: RunRecord, life: SimulatedLife) -> None:
        super().__init__(store)
        self._net = net
        self._seen = seen
        self._life = life
        self._told_news = False

    async def claimed(self, lease: Lease) -> ClaimedBatch | None:
        """What a lease is for."""
        return await self.store.claimed(lease)

    async def lease(self, batch_id: int, fence: int) -> tuple[str, Lease | None]:
        """The state of a batch under a fence, and its lease."""
        return await self.store.lease(batch_id, fence)

    async def expired(self, at: int) -> Sequence[Lease]:
        """Leases that have run out."""
        return await self.store.expired(at)

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks."""
        return await self.store.last_id()

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply may be pushed."""
        return await self.store.next_send(channels)

    async def apply(self, commit: Commit[R]) -> R:
        """Apply a commit, at once or after a while; it may be kept and its answer late."""
        net, name = self._net, type(commit).__name__
        if net.happens(net.weather.slow_disk):
            await net.pause(0.0, _SLOW_S)
        if self._life.dead:
            raise Killed
        if net.happens(net.weather.full):
            net.trace.add(f"{self._life.name} {name}: disk full")
            raise StoreFull("no space left")
        self._note_replies(commit)
        result = await self.store.apply(commit)
        note(self._seen, commit, result)
        note_made(self._seen, commit, result)
        if result and result not in (_NIGHT, _HEARTBEAT):
            self._seen.commits += not self._is_news(commit)
            net.trace.add(f"{self._life.name} {name} {_brief(result)}")
        if net.happens(net.weather.slow_disk):
            await net.pause(0.0, _SLOW_S)
        return result

    def _is_news(self, commit: Commit[R]) -> bool:
        """Whether it publishes what memory's own nightly work did, or distributes that to subscribers."""
        heard, self._told_news = self._told_news and isinstance(commit, Distribute), isinstance(commit, TellNews)
        return heard or self._told_news

    def _note_replies(self, commit: Commit[R]) -> None:
        """When replies are written: between here and the disk no time passes."""
        ids: tuple[int, ...] = ()
        if isinstance(commit, TurnCommit) and commit.reply is not None:
            ids = (commit.reply.id,)
        elif isinstance(commit, Fail) and commit.notice is not None:
            ids = (commit.notice.id, *commit.reply_ids)
        elif isinstance(commit, VoidLeases):
            ids = commit.reply_ids
        elif isinstance(commit, EndRun) and commit.verb == "execute":
            ids = tuple(one.id for one in (commit.reply, commit.notice and commit.notice.draft) if one)
        for reply_id in ids:
            self._seen.written[reply_id] = self._net.wall.passed_ms()


def _brief(result: object) -> str:
    if isinstance(result, Received):
        return f"{result.intake} {result.number}"
    if isinstance(result, ExtractionLease):
        return f"{result.lane.conversation} after {result.after} up to {result.marked}"
    return str(len(result)) if isinstance(result, tuple) else str(result)
