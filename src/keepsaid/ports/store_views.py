"""The operational store: the one way to write it (`Operations`), and its views, one Protocol a reader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

from keepsaid.domain import batch, commits, event, personality, receipt, relay, reply, retention, route, session, slot
from keepsaid.domain.client_history import ChainedMessage
from keepsaid.domain.context import DroppedSpan, LaneSummary, LaneTail, Reminders, Summary, TranscriptSpan
from keepsaid.domain.files import PlacedFile, StoredFile
from keepsaid.domain.message import Lane
from keepsaid.domain.pairing import Pairing, PairingState
from keepsaid.domain.schedule import RunOutput, Schedule, ScheduleRun
from keepsaid.domain.task import Task, TaskFilter, TaskStory, TaskWork
from keepsaid.domain.turn import ClaimedBatch, Lease
from keepsaid.domain.turn_files import PlacedTurnFile, TurnFile
from keepsaid.domain.views import EpisodeWork, LaneLine, MessageFilter, Overview, Story, TurnStory
from keepsaid.domain.visibility import Identity
from keepsaid.ports.runtime import Hint

R = TypeVar("R")


class Operations(Protocol):
    """Applies commits."""

    async def apply(self, commit: commits.Commit[R]) -> R:
        """Apply one commit, atomically; returns only after it is on disk.

        Raises StoreFull, StoreBroken or another StoreError with nothing of the commit kept, and
        IllegalMove when the commit asks for a move its table does not list.
        """


class HistoryView(Protocol):
    """Finds the messages of clients that keep the history of a conversation themselves.

    A place is a channel, an account and a conversation; "" for any conversation of the account.
    """

    async def chained(self, place: tuple[str, str, str], places: Sequence[str]) -> Sequence[ChainedMessage]:
        """Of each of these hashes of places in histories the newest message, newest first."""

    async def versions(self, place: tuple[str, str, str], hashed: str) -> Sequence[ChainedMessage]:
        """The messages at one place of the histories of a conversation, by its hash, newest first."""

    async def newest(self, place: tuple[str, str, str]) -> ChainedMessage | None:
        """The last message of a conversation, without recorded talk; None before the first."""

    async def chained_one(self, message_id: int, channel: str, account: str) -> ChainedMessage | None:
        """One message of an account; None for any other."""


class BufferView(Protocol):
    """Reads messages and their outcomes."""

    async def due(self, at: int, limit: int) -> tuple[batch.DueLane, ...]:
        """Lanes whose window has closed by `at`, best priority first."""

    async def waiting(self, lanes: Sequence[Lane]) -> tuple[batch.WaitingGroup, ...]:
        """The messages that wait in these lanes, the first hundred of each; a lane where none waits is left out."""

    async def next_due(self) -> int | None:
        """When the next window closes; None when nothing waits."""

    async def story(self, message_id: int) -> Story | None:
        """One message and its outcome."""

    async def find(self, wanted: MessageFilter) -> Sequence[Story]:
        """Messages, newest first."""

    async def overview(self) -> Overview:
        """Counts for `status`."""

    async def episode_work(self, limit: int, conversation: str | None = None) -> Sequence[EpisodeWork]:
        """Batches whose episodes are not known to be in memory, oldest first."""


class CountView(Protocol):
    """Reads what metrics count beside a status."""

    async def received(self) -> Mapping[str, int]:
        """How many messages were ever stored, by channel; pruning does not lower it."""

    async def lost(self) -> int:
        """How many acknowledged messages no lane accounts for: anything but 0 is a fault."""


class ContextView(Protocol):
    """Reads what a lane shows, what left it, and its summaries."""

    async def context(self, lane: Lane, limit: int) -> LaneTail:
        """The summary in force and the last `limit` records after it, oldest first; no tool result without its call."""

    async def reminders(self, lane: Lane, turns: int, blocks: int) -> Reminders:
        """The memories shown in the last `turns` turns, and the last `blocks` memory blocks still in the context."""

    async def span(self, lane: Lane, after: int, limit: int) -> TranscriptSpan:
        """The first `limit` records of a lane's transcript after a position, as prompts show them, oldest first."""

    async def past(self, lane: Lane) -> tuple[DroppedSpan, ...]:
        """Every span that left the lane's context, in order; together they reach from the first record to the tail."""

    async def summaries_due(self, limit: int) -> Sequence[LaneSummary]:
        """The newest summaries of lanes of which memory has no copy yet."""

    async def summaries_of(self, lane: Lane, keep: int) -> Sequence[LaneSummary]:
        """Of each lane of a lane's conversation the newest summary that leaves its newest `keep` records out."""


class LaneView(ContextView, Protocol):
    """Reads transcripts and turns."""

    async def claimed(self, lease: Lease) -> ClaimedBatch | None:
        """What a lease is for: messages, open turn and recorded steps; None when the lease was lost."""

    async def lease(self, batch_id: int, fence: int) -> tuple[str, Lease | None]:
        """The state of a batch whose newest lease has this fence, "" for another; and the lease while it lasts."""

    async def expired(self, at: int) -> Sequence[Lease]:
        """The first leases of batches that have run out by a time of the steady clock, a hundred at most."""

    async def turn(self, turn_id: int) -> TurnStory | None:
        """One turn with all that is recorded of it."""

    async def last_turn(self, lane: Lane | None, *, commands: bool = True) -> int | None:
        """The newest settled turn of a lane, or of all lanes; without `commands` not one that carried out a command."""

    async def next_ready(self) -> int | None:
        """When the next queued batch may be claimed; None when none is queued."""

    async def next_trial(self) -> int | None:
        """Return the age of the process (ms) at which a trial may begin; None when no batch waits for one."""


class LaneList(Protocol):
    """Lists lanes, and every summary that was made of one."""

    async def lanes(self, limit: int) -> Sequence[LaneLine]:
        """At most `limit` lanes, those first where somebody spoke last."""

    async def line(self, lane: Lane) -> LaneLine | None:
        """One lane as it is listed; None when nothing was ever said in it."""

    async def summaries(self, lane: Lane) -> Sequence[Summary]:
        """Every version of a lane's summary, newest first."""


class OutboxView(Protocol):
    """Reads replies."""

    async def unseen(self, channel: str, conversation: str, limit: int = 1_000) -> Sequence[reply.StoredReply]:
        """The first replies of a pulled conversation that nobody has pulled yet, in order."""

    async def unfetched(self, before: int) -> retention.Backlog:
        """How many replies that were made before a time (milliseconds UTC) still wait to be fetched or sent."""

    async def last_id(self) -> int:
        """The largest id of all messages, batches, replies and tasks, 0 before the first; new ids must be larger."""

    async def next_send(self, channels: tuple[str, ...]) -> int | None:
        """When the next reply of these channels may be tried; None when none waits."""


class SessionView(Protocol):
    """Reads sessions and slots of lanes."""

    async def sessions(self, lane: Lane, limit: int) -> Sequence[session.Session]:
        """The newest `limit` sessions of a lane, newest first."""

    async def slots(self, lane: Lane, limit: int) -> Sequence[slot.Slot]:
        """The newest `limit` questions of a lane, newest first."""

    async def quiet_since(self) -> session.QuietSince:
        """Since when the longest quiet lanes are."""


class CollectionView(Protocol):
    """Reads marks, and the records they mark."""

    async def collections(self, states: Sequence[str], limit: int) -> Sequence[session.CollectionLine]:
        """Sessions whose collection is `marked`, `claimed` or `parked`, those first that are due first."""

    async def passage(self, session_id: int, after: int, limit: int) -> session.Passage | None:
        """At most `limit` records of people and the agent in a session after a position; None without a session."""

    async def marked_at(self) -> int | None:
        """When the last run that marked every unread session ended, milliseconds UTC; None before the first."""


class NoteView(Protocol):
    """Reads notes."""

    async def note(self, name: str, at: int) -> str:
        """What was noted under a name; "" for nothing, and for what is over at that time (milliseconds UTC)."""


class Notes(Operations, NoteView, Protocol):
    """Writes and reads them."""


class PersonalityView(Protocol):
    """Reads what was set."""

    async def personalities(self, scopes: Sequence[str]) -> tuple[personality.Personality, ...]:
        """Those that are set for any of these scopes."""


class ReceiptView(Protocol):
    """Reads in which turns memories came up, and what people said of that."""

    async def reminded(self, lane: Lane) -> receipt.Reminded | None:
        """The newest of the lane's last twenty turns that was shown any memory."""

    async def reminded_by(self, place: Lane, provider_id: str) -> receipt.Reminded | None:
        """The turn whose answer, or a part of it, has a provider id in a conversation, if it was shown any memory."""

    async def uses(self, memory_id: int, turns: int) -> Sequence[receipt.Use]:
        """The turns a memory was shown to, and of the newest `turns` those it was left out of; newest first."""

    async def list_active_feedback(self, lane: Lane) -> Sequence[receipt.Feedback]:
        """Feedback in force for turns of a lane, which marks memories as wrong; newest first."""

    async def feedback(self, memory_id: int) -> Sequence[receipt.Feedback]:
        """What people said of a memory, newest first, withdrawn or not."""


class RetentionView(Protocol):
    """Reads what waits, and what may go."""

    async def backlog(self) -> retention.Backlog:
        """Messages without an answer that nobody works on yet, routed or not."""

    async def prune_history(self) -> retention.PruneHistory:
        """The runs of the pruner."""

    async def prunable(self, messages_before: int, records_before: int) -> retention.Prunable:
        """What a run would remove of what was settled before these times, milliseconds UTC."""


class ConversationLanes(Protocol):
    """Reads the other lanes of a conversation."""

    async def render_other_lanes(self, lane: Lane) -> str:
        """Render the summary of a conversation's other lanes; "" if there is none."""


class TaskView(Protocol):
    """Reads tasks."""

    async def task(self, task_id: int) -> TaskStory | None:
        """One task, with what its worker did so far."""

    async def find(self, wanted: TaskFilter) -> Sequence[Task]:
        """Tasks, newest first."""

    async def next_ready(self, kind: route.TaskKind) -> int | None:
        """When the next pending task may be claimed (milliseconds UTC); None when none waits."""

    async def next_expiry(self) -> int | None:
        """When the next task that waits for a person may wait no longer (milliseconds UTC); None when none waits so."""

    async def list_open_tasks(self, lane: Lane, limit: int) -> Sequence[Task]:
        """Tasks that turns of a lane made and that have not ended, newest first."""

    async def list_ended_tasks(self, lane: Lane, since: int, limit: int) -> Sequence[Task]:
        """Tasks that turns of a lane made and that ended at `since` or later (milliseconds UTC), last ended first."""

    async def list_unreported_tasks(self, limit: int) -> Sequence[relay.UnreportedTasks]:
        """Ended tasks of turns that were not reported to their lanes yet, by lane; the newest `limit` tasks."""

    async def results(self, limit: int) -> Sequence[TaskWork]:
        """Completed tasks whose results may not be in memory yet, oldest first."""


class ScheduleView(Protocol):
    """Reads schedules; the commits of `domain/scheduling.py` write them. Times are milliseconds UTC."""

    async def due(self, at: int, limit: int, *, once: bool = True) -> Sequence[Schedule]:
        """Active schedules whose time has come, those that wait longest first; without `once` those that come again."""

    async def next_due(self) -> int | None:
        """When the next schedule comes, or a run may begin; None when nothing waits for a time."""

    async def ready(self, at: int, limit: int, errands: int) -> Sequence[tuple[ScheduleRun, Schedule]]:
        """Runs that are due and may begin, those first that may the longest; of jobs a limited number."""

    async def list_unsettled_outputs(self, limit: int) -> Sequence[RunOutput]:
        """Runs whose output can be settled further, at most `limit`."""

    async def list_orphaned_runs(self, limit: int) -> Sequence[ScheduleRun]:
        """Runs that are under way although their task has ended or does not exist any more."""

    async def schedule(self, schedule_id: int) -> Schedule | None:
        """One schedule."""

    async def schedules(self, states: Sequence[str], after: int, limit: int) -> Sequence[Schedule]:
        """Schedules in these states with ids above `after`, oldest first."""

    async def runs(self, schedule_id: int, limit: int) -> Sequence[ScheduleRun]:
        """The runs of a schedule, latest first."""

    async def latest(self) -> int | None:
        """The latest time at which a run was made; None when there was none."""


class PairingView(Protocol):
    """Reads who was sent a code, and who was let in; the commits of `domain/pairing.py` write it."""

    async def standing(self, who: Identity) -> PairingState | None:
        """What a person is; None for one who was neither sent a code nor let in."""

    async def everybody(self, limit: int) -> Sequence[Pairing]:
        """Those who are, newest first."""

    async def recent_times(self, who: Identity, conversation: str, limit: int) -> Sequence[int]:
        """When somebody wrote in a conversation, the latest first, milliseconds UTC; without what was a loop."""


class FileView(Protocol):
    """Reads what came with messages; the commits of `domain/fetching.py` write it."""

    async def next_due(self) -> int | None:
        """When the next file is to be fetched; it may be one whose message is not routed yet. None for none."""

    async def of_messages(self, message_ids: Sequence[int]) -> Sequence[StoredFile]:
        """The files of some messages, in the order in which they came."""

    async def placed(self, message_id: int, number: int) -> PlacedFile | None:
        """One file, and where it was said."""

    async def content(self, message_id: int, number: int) -> bytes:
        """The bytes of a file, as far as they are there; nothing of one that was left."""

    async def payload(self, channel: str, account: str, provider_id: str) -> bytes | None:
        """The payload of the newest message with an id of its medium, as it came; None without one."""

    async def turn_file(self, turn_id: int, number: int) -> PlacedTurnFile | None:
        """A file that a turn made or sends, and the lane of the turn."""

    async def attached(self, turn_ids: Sequence[int]) -> Sequence[TurnFile]:
        """The files that go with the replies of some turns, in order."""

    async def turn_content(self, turn_id: int, number: int) -> bytes | None:
        """The bytes of a file of a turn; None if it is not kept any more."""


class JournalView(Protocol):
    """Reads the journal; the commits of `domain/event.py` write it, and most others."""

    @property
    def hint(self) -> Hint:
        """Set after a commit of this process that may have written events; one reader waits for it and clears it."""

    async def events(self, after: int, limit: int) -> Sequence[event.Event]:
        """The events with ids above `after`, oldest first: those of about `limit` lines, each told to its end."""

    async def latest(self, limit: int) -> Sequence[event.Event]:
        """The newest events, oldest first."""

    async def happened(self, topic: str, correlation_id: str, after: int) -> event.Event | None:
        """The first event of a topic about something after an id; events written several at a time are not searched."""

    async def subscribers(self) -> Sequence[event.SubscriberLine]:
        """The subscribers, their topics and their positions."""

    async def deliveries(self, states: Sequence[str], subscriber: str, limit: int) -> Sequence[event.DeliveryLine]:
        """Deliveries in these states, newest event first; of one subscriber, or of all for ""."""

    async def next_delivery(self, subscriber: str, after: int = -1) -> int | None:
        """When the next attempt for a subscriber is due after a time (ms UTC); None when nothing is."""
