"""Models and tools, as ports: chat models, extractors, summarisers, tools, and the sources of a prompt."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol, runtime_checkable

from keepsaid.domain import context, learning, message, personality, session, trust
from keepsaid.domain.prompt import Json, Prompt, Record
from keepsaid.domain.turn import ModelAnswer, ToolClass, Usage
from keepsaid.values import frozen

Delta = Callable[[str], None]
"""Takes a piece of the answer as it is written; what it gets is never stored."""


@frozen
class Tool:
    """Something the model may call in this turn.

    `schema` is the JSON Schema of its arguments. `run` takes the parsed arguments and returns what the
    model is to read; it raises ToolError to tell the model what was wrong. A call may take `limit_s` seconds, and what
    it returns is cut after `chars_max` characters.

    `serves` is the least trust of a turn that may call it without a person's approval (`for: owner | known | anyone` in
    settings and manifests); None means anyone for a `pure` tool, and the owner for every other. `output` is the trust
    of what it returns where the text states none itself (`Trusted`): outside text, unless declared otherwise.
    """

    name: str
    description: str
    schema: Mapping[str, Json]
    run: Callable[[dict[str, Json]], Awaitable[str]]
    kind: ToolClass = ToolClass.PURE
    limit_s: float = 30.0
    chars_max: int = 20_000
    serves: message.Trust | None = None
    output: message.Trust = message.Trust.EXTERNAL

    @property
    def needs(self) -> message.Trust:
        """The least trust of a turn that may call it without a person's approval."""
        if self.serves is not None:
            return self.serves
        return message.Trust.EXTERNAL if self.kind is ToolClass.PURE else message.Trust.OWNER


async def at_once() -> None:
    """There is nothing to wait for."""


@frozen
class ModelRequest:
    """One model call: the prompt, what this turn has said and called so far, and the tools on offer.

    Nothing may leave the machine before `begun` is done: then it is on record that the call is made. Awaiting it again
    is harmless; it raises LeaseLost where somebody else makes the call.
    """

    prompt: Prompt
    exchange: tuple[Record, ...] = ()
    tools: Sequence[Tool] = field(default_factory=tuple)
    tokens_max: int = 4_096
    limit_s: float = 120.0
    begun: Callable[[], Awaitable[None]] = at_once


class Model(Protocol):
    """Something that answers."""

    @property
    def name(self) -> str:
        """What to call it: `openai/gpt-5`, or `none`."""

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Make one call, in `limit_s` seconds at most; raises a ModelError that says whether trying again can help."""


@frozen
class AgentPrompt:
    """What an answerer of a program's own is given for one batch of messages.

    `text` is what was said now, `recalled` what memory brought to mind for it, "" for nothing. `messages` are all parts
    after `system` in their order, each with its role (`user` or `assistant`); the last is `text`.
    """

    system: str
    messages: tuple[tuple[str, str], ...]
    recalled: str
    text: str


AgentFunction = Callable[[AgentPrompt], Awaitable[str] | str]
"""Answers for the agent: takes a prompt, returns the reply. What it raises is tried again, as a model's outage is."""


@runtime_checkable
class Loadable(Protocol):
    """A model that has something to load before its first call."""

    async def load(self) -> None:
        """Load it; harmless when it is loaded. Raises a KeepsaidError where the first call would."""


@frozen
class Extracted:
    """What was found, in how many calls of a model, at what cost, and by which."""

    statements: tuple[learning.Statement, ...]
    calls: int = 0
    usage: Usage = Usage()
    model: str = ""


class Extractor(Protocol):
    """Finds what people said to be so."""

    @property
    def name(self) -> str:
        """Which extractor this is, with its version: kept with every finding."""

    @property
    def thorough(self) -> bool:
        """Whether what it has read is done with; else it waits, marked, for one that is."""

    async def extract(self, passage: session.Passage) -> Extracted:
        """The statements in a passage, each naming records of it that people said. Raises a ModelError for none."""


@frozen
class Recording:
    """A voice note or another recording: its bytes, its media type, and its name."""

    content: bytes
    kind: str
    name: str


class Transcriber(Protocol):
    """Writes down what is said in recordings."""

    @property
    def name(self) -> str:
        """Which it is."""

    async def transcribe(self, recording: Recording) -> str:
        """The words, "" where nothing is said. Raises a ModelError for none."""


@frozen
class ToSummarise:
    """Texts of earlier summaries, the oldest first, and the records to be taken in with them.

    The summary is to cost `tokens_max` estimated tokens at most, and to be there within `limit_s` seconds.
    """

    earlier: tuple[str, ...]
    records: tuple[Record, ...]
    tokens_max: int = 1_000
    limit_s: float = 60.0


@frozen
class Summarised:
    """What a summariser made, who it was, and what it cost."""

    sections: context.Sections
    made: context.Made
    model: str = ""
    usage: Usage = Usage()


class Summariser(Protocol):
    """Writes summaries."""

    async def summarise(self, given: ToSummarise) -> Summarised:
        """One summary; raises a ModelError when there is none: no answer, a refusal, an empty or unreadable one."""


@frozen
class Served:
    """A tool that a server has, by its own name, and whether it may be used."""

    name: str
    description: str
    schema: Mapping[str, Json]
    kind: ToolClass
    allowed: bool

    @property
    def text(self) -> trust.Described:
        """All that a model would be shown of it."""
        return trust.Described(self.description, self.schema)


class Acceptance(Protocol):
    """Which texts of tools the owner accepted."""

    def stamp(self) -> object:
        """A value that differs after that changed."""

    def offered(self, server: str, served: Sequence[Served]) -> Sequence[Served]:
        """The tools that may be offered: allowed, and with a text that was accepted."""


class ToolSource(Protocol):
    """A server of tools. What its tools return is data from outside, whatever it says."""

    @property
    def name(self) -> str:
        """What its tools are called by, before their own names."""

    @property
    def trouble(self) -> str:
        """Why it has no tools at the moment; empty when it is there."""

    def tools(self) -> Sequence[Tool]:
        """The tools that may be used now, by name."""

    async def served(self) -> Sequence[Served]:
        """All it has, asked on a connection of its own; raises ToolError."""

    async def keep(self) -> int | None:
        """Stay connected until it is lost; returns when to try again (ms UTC). What the server does never raises."""


class AgentIdentity(Protocol):
    """Who the agent is: the owner's own words."""

    async def read(self) -> str:
        """The identity files as they stand now, joined; empty when there are none."""


class SkillShelf(Protocol):
    """What the agent can look up how to do."""

    async def read(self) -> personality.Skills:
        """The skills as they stand now, and those that were left out."""


class Capabilities(Protocol):
    """What side work can be started for."""

    def lines(self) -> tuple[str, ...]:
        """One line each, in a fixed order; empty when there are no workers."""


class SideWork(Protocol):
    """What the agent itself has started beside its turns; never what a rule spawned."""

    async def lines(self, lane: message.Lane) -> tuple[str, ...]:
        """One line for each piece under way in a lane, newest first."""
