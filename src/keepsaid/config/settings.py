"""The tree of settings, with defaults and meanings; the reference page is made from it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, field_validator

from keepsaid.config import conversations, services
from keepsaid.config.section import ConfigSection
from keepsaid.domain import batch, message, retention, route
from keepsaid.domain.busy import BusyPolicy
from keepsaid.domain.memory import PinnedOrder
from keepsaid.domain.reply import GITHUB_ISSUE

ENV_PREFIX = "KEEPSAID_"


class OwnerIdentity(ConfigSection):
    """One identity of the owner."""

    channel: str
    """The channel it is on; not github, where everybody is external."""
    account: str = "default"
    """The login or bot there."""
    sender: str
    """The sender id, as the channel gives it."""

    @field_validator("channel")
    @classmethod
    def validate_channel(cls, channel: str) -> str:
        """Refuse a channel whose messages would never count as the owner's."""
        if channel == "github":
            raise ValueError(f"nobody can be the owner there: {_AT_GITHUB['trust']}")
        return channel


class ModelsConfig(ConfigSection):
    """Which model answers, and how long it may take."""

    chat: str = "auto"
    """auto, none, or provider/name with provider openai, anthropic or ollama."""
    base_url: str | None = None
    """Any OpenAI-compatible server; used for openai/... names."""
    api_key: SecretStr | None = None
    """The key; by default the provider's own environment variable is read."""
    timeout_s: float = Field(120.0, gt=0, le=3600)
    """Seconds one model call may take."""
    tokens_max: int = Field(4096, ge=16)
    """Tokens of one answer."""
    steps_max: int = Field(20, ge=1, le=200)
    """Model calls of one turn."""
    concurrent_max: int = Field(64, ge=1, le=1_000)
    """Calls of the model at the same time; more wait for a place."""
    outage_s: float = Field(900.0, ge=0)
    """How long an outage of the provider is waited out before a message is given up."""


class BufferConfig(ConfigSection):
    """The buffer and its window."""

    path: str = "buffer.db"
    """File of the operational store, in the data directory unless absolute."""
    window_ms: int = Field(500, ge=0, le=600_000)
    """Milliseconds a lane collects after its first message."""
    quiet_ms: int = Field(0, ge=0, le=600_000)
    """Milliseconds without a message that close the window."""
    max_wait_ms: int = Field(5_000, ge=0, le=3_600_000)
    """Milliseconds a window may stay open at most."""
    payload_bytes_max: int = Field(26_214_400, ge=1_024)
    """Bytes of a payload the door lets in."""
    text_chars_max: int = Field(1_000_000, ge=100)
    """Characters of text the door lets in."""
    retention_days: float = Field(7.0, gt=0, le=36_500)
    """Days after which messages that are done or dropped are pruned, with the steps of their turns, and lines of the
    journal that no subscriber needs any more."""
    trace_days: float = Field(30.0, gt=0, le=36_500)
    """Days after which their batches, turns, traces and settled replies are, never before the messages; and tasks, runs
    of schedules and findings that ended."""
    dedupe_retention_days: float | None = Field(None, ge=1, le=36_500)
    """Days after which a pruned message's key may be used for a new one; by default it is a duplicate for ever."""
    warn_count: int = Field(10_000, ge=1)
    """Messages waiting for an answer at which a warning is given."""
    warn_age_s: float = Field(600.0, gt=0)
    """Seconds the oldest of them waits at which a warning is given."""
    min_free_disk_mb: int = Field(64, ge=0)
    """Megabytes (of 1,000,000 bytes) of free disk below which no message is taken in; 0 takes all."""

    def terms(self) -> retention.RetentionTerms:
        """How long what is settled is kept."""
        day_ms, keys_days = retention.DAY_MS, self.dedupe_retention_days
        keys_ms = None if keys_days is None else int(keys_days * day_ms)
        return retention.RetentionTerms(int(self.retention_days * day_ms), int(self.trace_days * day_ms), keys_ms)


class ChannelConfig(ConfigSection):
    """One channel."""

    enabled: bool = True
    """Whether it is open."""
    priority: int = Field(10, ge=0, le=1_000)
    """10 people, 50 webhooks, 100 schedules; lower is served first."""
    window_ms: int | None = Field(None, ge=0, le=600_000)
    """Instead of buffer.window_ms."""
    quiet_ms: int | None = Field(None, ge=0, le=600_000)
    """Instead of buffer.quiet_ms."""
    max_wait_ms: int | None = Field(None, ge=0, le=3_600_000)
    """Instead of buffer.max_wait_ms."""
    trust: message.Trust = message.Trust.KNOWN
    """What its senders are trusted as: owner, known or external. GitHub's are external whatever it says."""
    unmatched: conversations.Unmatched | None = None
    """Instead of routes.default."""
    answer: Literal["always", "addressed"] | None = None
    """What of a group is answered. addressed: messages that name the agent (routes.names), answer it, or are commands;
    the rest is kept and remembered. Direct chats are always answered. By default addressed for channels called
    telegram, discord, nostr, matrix, slack, signal, whatsapp or irc, and always for others."""
    busy: BusyPolicy = BusyPolicy.QUEUE
    """What comes while its lane is being answered: queue (answered next), steer (shown to the running turn
    between its steps) or interrupt (the turn restarts with it)."""
    stale_after_s: float = Field(3_600.0, ge=0, le=31_536_000)
    """Seconds after which a message counts as late: its answer says so, to model and person. 0 for never."""
    secret: SecretStr | None = None
    """GitHub's webhook secret; without it the hook is closed. Other channels have no use for one."""
    dedupe_content_ms: int = Field(0, ge=0, le=31_536_000_000)
    """Milliseconds in which the same payload under another delivery id is a duplicate; 0 for never. A webhook's
    signature covers its body alone, so a replay may carry any delivery id and event name."""
    reply_hosts: tuple[str, ...] = ()
    """Hosts (or host:port) that replies may be pushed to. Replies to GitHub are comments: github.token."""
    on_unknown_delivery: Literal["resend", "dead_letter"] = "resend"
    """A pushed reply that may have arrived: resend sends it again, marked as a possible duplicate; dead_letter gives
    it up."""

    @field_validator("on_unknown_delivery", mode="before")
    @classmethod
    def value_of_today(cls, value: object) -> object:
        """Read a value of the release before."""
        return {"repeat": "resend", "give_up": "dead_letter"}.get(value, value) if isinstance(value, str) else value

    def answers_only_addressed(self, name: str) -> bool:
        """Whether what nobody addressed to the agent gets no answer in groups of the channel with this name."""
        return self.answer == "addressed" if self.answer is not None else name in _WITH_GROUPS

    def window(self, buffer: BufferConfig) -> batch.Window:
        """The channel's window."""
        window_ms = buffer.window_ms if self.window_ms is None else self.window_ms
        quiet_ms = buffer.quiet_ms if self.quiet_ms is None else self.quiet_ms
        wait_ms = buffer.max_wait_ms if self.max_wait_ms is None else self.max_wait_ms
        return batch.Window(window_ms, quiet_ms, wait_ms)


_WITH_GROUPS = frozenset(["telegram", "discord", "nostr", "matrix", "slack", "signal", "whatsapp", "irc"])
"""Media on which groups talk among themselves."""

CHANNELS: dict[str, dict[str, Any]] = {
    "terminal": {"priority": 10, "window_ms": 0, "trust": "owner"},
    "http": {"priority": 10, "trust": "known"},
    "library": {"priority": 10, "trust": "known"},
    "github": {
        "priority": 50,
        "window_ms": 3_000,
        "quiet_ms": 3_000,
        "max_wait_ms": 15_000,
        "trust": "external",
        "unmatched": "drop",
        "stale_after_s": 86_400.0,
        "dedupe_content_ms": 604_800_000,
    },
}
"""The built-in channels with what differs from the defaults."""

_ELSEWHERE = {"secret": "only channels.github has a use for it"}
_AT_GITHUB = {
    "trust": "what comes from there is external, whoever wrote it",
    "reply_hosts": "replies are sent as comments (github.token)",
    "on_unknown_delivery": "what may have been posted is looked for there",
}


_NOT_AT_GITHUB = route.Answerable("", "github.token is not set, so nothing can be sent there")
_AT_GITHUB_ONLY = route.Answerable(GITHUB_ISSUE, "only issues and pull requests can be answered")


def ignored(channel: str) -> Mapping[str, str]:
    """The settings that a channel has no use for, each with the reason."""
    return _AT_GITHUB if channel == "github" else _ELSEWHERE


def _with_builtin(value: object) -> object:
    if not isinstance(value, dict):
        return value
    merged = {name: dict(defaults) for name, defaults in CHANNELS.items()}
    for name, given in value.items():
        # A value that is not a mapping stays as it is, to be refused under its own key.
        merged[name] = {**merged.get(name, {}), **(given or {})} if isinstance(given, dict | None) else given
    return merged


class LanesConfig(ConfigSection):
    """Which strand of a conversation a message belongs to."""

    reply: Literal["join", "literal"] = "join"
    """join: a reply joins the lane of what it answers; literal: it is always in a lane of its own kind, named after
    what it answers. A topic goes before both."""
    infer: bool = False
    """on: in conversations of several people, what a message without topic and reply target answers is inferred: it
    joins that lane, or opens one where it answers nothing. off: such messages share the conversation's root lane."""
    cross: Literal["never", "explicit", "always"] = "explicit"
    """What was said in another lane of a conversation, and its summary: never comes to mind; explicit: when the model
    searches memory for it; always: before a turn as well. What a person said in their other direct chats comes to mind
    in each of them, unless this is never."""

    def rules(self) -> message.LaneRules:
        """The rules as the intake applies them."""
        return message.LaneRules(self.reply == "join", self.infer)


class MemoryConfig(ConfigSection):
    """Memory and what of it reaches a prompt."""

    path: str = "memory.db"
    """File of the memory store, in the data directory unless absolute."""
    injection: Literal["auto", "tool_only", "off"] = "auto"
    """auto: recall before every turn; tool_only: only when the model asks; off: neither."""
    items_max: int = Field(25, ge=0, le=200)
    """Memories injected into one turn."""
    tokens_max: int = Field(2_000, ge=0)
    """Estimated tokens they may cost."""
    recall_candidates: int = Field(20, ge=1, le=500)
    """Candidates each leg may bring."""
    deadline_ms: int = Field(150, ge=1, le=10_000)
    """Milliseconds recall may take before a turn."""
    pinned_kinds: tuple[
        Literal["identity", "goal", "decision", "todo", "preference", "fact", "event", "observation"], ...
    ] = ()
    """Kinds of memory that every turn is shown first, whatever it is about."""
    pinned_per_kind: int = Field(3, ge=0, le=50)
    """Memories of each pinned kind."""
    pinned_by: PinnedOrder = PinnedOrder.RECENT
    """recent: the newest of a pinned kind; importance: the most important."""
    history_blocks: int = Field(0, ge=0, le=20)
    """Blocks of earlier turns that a prompt shows again; what they show is not injected again. 0: a block is seen in
    its own turn only, and what was sent before stays byte for byte the same."""
    reinject_turns: int = Field(0, ge=0, le=1_000)
    """Turns of a lane for which a memory is not injected again. 0: whenever it is relevant and not to be seen."""
    embedder: str = Field(
        "auto", pattern=r"^(auto|none|minilm|multilingual|endpoint|hashed|ext/[a-z][a-z0-9_-]{0,39})$"
    )
    """What finds memories by meaning. auto: multilingual or minilm, whose files are there, else none; minilm:
    all-MiniLM-L6-v2 (English) and multilingual: multilingual-e5-small, both on this machine; endpoint: an
    OpenAI-compatible one; hashed: words alone, for tests; ext/ID: that of an extension."""
    models: str = "models"
    """Directory of local models, in the data directory unless absolute."""
    embedder_url: str = "https://api.openai.com/v1"
    """Where an endpoint is."""
    embedder_model: str = "text-embedding-3-small"
    """Its model."""
    embedder_key: SecretStr | None = None
    """Its key."""


class TurnsConfig(ConfigSection):
    """How turns run."""

    answered_by: Literal["keepsaid", "workers"] = "keepsaid"
    """workers: no turns run here; workers lease batches over HTTP (`POST /v1/batches:lease`) and answer them."""
    concurrent_max: int = Field(8, ge=1, le=1_000)
    """Turns at the same time."""
    slow_s: float = Field(2.0, gt=0)
    """A turn that takes longer gives its place to another and goes on beside it; after a tenth of it where an outage
    sent the turn back before."""
    open_max: int = Field(256, ge=1, le=10_000)
    """Turns open at the same time, slow ones counted."""
    prepare_s: float = Field(5.0, gt=0)
    """Seconds until a turn goes on without the parts of its prompt that are not ready: memory, skills, identity files,
    the bulletin, the session summary, side work, and what extensions add. `keepsaid why` names them."""
    shutdown_timeout_s: float = Field(3.0, ge=0)
    """Seconds running turns, and replies on their way, get to end at a graceful stop."""


class PriorityConfig(ConfigSection):
    """Who goes first. Lower is better: 10 people, 50 webhooks, 100 schedules."""

    age_s: dict[int, float] = Field(default_factory=lambda: {50: 120.0, 100: 600.0})
    """Seconds after which a priority up to the given one counts as 10, so that nothing waits for ever."""

    def ageing(self) -> batch.Ageing:
        """The rule as claims apply it."""
        return batch.Ageing(tuple((upto, int(seconds * 1000)) for upto, seconds in sorted(self.age_s.items())))


class RedactionConfig(ConfigSection):
    """What counts as secret, besides the configured secrets and the formats of known tokens."""

    patterns: tuple[str, ...] = ()
    """Regular expressions, as Python reads them: what one matches is kept out of memory, summaries and the log."""

    @field_validator("patterns")
    @classmethod
    def readable(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse an invalid pattern, and one that matches everything."""
        for pattern in patterns:
            try:
                matches_nothing = re.compile(pattern).search("") is not None
            except re.error as error:
                raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None
            if matches_nothing:
                raise ValueError(f"{pattern!r} matches an empty text, and so every place of any text")
        return patterns


class LogConfig(ConfigSection):
    """The log file."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """Least severity that is written."""
    text: bool = False
    """Whether message text may be logged."""


class Config(BaseModel):
    """The whole tree. Every key can be set by KEEPSAID_ and its path joined with `__`."""

    model_config = ConfigDict(frozen=True, extra="ignore", validate_default=True, defer_build=True)

    agent: str = "main"
    """Which folder under agents/ holds SOUL.md, IDENTITY.md and USER.md."""
    owner: tuple[OwnerIdentity, ...] = ()
    """Who owns this instance, besides the terminal."""
    models: ModelsConfig = ModelsConfig()
    store: services.StoreConfig = services.StoreConfig()
    buffer: BufferConfig = BufferConfig()
    routes: conversations.RoutesConfig = conversations.RoutesConfig()
    channels: Annotated[dict[str, ChannelConfig], BeforeValidator(_with_builtin)] = Field(
        default_factory=dict, validate_default=True
    )
    lanes: LanesConfig = LanesConfig()
    context: conversations.ContextConfig = conversations.ContextConfig()
    sessions: conversations.SessionsConfig = conversations.SessionsConfig()
    slots: conversations.SlotsConfig = conversations.SlotsConfig()
    compaction: conversations.CompactionConfig = conversations.CompactionConfig()
    collection: conversations.CollectionConfig = conversations.CollectionConfig()
    memory: MemoryConfig = MemoryConfig()
    bulletin: conversations.BulletinConfig = conversations.BulletinConfig()
    maintenance: conversations.MaintenanceConfig = conversations.MaintenanceConfig()
    schedules: services.SchedulesConfig = services.SchedulesConfig()
    turns: TurnsConfig = TurnsConfig()
    tasks: services.TasksConfig = services.TasksConfig()
    priority: PriorityConfig = PriorityConfig()
    server: services.ServerConfig = services.ServerConfig()
    runtime: services.RuntimeConfig = services.RuntimeConfig()
    replies: services.RepliesConfig = services.RepliesConfig()
    redaction: RedactionConfig = RedactionConfig()
    log: LogConfig = LogConfig()
    extensions: dict[str, services.ExtensionConfig] = Field(default_factory=dict)
    tools: services.ToolsConfig = services.ToolsConfig()
    github: services.GitHubConfig = services.GitHubConfig()

    def trust_of(self, origin: message.Origin) -> message.Trust:
        """What a sender is trusted as: the owner's identities, else what the channel says."""
        place = origin.channel, origin.account, origin.sender
        owned = any((one.channel, one.account, one.sender) == place for one in self.owner)
        return message.Trust.OWNER if owned else self.channels[origin.channel].trust

    def table(self) -> route.Routes:
        """The routing table."""
        unmatched = {name: route.Action(one.unmatched) for name, one in self.channels.items() if one.unmatched}
        rules = tuple(rule.rule() for rule in self.routes.rules)
        addressed = {name for name, one in self.channels.items() if one.answers_only_addressed(name)}
        addressing = route.Addressing(frozenset(addressed), self.routes.names)
        answerable = {"github": _AT_GITHUB_ONLY if self.github.token else _NOT_AT_GITHUB}
        return route.Routes(rules, route.Action(self.routes.default), unmatched, addressing, answerable)
