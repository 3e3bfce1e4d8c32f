"""Manifests: what an extension declares of itself (seed 002); decorators that declare one in a single file."""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, Any, Literal, Required, TypedDict, TypeVar, Unpack, get_type_hints, overload

import pydantic
import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.errors import PydanticUserError

from keepsaid.domain import message, turn
from keepsaid.domain.prompt import Json
from keepsaid.domain.timing import Cron, Every, Timing, checked
from keepsaid.errors import ExtensionError, InputError, ToolError
from keepsaid.events.catalog import topics_of
from keepsaid.ports.model import Tool
from keepsaid.text.normal import cut
from keepsaid.values import frozen

API = 1
"""The version of what extensions are written against."""

C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])
MARK = "__keepsaid__"
"""Where a method carries its mark."""


@frozen
class ToolMark:
    """A method that the model may call: what calling again would do, its seconds, and the characters it may return.

    `serves` is the least trust of a turn that may call it without the owner's approval, `output` the trust of what it
    returns.
    """

    kind: turn.ToolClass = turn.ToolClass.UNSAFE
    limit_s: float = 30.0
    chars_max: int = 20_000
    name: str = ""
    serves: message.Trust | None = None
    output: message.Trust = message.Trust.EXTERNAL


@frozen
class ContextMark:
    """A method that adds to prompts, text of a `trust`; a lower priority comes earlier, memory stands at 100."""

    priority: int = 50
    trust: message.Trust = message.Trust.EXTERNAL


class ToolTerms(TypedDict, total=False):
    """How a tool is declared; see `tool`."""

    kind: str
    limit_s: float
    chars_max: int
    name: str
    serves: str
    output: str


class Declared(TypedDict, total=False):
    """What a class is declared with.

    `config` says by key what may be set (`type`, `default`, `required`, `description` ...), `secrets` by name which
    environment variable holds one, `channel` how its channel is treated (`priority`, `trust`, `window_ms` ...), `reads`
    what it may read: `own` (its channel), `owner`, or `CHANNEL:CONVERSATION`.
    """

    id: Required[str]
    version: str
    api: int
    name: str
    depends_on: Sequence[str]
    config: Mapping[str, Mapping[str, Any]]
    secrets: Mapping[str, str]
    channel: Mapping[str, Any]
    reads: Sequence[str]


def extension(**keys: Unpack[Declared]) -> Callable[[C], C]:
    """Make a class an extension. Every argument is a literal: it is read before anything of the file is run."""

    def marked(one: C) -> C:
        setattr(one, MARK, dict(keys))
        return one

    return marked


@overload
def tool(method: F) -> F: ...


@overload
def tool(**terms: Unpack[ToolTerms]) -> Callable[[F], F]: ...


def tool(method: F | None = None, **terms: Unpack[ToolTerms]) -> F | Callable[[F], F]:
    """Offer a method to the model: its name, its docstring, and a schema from its parameters and their types.

    `kind` says what calling it again would do: `pure`, `idempotent`, `checkable` or, by default, `unsafe`: it is never
    repeated when the result of the first call is unknown. `serves` says who may call it without the owner's
    approval: `owner`, `known` or `anyone`; by default `anyone` for a `pure` tool and the `owner` for every other. A
    turn has the least trust of all that its prompt shows. `output` is the trust of what the method returns: `external`
    by default, `known`, or `owner` for what holds nobody else's words. `limit_s` is the seconds a call may take (30),
    `chars_max` the characters it may return (20,000), `name` what the model calls it.
    """
    whom, output = terms.get("serves"), message.Trust(terms.get("output", message.Trust.EXTERNAL))
    kind, limit_s = _kind_of(terms.get("kind", turn.ToolClass.UNSAFE)), terms.get("limit_s", 30.0)
    serves = None if whom is None else message.SERVES[whom]
    mark = ToolMark(kind, limit_s, terms.get("chars_max", 20_000), terms.get("name", ""), serves, output)

    def marked(one: F) -> F:
        setattr(one, MARK, mark)
        return one

    return marked if method is None else marked(method)


def _kind_of(kind: str) -> turn.ToolClass:
    if kind not in [*turn.ToolClass]:
        raise ValueError(f"kind must be one of {', '.join(turn.ToolClass)}, not {kind!r}")
    return turn.ToolClass(kind)


def context(*, priority: int = 50, trust: str = "external") -> Callable[[F], F]:
    """Let a method add to prompts: it is given the batch that is answered, and returns a text, or None for nothing.

    `trust` is that of the text: `external`, unless it holds nobody else's words than the `owner`'s, or those of people
    who are `known`. A turn whose prompt shows external text may not call tools that serve only the owner.
    """
    mark = ContextMark(priority, message.Trust(trust))

    def marked(one: F) -> F:
        setattr(one, MARK, mark)
        return one

    return marked


def on(topic: str) -> Callable[[F], F]:  # noqa: ARG001 - read off the source
    """Call a method with every event of a topic, or of a pattern such as `memory.*`, at least once."""
    return lambda one: one


def schedule(*, name: str = "", cron: str = "", every_s: float = 0.0) -> Callable[[F], F]:  # noqa: ARG001 - as above
    """Run a method by a cron line of five fields, or at an interval in seconds; the owner receives what it returns."""
    return lambda one: one


_LIMIT_S_MAX = 600.0
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def tool_of(method: Callable[..., Awaitable[Any]], mark: ToolMark) -> Tool:
    """The tool that a marked method is. Raises ExtensionError where the model could not know how to call it."""
    name = mark.name or method.__name__
    if not inspect.iscoroutinefunction(method):
        raise ExtensionError(f"the tool {name} must be an async method")
    if not (described := inspect.cleandoc(method.__doc__ or "")):
        raise ExtensionError(f"the tool {name} has no docstring: the model would not know what it does")
    if not 0 < mark.limit_s <= _LIMIT_S_MAX or mark.chars_max < 1:
        raise ExtensionError(f"the tool {name} needs a time limit of up to {_LIMIT_S_MAX:g} s and an output limit")
    arguments = _arguments(method, name)

    async def run(given: dict[str, Json]) -> str:
        try:
            read = arguments.model_validate(given)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            raise ToolError(f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None
        said = await method(**{key: getattr(read, key) for key in arguments.model_fields})
        return cut(said if isinstance(said, str) else json.dumps(said, ensure_ascii=False, default=str), mark.chars_max)

    schema = arguments.model_json_schema()
    schema.pop("title", None)
    return Tool(name, described, schema, run, mark.kind, mark.limit_s, serves=mark.serves, output=mark.output)


def _arguments(method: Callable[..., Any], name: str) -> Any:
    try:
        hints = get_type_hints(method)
        fields: dict[str, Any] = {}
        for one in inspect.signature(method).parameters.values():
            if one.kind not in _NAMED:
                raise ExtensionError(f"the tool {name} takes *{one.name}, which has no schema")
            default = ... if one.default is inspect.Parameter.empty else one.default
            fields[one.name] = (hints.get(one.name, str), default)
        return pydantic.create_model(f"{name}_arguments", __config__=ConfigDict(extra="forbid"), **fields)
    except (NameError, TypeError, ValueError, PydanticUserError) as error:
        raise ExtensionError(f"the tool {name} has parameters without a schema ({type(error).__name__})") from error


FILE = "manifest.yaml"
Kind = Literal[
    "channel",
    "streaming",
    "hook",
    "tool",
    "context",
    "schedule",
    "agent",
    "embedder",
    "extractor",
    "transcriber",
    "setup",
]
"""What an extension may provide; each is a Protocol in `ports`."""

_CHARS_MAX = 256_000
_ID = r"^[a-z][a-z0-9_-]{0,39}$"
_ENTRYPOINT = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
_VARIABLE = r"^[A-Z][A-Z0-9_]{0,99}$"
_READS = r"^(own|owner|[a-z][a-z0-9_-]*:.+)$"
_OURS = "Value error, "


def _named(value: object) -> object:
    """A list of variables names each secret after its variable."""
    return {str(one).lower(): one for one in value} if isinstance(value, list | tuple) else value


class ManifestPart(BaseModel):
    """A part of a manifest; keys nobody knows are refused, since they would do nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Setting(ManifestPart):
    """One setting an extension has, in the words of JSON Schema."""

    type: Literal["string", "integer", "number", "boolean", "array", "object"] = "string"
    description: str = ""
    default: Any = None
    required: bool = False
    enum: tuple[Any, ...] = ()
    minimum: float | None = None
    maximum: float | None = None


class Subscription(ManifestPart):
    """A subscription of an extension, and its handler: a method, a notice to the owner, or its agent.

    The `result` of the agent is kept with its task, or also sent to the owner.
    """

    topic: str
    handler: Literal["custom", "notify_user", "invoke_agent"] = "custom"
    method: str = "on_event"
    result: Literal["keep", "notify_user"] = "keep"

    @field_validator("topic")
    @classmethod
    def subscribable(cls, topic: str) -> str:
        try:
            return topics_of((topic,))[0]
        except InputError as error:
            raise ValueError(error.what) from None


class EventsManifest(ManifestPart):
    """The topics it publishes, for people to read, and its subscriptions."""

    publishes: tuple[str, ...] = ()
    subscribes: tuple[Subscription, ...] = ()


class ScheduleEntry(ManifestPart):
    """A scheduled action: a cron line of five fields, or an interval in seconds.

    A method does it, or, with a `task`, the agent.
    """

    name: str = Field(pattern=_ID)
    cron: str = ""
    every_s: float = Field(0.0, ge=0)
    task: str = ""
    method: str = "execute"

    @model_validator(mode="after")
    def one_of_both(self) -> ScheduleEntry:
        if bool(self.cron) == bool(self.every_s):
            raise ValueError("a schedule has either cron or every_s")
        checked(self.timing("UTC"))
        return self

    def timing(self, zone: str) -> Timing:
        """When it comes; a cron line goes by the clock of a time zone."""
        return Cron(self.cron, zone) if self.cron else Every(int(self.every_s * 1_000))


class AgentLimits(ManifestPart):
    """How far an agent may go."""

    steps_max: int = Field(10, ge=1, le=200)
    tokens_max: int = Field(4_096, ge=16)
    time_s: float = Field(120.0, gt=0, le=3_600)


class AgentManifest(ManifestPart):
    """An agent without code: its instructions, and its tools."""

    instructions: str = Field(min_length=1)
    model: str = ""
    tools: tuple[str, ...] = ()
    limits: AgentLimits = AgentLimits()


class Manifest(ManifestPart):
    """What an extension is, needs and provides."""

    id: str = Field(pattern=_ID)
    name: str = ""
    version: str = "0"
    description: str = ""
    api: int
    entrypoint: str | None = Field(None, pattern=_ENTRYPOINT)
    depends_on: tuple[str, ...] = ()
    provides: tuple[Kind, ...] = ()
    config: Mapping[str, Setting] = Field(default_factory=dict)
    secrets: Annotated[Mapping[str, Annotated[str, Field(pattern=_VARIABLE)]], BeforeValidator(_named)] = Field(
        default_factory=dict
    )
    channel: Mapping[str, Any] | None = None
    reads: tuple[Annotated[str, Field(pattern=_READS)], ...] = ()
    events: EventsManifest = EventsManifest()
    schedules: tuple[ScheduleEntry, ...] = ()
    agent: AgentManifest | None = None

    @field_validator("api")
    @classmethod
    def known(cls, api: int) -> int:
        if api != API:
            raise ValueError(f"it is written for version {api} of this interface; this keepsaid has {API}")
        return api

    @model_validator(mode="after")
    def whole(self) -> Manifest:
        """Refuse what names nobody who could do it."""
        if self.entrypoint is None and self.agent is None:
            raise ValueError("it has neither an entrypoint nor an agent")
        custom = [one.topic for one in self.events.subscribes if one.handler == "custom"]
        if custom and self.entrypoint is None:
            raise ValueError(f"{custom[0]} has no handler: there is no entrypoint")
        if self.id in self.depends_on:
            raise ValueError("it depends on itself")
        names = [one.name for one in self.schedules]
        if len(set(names)) < len(names):
            raise ValueError("two schedules have the same name")
        return self

    @property
    def title(self) -> str:
        return self.name or self.id


def manifest_of(data: Mapping[str, Any]) -> Manifest:
    """A manifest from its keys. Raises ExtensionError naming the key that is wrong."""
    try:
        return Manifest.model_validate(dict(data))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        what = first["msg"].removeprefix(_OURS)
        if first["type"] == "extra_forbidden":
            near = get_close_matches(str(first["loc"][-1]), Manifest.model_fields, 1)
            what = f"there is no such key; did you mean {near[0]}?" if near else "there is no such key"
        raise ExtensionError(f"the manifest is wrong: {place + ': ' if place else ''}{what}") from None


def read_manifest(text: str) -> Mapping[str, Any]:
    """The keys of a manifest's YAML. Raises ExtensionError."""
    if len(text) > _CHARS_MAX:
        raise ExtensionError("the manifest is too long to be one")
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        raise ExtensionError(f"the manifest is not YAML ({type(error).__name__})") from None
    if not isinstance(data, dict):
        raise ExtensionError("the manifest must hold keys and values")
    return {str(key): value for key, value in data.items()}
