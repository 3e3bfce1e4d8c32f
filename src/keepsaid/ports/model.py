"""Models and tools, as a turn needs them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, Prompt, Record
from keepsaid.domain.turn import Answer, ToolClass

Delta = Callable[[str], None]
"""Takes a piece of the answer as it is written; what it gets is never stored."""


@dataclass(frozen=True, slots=True)
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
    serves: Trust | None = None
    output: Trust = Trust.EXTERNAL

    @property
    def needs(self) -> Trust:
        """The least trust of a turn that may call it without a person's approval."""
        if self.serves is not None:
            return self.serves
        return Trust.EXTERNAL if self.kind is ToolClass.PURE else Trust.OWNER


async def at_once() -> None:
    """There is nothing to wait for."""


@dataclass(frozen=True, slots=True)
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
        ...

    async def answer(self, request: ModelRequest, delta: Delta) -> Answer:
        """Make one call, in `limit_s` seconds at most; raises a ModelError that says whether trying again can help."""
        ...


@runtime_checkable
class Loadable(Protocol):
    """A model that has something to load before its first call."""

    async def load(self) -> None:
        """Load it; harmless when it is loaded. Raises a KeepsaidError where the first call would."""
        ...
