"""Extensions, as a port: the methods that are called of each, what they may provide, and what they are given."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from keepsaid.domain import event, message, scene, turn
from keepsaid.domain.line import Cursor
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import SendResult, StoredReply
from keepsaid.ports import memory_store, model, runtime
from keepsaid.ports.channel import Channel, Hook, InboundSink, Incoming
from keepsaid.values import frozen


@frozen
class ReadScope:
    """What an extension may read: `reads` of its manifest."""

    extension: str
    reads: tuple[str, ...] = ()


@frozen
class RecalledText:
    """A memory as an extension reads it; `said_at` is milliseconds UTC, `state` is `active` or `superseded`."""

    id: str
    kind: str
    text: str
    speaker: str
    said_at: int
    trust: message.Trust
    state: str


class ExtensionAccess(Protocol):
    """What an extension may ask of its agent, and what it may read."""

    async def invoke_agent(self, task: str, key: str = "", *, notify_user: bool = False) -> str:
        """Make a task for the extension's own agent; returns its id (`tsk_...`), the former one for a known `key`.

        The task counts as text from outside. With `notify_user` the owner is sent its result.
        """

    async def read(self, thing: int | str) -> message.Trusted:
        """The text of a message that its manifest lets it read (`reads`), or the result of a task of its own agent.

        `thing` is an id, as text or as the number in an event. The text has a `trust`. Raises ExtensionError.
        """

    async def recall(self, query: str, *, limit: int = 10, about: int | str | None = None) -> Sequence[RecalledText]:
        """The best memories for a query, at most 50: as the owner, or as an answer to the message `about` would recall.

        Raises ExtensionError for what its manifest does not let it read (`reads`), and InputError.
        """


class ExtensionContext(ExtensionAccess, Protocol):
    """One extension's view of the runtime."""

    @property
    def id(self) -> str:
        """Its id."""

    @property
    def config(self) -> Mapping[str, Any]:
        """Its settings, checked against its manifest."""

    @property
    def clock(self) -> runtime.Clock:
        """The time, and waiting."""

    @property
    def log(self) -> logging.Logger:
        """Its own logger: what it writes stands in the log of the runtime, without secrets."""

    @property
    def data(self) -> Path:
        """A folder of its own, made when first asked for."""

    @property
    def inbox(self) -> InboundSink:
        """Where its channel hands over what was said."""

    def secret(self, name: str) -> str:
        """A secret that its manifest names, from the environment. Raises ExtensionError for another, or one not set."""

    def get_extension(self, id: str) -> Any:  # noqa: A002 - the seed's word
        """An extension that its manifest depends on. Raises ExtensionError for any other, and one that is not up."""

    async def emit(self, topic: str, payload: Mapping[str, Json], correlation_id: str = "") -> None:
        """Publish an event, or receive a message (`user.message`); returns when it is on disk. Raises InputError."""

    async def subscribe(self, topic: str, tell: Callable[[event.Event], Awaitable[object]], name: str = "") -> None:
        """Receive events of a topic or pattern at least once, over restarts; `name` separates two on the same topic."""

    async def notify_user(self, text: str, about: str = "") -> None:
        """Send the owner a notice, once for each `about`; it is in the outbox when this returns."""


class Extension(Protocol):
    """Code from outside the core. Any method may be left out; whatever raises is quarantined, and the others go on."""

    async def initialize(self, context: ExtensionContext) -> None:
        """Be made ready: what it depends on is ready before. Nothing comes in yet."""

    async def start(self) -> None:
        """Begin, once all that it depends on has begun. Return when begun; the runtime answers only after that."""

    async def stop(self) -> None:
        """End, before anything ends that it depends on."""

    async def health(self) -> bool:
        """Whether it can do its work, asked every half minute; after three times without a yes it is quarantined."""

    async def reconfigure(self, config: Mapping[str, Any]) -> None:
        """Take over changed settings while it works, which its manifest allows; or raise, and go on as before.

        Without this method they need a restart. Where any extension refuses its settings, those that took theirs over
        are given the former ones again.
        """


class ExtensionRuntime(Protocol):
    """What can be done in an extension's name."""

    @property
    def clock(self) -> runtime.Clock:
        """The time."""

    async def emit(self, extension: str, topic: str, payload: Mapping[str, Json], correlation_id: str) -> None:
        """Publish an event, or receive a `user.message`. Raises InputError."""

    async def receive_all(self, channel: str, incoming: Sequence[Incoming]) -> None:
        """Take in messages that an extension's channel brought, in order; what cannot be taken is logged."""

    async def move_cursors(self, channel: str, cursors: Sequence[Cursor]) -> None:
        """Keep how far a channel has been read; what stands before is stored. Raises StoreError."""

    async def cursors(self, channel: str, account: str) -> Mapping[str, str]:
        """How far an account of a channel has been read, by name."""

    async def subscribe(self, name: str, topic: str, tell: Callable[[event.Event], Awaitable[object]]) -> None:
        """Deliver a topic to `name` from now on, and the events it missed before."""

    async def notify(self, extension: str, text: str, about: str) -> None:
        """Put a notice to the owner in the outbox, once for each `about`."""

    async def invoke_agent(self, extension: str, task: str, key: str, *, notify_user: bool) -> int:
        """Make a task for the agent of an extension, once for each `key` that is not empty; returns its id."""

    async def read(self, scope: ReadScope, thing: int | str) -> message.Trusted:
        """The text of a message or a task within a scope. Raises ExtensionError."""

    async def recall(self, scope: ReadScope, query: str, limit: int, about: int | str | None) -> Sequence[RecalledText]:
        """Memories within a scope, best first. Raises ExtensionError and InputError."""

    async def receive(self, channel: str, incoming: Incoming) -> bool:
        """Take in a message; False when it was there before."""

    async def emit_lifecycle_event(self, topic: str, payload: Mapping[str, Json], about: str) -> None:
        """Publish an event about the state of an extension, such as `extension.started`."""


@runtime_checkable
class AgentProvider(Protocol):
    """Does a task it is given in words. An `agent:` block in the manifest makes one without code."""

    async def invoke(self, task: str) -> str:
        """Do the task and return the result. If it raises, it is tried again, three times in all.

        A call that the end of the process interrupted is not repeated: its task waits for a person.
        """


@frozen
class DescribedAgent:
    """The agent that a manifest describes; without a `model` it uses the agent's own.

    `tools` returns those it has when a task begins. `names` are all that its manifest lists: those of the runtime among
    them it has too, and memory search as the owner if it `reads_owner`. One task may take `steps_max` model calls of
    `tokens_max` tokens each, and `time_s` seconds.
    """

    instructions: str
    tools: Callable[[], Sequence[model.Tool]]
    model: str = ""
    steps_max: int = 10
    tokens_max: int = 4_096
    time_s: float = 120.0
    names: frozenset[str] = frozenset()
    reads_owner: bool = False


Agent = AgentProvider | DescribedAgent
"""Who does the tasks of an extension: its own code, or what its manifest describes."""


@runtime_checkable
class ChannelProvider(Protocol):
    """Carries replies out on a channel that is named after the extension."""

    async def send(self, reply: StoredReply) -> SendResult | None:
        """Try once to deliver. None says it arrived; what raises may have arrived, and is sent again, marked."""


@runtime_checkable
class ListeningProvider(Protocol):
    """Hears what is said on its channel; without it, messages come in by `context.inbox`."""

    async def listen(self, inbox: InboundSink) -> None:
        """Hand over what comes, for as long as the runtime goes; when it ends or raises it is called again, later."""


@runtime_checkable
class ChannelsProvider(Protocol):
    """Brings whole channels, under names of their own: for media of several accounts, and for built-in ones."""

    def channels(self) -> Mapping[str, Channel]:
        """The channels by name."""


@runtime_checkable
class HookProvider(Protocol):
    """Brings hooks: what others call under `/hooks/NAME`."""

    def hooks(self) -> Mapping[str, Hook]:
        """The hooks by name."""


@runtime_checkable
class Contributor(Protocol):
    """Adds to the prompt of a turn (seed 002, context providers)."""

    async def contribute(self, claimed: turn.ClaimedBatch) -> tuple[scene.Contribution, ...]:
        """What it adds; each with its priority."""


@runtime_checkable
class EmbedderProvider(Protocol):
    """Brings an embedder."""

    def embedder(self) -> memory_store.Embedder:
        """The embedder, made ready in `start`."""


@runtime_checkable
class ExtractorProvider(Protocol):
    """Brings an extractor."""

    def extractor(self) -> model.Extractor:
        """The extractor, made ready in `start`."""


@runtime_checkable
class TranscriberProvider(Protocol):
    """Writes down what is said in voice notes."""

    def transcriber(self) -> model.Transcriber:
        """The transcriber, made ready in `start`."""


@runtime_checkable
class ScheduleProvider(Protocol):
    """Is called when a schedule of its manifest is due; a method marked `@schedule` is called instead of this."""

    async def execute(self, schedule: str) -> str | None:
        """Do what the schedule with this name is for; the owner receives what is returned."""


@runtime_checkable
class SetupProvider(Protocol):
    """Knows what it still needs. Until that is nothing it is not started, which is not a failure."""

    def needs(self) -> Sequence[str]:
        """What is still to be done, a sentence each; asked after `initialize`."""


@runtime_checkable
class StreamingProvider(Protocol):
    """Shows pieces of an answer as they come. Only the whole answer counts, which comes by `send`."""

    async def stream(self, lane: message.Lane, piece: str) -> None:
        """Show a piece; "" says that the answer is settled. What comes faster than it is shown is left out."""


@runtime_checkable
class ToolProvider(Protocol):
    """Makes the tools of one turn."""

    def tools(self, claimed: turn.ClaimedBatch) -> Sequence[model.Tool]:
        """The tools, each with its class, time limit and schema. Called at the beginning of every turn: be quick."""
