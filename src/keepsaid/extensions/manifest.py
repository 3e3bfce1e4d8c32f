"""Manifests: what an extension says of itself, before anything of it is run (seed 002)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from keepsaid.domain.timing import Cron, Every, Timing, checked
from keepsaid.errors import ExtensionError, InputError
from keepsaid.events.catalog import topics_of
from keepsaid.extensions.declare import API

FILE = "manifest.yaml"
Kind = Literal["channel", "streaming", "hook", "tool", "context", "schedule", "agent", "embedder", "extractor", "setup"]
"""What an extension may provide; each is a Protocol in `ports`."""

_CHARS_MAX = 256_000
_ID = r"^[a-z][a-z0-9_-]{0,39}$"
_ENTRYPOINT = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"
_VARIABLE = r"^[A-Z][A-Z0-9_]{0,99}$"
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
    """What an extension is told of, and who in it is: a method, the owner, or its agent."""

    topic: str
    handler: Literal["custom", "notify_user", "invoke_agent"] = "custom"
    method: str = "on_event"

    @field_validator("topic")
    @classmethod
    def subscribable(cls, topic: str) -> str:
        try:
            return topics_of((topic,))[0]
        except InputError as error:
            raise ValueError(error.what) from None


class EventsManifest(ManifestPart):
    """What it tells of, for people to read, and what it is told of."""

    publishes: tuple[str, ...] = ()
    subscribes: tuple[Subscription, ...] = ()


class ScheduleEntry(ManifestPart):
    """Something done by the clock: a cron line of five fields, or every so many seconds.

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
    """An agent without code: what it is told, and which tools it has, its own or those of what it depends on."""

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
            raise ValueError(f"nobody can be told of {custom[0]}: there is no entrypoint")
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
        raise ExtensionError(f"the manifest is wrong: {place + ': ' if place else ''}{what}") from None


def read_manifest(text: str) -> Mapping[str, Any]:
    """The keys of a manifest's YAML. Raises ExtensionError."""
    if len(text) > _CHARS_MAX:
        raise ExtensionError("the manifest is too long to be one")
    try:
        data = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - both are safe
    except (yaml.YAMLError, RecursionError, ValueError, LookupError, AttributeError) as error:
        raise ExtensionError(f"the manifest is no YAML ({type(error).__name__})") from None
    if not isinstance(data, dict):
        raise ExtensionError("the manifest must hold keys and values")
    return {str(key): value for key, value in data.items()}
