"""The tree of settings, with defaults and meanings; the reference page is made from it."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationInfo, field_validator

from keepsaid.config import conversations, messengers, services
from keepsaid.config.channels import (
    AT_GITHUB_ONLY,
    CHANNELS,
    LISTENING,
    NOT_AT_GITHUB,
    ChannelConfig,
    OwnerIdentity,
    usual_access,
    with_builtin,
)
from keepsaid.config.keys import KeyConfig, KeyName, check_keys
from keepsaid.config.openai import OpenAIConfig
from keepsaid.config.section import ConfigSection
from keepsaid.domain import batch, message, retention, route
from keepsaid.domain.memory import PinnedOrder
from keepsaid.domain.pairing import AccessRule
from keepsaid.domain.principal import Principal

_WITHOUT_KEYS = frozenset([*CHANNELS, *LISTENING]) - {"library"}
"""Built-in channels by which no key speaks."""

ENV_PREFIX = "KEEPSAID_"


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
    pictures: bool = True
    """Whether the model is shown pictures that came with messages. One that refuses them is asked without."""


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

    def window(self) -> batch.Window:
        """The window of a channel that sets none."""
        return batch.Window(self.window_ms, self.quiet_ms, self.max_wait_ms)

    def terms(self) -> retention.RetentionTerms:
        """How long what is settled is kept."""
        day_ms, keys_days = retention.DAY_MS, self.dedupe_retention_days
        keys_ms = None if keys_days is None else int(keys_days * day_ms)
        return retention.RetentionTerms(int(self.retention_days * day_ms), int(self.trace_days * day_ms), keys_ms)


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
    channels: Annotated[dict[str, ChannelConfig], BeforeValidator(with_builtin)] = Field(
        default_factory=dict, validate_default=True
    )
    keys: dict[KeyName, KeyConfig] = Field(default_factory=dict)
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
    openai: OpenAIConfig = OpenAIConfig()
    runtime: services.RuntimeConfig = services.RuntimeConfig()
    telemetry: services.TelemetryConfig = services.TelemetryConfig()
    replies: services.RepliesConfig = services.RepliesConfig()
    files: services.FilesConfig = services.FilesConfig()
    redaction: RedactionConfig = RedactionConfig()
    log: LogConfig = LogConfig()
    extensions: dict[str, services.ExtensionConfig] = Field(default_factory=dict)
    tools: services.ToolsConfig = services.ToolsConfig()
    github: services.GitHubConfig = services.GitHubConfig()
    telegram: messengers.TelegramConfig = messengers.TelegramConfig()
    discord: messengers.DiscordConfig = messengers.DiscordConfig()
    slack: messengers.SlackConfig = messengers.SlackConfig()
    nostr: messengers.NostrConfig = messengers.NostrConfig()
    matrix: messengers.MatrixConfig = messengers.MatrixConfig()
    email: messengers.EmailConfig = messengers.EmailConfig()

    @field_validator("keys")
    @classmethod
    def validate_keys(cls, keys: dict[str, KeyConfig], info: ValidationInfo) -> dict[str, KeyConfig]:
        """Refuse keys between which it is unclear who calls, and one of a channel that does not exist."""
        return check_keys(keys, info.data.get("channels", {}), _WITHOUT_KEYS)

    @field_validator("openai")
    @classmethod
    def validate_openai(cls, openai: OpenAIConfig, info: ValidationInfo) -> OpenAIConfig:
        """Refuse a proxy for a key that does not exist."""
        keys = info.data.get("keys", {})
        for name, proxy in openai.proxies.items():
            if unknown := [key for key in proxy.keys if key not in keys]:
                raise ValueError(f"proxies.{name}.keys: there is no key {unknown[0]!r}")
        return openai

    def principals(self) -> dict[str, Principal]:
        """Who calls with each key, by its token."""
        return {one.token.get_secret_value(): one.principal(name) for name, one in self.keys.items()}

    @property
    def accounts(self) -> frozenset[str]:
        """The built-in channels that have every token they need to listen and to answer."""
        ready = {
            "telegram": self.telegram.token,
            "discord": self.discord.token,
            "slack": self.slack.listens,
            "nostr": self.nostr.secret_key is not None and self.nostr.relays,
            "matrix": self.matrix.token,
            "email": self.email.listens,
        }
        return frozenset(name for name, has_all in ready.items() if has_all)

    @property
    def listening(self) -> tuple[str, ...]:
        """The built-in channels that listen by themselves: those with a token that are not switched off."""
        off = {name for name, one in self.channels.items() if not one.enabled}
        return tuple(name for name in LISTENING if name in self.accounts and name not in off)

    def access_rules(self) -> dict[str, AccessRule]:
        """Who may talk, by channel: of those that not everybody may use."""
        named = {**{name: ChannelConfig() for name in self.listening}, **self.channels}
        rules = ((name, one.access_rule(usual_access(name, self.listening))) for name, one in named.items())
        return {name: rule for name, rule in rules if rule is not None}

    def takes_bots(self, channel: str) -> bool:
        """Whether a channel takes in messages of other bots."""
        settings = self.channels.get(channel)
        return settings is not None and settings.bots

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
        with_bots = (name for name in self.channels if self.takes_bots(name))
        open_to_some = frozenset([*self.access_rules(), *self.listening, *with_bots])
        answerable = {"github": AT_GITHUB_ONLY if self.github.token else NOT_AT_GITHUB}
        heeded = {name: one.heeds_edits(name) for name, one in self.channels.items()}
        edits = {name: heed for name, heed in heeded.items() if heed is not route.Edits.ANSWER}
        default = route.Action(self.routes.default)
        return route.Routes(rules, default, unmatched, addressing, answerable, open_to_some, edits)
