"""The services of an instance, joined to its stores, and its events, published to subscribers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Protocol

from keepsaid.adapters.system.files import HistoryFile
from keepsaid.app.backups import backups_of
from keepsaid.app.stores import archive_of, host_status
from keepsaid.app.telemetry import TracedReminder
from keepsaid.app.work import ScheduleRunner, TaskRunners
from keepsaid.config import Config, Home
from keepsaid.domain import commits, event
from keepsaid.domain.message import Inbound
from keepsaid.domain.prompt import Json
from keepsaid.engine import forgetter, subscriptions, supervisor
from keepsaid.engine.workers import Attempt
from keepsaid.events import catalog
from keepsaid.events.dispatcher import NewsPublisher, wait_for
from keepsaid.memory.injection import Injector
from keepsaid.memory.recall.recollection import Recollection
from keepsaid.memory.recording import Recorder
from keepsaid.pipeline.leasing import Leases
from keepsaid.pipeline.runner import MessagePipeline
from keepsaid.ports.memory_maintenance import MemoryNews
from keepsaid.ports.memory_store import Reminder
from keepsaid.ports.runtime import Clock, Hint, Ids, Redactor, StopToken
from keepsaid.ports.store import MemoryStore, Store
from keepsaid.services.agent_hooks import AgentHooks, SessionNotes
from keepsaid.services.assistant import Assistant
from keepsaid.services.batches import BatchService
from keepsaid.services.chats import ChatService
from keepsaid.services.context import ContextService
from keepsaid.services.conversations import ConversationService
from keepsaid.services.entities import EntityService
from keepsaid.services.forgetting import ForgettingService
from keepsaid.services.inbox import AskService, InboxService, ProgressHub
from keepsaid.services.memories import MemoryService, RememberedService, SearchService
from keepsaid.services.pairing import PairingService
from keepsaid.services.people import PeopleService
from keepsaid.services.schedules import ScheduleService
from keepsaid.services.status import StatusService
from keepsaid.services.tasks import TaskService
from keepsaid.text.normal import normalise
from keepsaid.values import frozen


def forgetter_of(
    operations: Store, memories: MemoryStore, time: tuple[Clock, Ids], halt: StopToken, home: Home
) -> forgetter.Forgetter:
    """What forgets in these stores and in the lines that were typed in the chat, until the halt is asked."""
    return forgetter.Forgetter((operations, memories), *time, halt, HistoryFile(home.typed_file))


@frozen
class Services:
    """What people and programs may ask of an instance beside talking to it."""

    asking: AskService
    conversations: ConversationService
    inbox: InboxService
    memories: MemoryService
    search: SearchService
    people: PeopleService
    pairing: PairingService
    entities: EntityService
    forgetting: ForgettingService
    tasks: TaskService
    schedules: ScheduleService
    status: StatusService
    batches: BatchService
    assistant: Assistant
    chats: ChatService
    hooks: AgentHooks


class ServedParts(Protocol):
    """The parts of an instance that its services work with."""

    home: Home
    config: Config
    operations: Store
    memories: MemoryStore
    clock: Clock
    ids: Ids
    flow: MessagePipeline
    hub: ProgressHub
    recorder: Recorder
    search: Recollection
    forgetter: forgetter.Forgetter
    forgetting: Hint
    working: TaskRunners
    scheduling: ScheduleRunner
    leases: Leases
    attempt: Attempt

    @property
    def redactor(self) -> Redactor: ...

    @property
    def running(self) -> bool: ...

    async def receive(self, inbound: Inbound) -> commits.Received: ...

    async def record(self, said: Sequence[Inbound]) -> tuple[commits.Received, ...]: ...


def services_of(here: ServedParts) -> Services:
    """The services of an instance; while it is not started, they take commands alone."""
    operations, memories, clock, config = here.operations, here.memories, here.clock, here.config
    inbox = InboxService(operations, clock, here.flow.hints)
    backups, look = partial(backups_of, here.home, config), partial(host_status, here.home, config)

    def remember(conversation: str) -> Awaitable[object]:
        return here.recorder.catch_up(conversation=conversation)

    remembered = RememberedService(memories, remember)
    changes = MemoryService(memories, operations, clock, here.redactor)
    search = SearchService(memories, here.search, archive_of(memories, clock), clock)
    forgetting = ForgettingService(here.forgetter, memories, backups, lambda: here.running, here.forgetting)
    agent = here.flow.answering

    def reminder(tokens: int) -> Reminder:
        return _within(agent.agent.reminder, tokens)

    context = ContextService(operations, clock, reminder, lambda: agent.agent.sources.bulletins)
    assistant = Assistant((operations, memories), search, (changes, forgetting), context, (here.record, remember))
    return Services(
        AskService(operations, here.hub, here.receive, inbox, remembered.add_to),
        ConversationService(operations, here.hub, inbox.mark_seen),
        inbox,
        changes,
        search,
        PeopleService(memories, operations.pairings, config, clock),
        PairingService(operations, config, clock),
        EntityService(memories),
        forgetting,
        TaskService(operations, clock, here.ids, here.working),
        here.scheduling.service,
        StatusService(operations, memories, clock, config.buffer, look),
        BatchService(operations, here.flow, here.leases, here.attempt, clock),
        assistant,
        ChatService(operations, clock, agent.agent.client),
        AgentHooks(assistant, here.redactor, SessionNotes(operations, clock)),
    )


def _within(reminder: Reminder, tokens: int) -> Reminder:
    """The same reminder, whose block has at most a number of estimated tokens."""
    if isinstance(reminder, TracedReminder):
        return replace(reminder, reminder=_within(reminder.reminder, tokens))
    if isinstance(reminder, Injector):
        return replace(reminder, settings=replace(reminder.settings, tokens_max=tokens))
    return reminder


_NEWS_MS = 60_000
_NAME_CHARS_MAX = 100


class EventService:
    """Journal and event subscribers of one instance; `news` are the changes of its memory.

    Where it shares its stores, it makes no deliveries until it leads.
    """

    def __init__(
        self, store: Store, clock: Clock, ids: Ids, news: MemoryNews | None = None, *, shares: bool = False
    ) -> None:
        self.journal = store.journal
        self._store = store
        self._clock = clock
        self._ids = ids
        self._news = news
        self._subscribers = subscriptions.Subscribers(store, clock)
        self._leads = self._subscribers.dispatches = not shares
        self._deferred: list[Callable[[], Awaitable[None]]] = []

    async def lead(self) -> None:
        """Make deliveries from now on, also for those who subscribed in the process that leads."""
        self._leads = self._subscribers.dispatches = True
        while self._deferred:
            await self._deferred[0]()
            del self._deferred[0]

    def stages(self) -> Sequence[supervisor.ServiceLoop]:
        """The dispatcher's stage."""
        return (supervisor.ServiceLoop("tell", self._subscribers.work, self.journal.hint, vital=False),)

    def leading_stages(self) -> Sequence[supervisor.ServiceLoop]:
        """The stage of whoever follows memory: one process has it."""
        if self._news is None:
            return ()
        following = NewsPublisher(self._news, self._store, self._clock)
        return (supervisor.ServiceLoop("news", following.work, self._news.hint, poll_ms=_NEWS_MS, vital=False),)

    def listening(self) -> AbstractContextManager[asyncio.Event]:
        """An event that is set when the journal may have grown; listeners also poll."""
        return self._subscribers.happened.listening()

    def wake(self) -> None:
        self._subscribers.happened.notify_all()

    async def subscribe(
        self,
        name: str,
        topics: tuple[str, ...],
        tell: subscriptions.Tell,
        *,
        from_start: bool = False,
        terms: subscriptions.DeliveryTerms | None = None,
    ) -> None:
        """Deliver events of topics to a handler until the stop; after a restart, once it subscribes again.

        Raises InputError for an invalid topic. Every event is delivered at least once, in order for each subject;
        a failed delivery is retried later, and is dead after the last attempt.
        """
        topics = catalog.topics_of(topics)
        name = normalise(name)[:_NAME_CHARS_MAX]
        subscriber = subscriptions.Subscriber(name, tell, self._store, self._clock, self._ids, terms)
        await self._subscribers.add(subscriber, topics, from_start=from_start)

    async def subscribe_leader(
        self,
        name: str,
        topics: tuple[str, ...],
        tell: subscriptions.Tell,
        *,
        from_start: bool = False,
        terms: subscriptions.DeliveryTerms | None = None,
    ) -> None:
        """The same in one process of those that share the store: in this one once it leads. Raises InputError."""
        catalog.topics_of(topics)
        subscribe = partial(self.subscribe, name, topics, tell, from_start=from_start, terms=terms)
        if self._leads:
            await subscribe()
        else:
            self._deferred.append(subscribe)

    async def unsubscribe(self, name: str) -> bool:
        """Remove a subscriber and drop its pending deliveries; False when there is none of this name."""
        return await self._subscribers.remove(name)

    async def emit(self, topic: str, payload: Mapping[str, Json], correlation_id: str = "") -> None:
        """Publish an event; returns once it is on disk. Raises InputError with nothing published."""
        kept = normalise(catalog.checked(topic, payload))
        await self._store.apply(commits.Tell(topic, kept, self._clock.now_ms(), normalise(correlation_id)))

    async def wait_for(self, topic: str, correlation_id: str, timeout_s: float, after: int = 0) -> event.Event | None:
        """The first event of a topic about something, after another event; None when there is none in time."""
        wanted = topic, correlation_id, after
        return await wait_for(self.journal, self._clock, self._subscribers.happened, wanted, timeout_s * 1_000)

    async def decide(self, delivery_id: int, *, again: bool) -> bool:
        """A person's word on a dead delivery; False when it is none."""
        done = await self._store.apply(event.DecideDelivery(delivery_id, self._clock.now_ms(), again))
        self._subscribers.bell.notify_all()
        return done

    async def stop(self) -> None:
        await self._subscribers.stop()
