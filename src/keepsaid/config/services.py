"""Settings of what runs beside conversations: schedules, tasks, tools, extensions, and the HTTP server."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal, Self

from pydantic import Field, SecretStr, StringConstraints, field_validator, model_validator

from keepsaid.config.section import ConfigSection
from keepsaid.domain import message, reply, turn
from keepsaid.domain.allowed_hosts import parse_allowed_host
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.timing import Cron, Every, QuietHours, Timing, checked, known_zone, once, quiet_of
from keepsaid.text.normal import is_plain_url


def _plain(url: SecretStr | None) -> SecretStr | None:
    """Refuse a URL in which it is unclear where the password ends: a part of it would be shown."""
    if url is not None and not is_plain_url(url.get_secret_value()):
        raise ValueError("in its user name and password, @ / ? # and % are written %40 %2F %3F %23 and %25")
    return url


class StoreConfig(ConfigSection):
    """Where both stores are."""

    url: SecretStr | None = None
    """postgresql://user:password@host/database holds both stores in PostgreSQL, in the schema keepsaid, in place of the
    files that buffer.path and memory.path name. Any number of processes work with them."""

    redis: SecretStr | None = None
    """redis://host carries wake-ups between the processes that share a database. Whatever it does, no result depends on
    it; without an answer they go by the database."""

    @field_validator("redis")
    @classmethod
    def validate_redis(cls, url: SecretStr | None) -> SecretStr | None:
        """Refuse what is not the URL of a Redis."""
        if url is not None and not url.get_secret_value().startswith(("redis://", "rediss://", "unix://")):
            raise ValueError("it must begin with redis://, rediss:// or unix://")
        return _plain(url)

    @field_validator("url")
    @classmethod
    def validate_url(cls, url: SecretStr | None) -> SecretStr | None:
        """Refuse the URL of another kind of database."""
        if url is not None and not url.get_secret_value().startswith(("postgresql://", "postgres://")):
            raise ValueError("it must begin with postgresql://, or be left out for stores in files")
        return _plain(url)


class TargetConfig(ConfigSection):
    """The conversation that the messages of a schedule go to."""

    channel: str = "terminal"
    """The channel."""
    account: str = "default"
    """The login or bot there."""
    conversation: str = "terminal"
    """The conversation there, as the channel calls it."""
    topic: str | None = None
    """Its topic, if it has some."""
    direct: bool = False
    """Whether one person alone is there with the agent, as always at the terminal: a prompt is answered with the memory
    of that person."""

    def target(self) -> Target:
        """The target of the output."""
        key = message.lane_key(self.conversation, self.topic)
        lane = message.Lane(self.channel, self.account, self.conversation, key)
        return Target(lane, direct=self.direct or self.channel == message.TERMINAL)


class FilesConfig(ConfigSection):
    """What comes with messages: pictures, voice notes, documents."""

    fetch: bool = True
    """Whether it is downloaded from its channel once the message is stored and routed, and kept as long as the message
    (`buffer.retention_days`). Without, it is named alone."""
    bytes_max: int = Field(20_000_000, ge=1_000, le=100_000_000)
    """Bytes of the largest file that is fetched."""
    timeout_s: float = Field(60.0, gt=0, le=600)
    """Seconds one download may take."""
    wait_s: float = Field(10.0, ge=0, le=300)
    """Seconds a turn waits for what came with its messages; then it goes on with their names."""
    transcriber: str = Field("auto", pattern=r"^(auto|none|endpoint|ext/[a-z][a-z0-9_-]{0,39})$")
    """Who writes down what is said in voice notes. auto: the first extension that can; endpoint: an OpenAI-compatible
    one; ext/ID: that extension; none: nobody."""
    transcriber_url: str = "https://api.openai.com/v1"
    """Where an endpoint is."""
    transcriber_model: str = "whisper-1"
    """Its model."""
    transcriber_key: SecretStr | None = None
    """Its key."""
    transcriber_timeout_s: float = Field(60.0, gt=0, le=600)
    """Seconds that writing down one recording may take."""


class RepliesConfig(ConfigSection):
    """Replies on their way out."""

    dead_after_s: float = Field(86_400.0, ge=60)
    """Seconds after its first attempt at which a reply that could not be sent is given up."""

    def limits(self, without_resend: frozenset[str]) -> reply.SendLimits:
        """When a reply is given up; the channels given repeat nothing that may have arrived."""
        return reply.SendLimits(without_resend, int(self.dead_after_s * 1_000))


class ScheduleConfig(ConfigSection):
    """One schedule: when it comes (cron, every_s or at), and what is done (say, ask, run or task)."""

    cron: str | None = None
    """Five fields: minute, hour, day of the month, month, day of the week."""
    every_s: float | None = Field(None, ge=1, le=366 * 86_400)
    """Seconds between two times."""
    at: str | None = None
    """One time, such as 2026-05-04T18:00, UTC unless it says otherwise."""
    timezone: str | None = None
    """Of the cron expression; by default schedules.timezone."""
    say: str | None = None
    """A text that is posted as it is."""
    ask: str | None = None
    """What the agent is asked; its answer is posted."""
    run: str | None = None
    """Something that has a name here and is run."""
    task: str | None = None
    """A task for a worker; the owner receives the result."""
    to: TargetConfig = Field(default_factory=TargetConfig)
    """The only target of the text or answer."""
    urgent: bool = False
    """Whether it is said in quiet hours too."""

    @model_validator(mode="after")
    def whole(self) -> Self:
        """Refuse one that does not say when, or what, or says it twice."""
        if sum(one is not None for one in (self.cron, self.every_s, self.at)) != 1:
            raise ValueError("say when it comes by one of cron, every_s and at")
        if len(self._what()) != 1:
            raise ValueError("say what is done by one of say, ask, run and task")
        if not "".join(self._what().values()).strip():
            raise ValueError("what is said, asked, run or to be done is empty")
        checked(self.timing("UTC"))
        return self

    def _what(self) -> dict[What, str]:
        said = {What.SAY: self.say, What.ASK: self.ask, What.RUN: self.run, What.TASK: self.task}
        return {what: text for what, text in said.items() if text is not None}

    def timing(self, zone: str) -> Timing:
        """When it comes."""
        if self.cron is not None:
            return Cron(self.cron, self.timezone or zone)
        return Every(int(self.every_s * 1_000)) if self.every_s is not None else once(self.at or "")

    def schedule(self, number: int, name: str, zone: str) -> NewSchedule:
        """The schedule, under an id."""
        [(what, text)] = self._what().items()
        target = self.to.target() if what in (What.SAY, What.ASK) else None
        return NewSchedule(number, "config", name, self.timing(zone), what, text, target, urgent=self.urgent)


class SchedulesConfig(ConfigSection):
    """What comes at a time."""

    enabled: bool = True
    """Whether anything comes at all."""
    timezone: str = "UTC"
    """The time zone of cron expressions that name none, and of quiet hours."""
    quiet: str = ""
    """Hours in which nothing is said that can wait, such as 22:00-07:00; empty for none."""
    concurrent_max: int = Field(4, ge=1, le=64)
    """The most jobs that run concurrently."""
    agent_max: int = Field(20, ge=0, le=1_000)
    """The most schedules of the agent in one conversation; 0 removes its schedule tools."""
    agent_min_interval_s: float = Field(300.0, ge=1)
    """Seconds at least between two times of a schedule that the agent adds."""
    named: dict[str, ScheduleConfig] = Field(default_factory=dict)
    """Schedules by name."""

    @field_validator("timezone")
    @classmethod
    def known(cls, timezone: str) -> str:
        """Refuse a zone that nobody knows."""
        return known_zone(timezone).key

    @model_validator(mode="after")
    def readable(self) -> Self:
        """Refuse invalid hours."""
        self.quiet_hours()
        return self

    def quiet_hours(self) -> QuietHours | None:
        """The hours in which nothing is said that can wait."""
        return quiet_of(self.quiet, self.timezone)


class TasksConfig(ConfigSection):
    """How tasks run."""

    concurrent_max: int = Field(5, ge=1, le=100)
    """Tasks at the same time, beside the turns."""
    branches_max: int = Field(5, ge=1, le=100)
    """Branches at the same time, beside the turns and the tasks of workers."""
    timeout_s: int = Field(1_800, ge=1)
    """Seconds a task may take, where its rule does not say."""
    retriggers_max: int = Field(3, ge=0, le=100)
    """How often results of tasks are delivered to a lane between two messages of a person; 0 for never."""
    steps_max: int = Field(50, ge=1, le=1_000)
    """Calls of the model in one task."""
    tokens_in_max: int = Field(1_000_000, ge=1)
    """Tokens that one task may read in all its calls."""


Serves = Literal["owner", "known", "anyone"]
ServerName = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*(-[a-z0-9]+)*$", max_length=24)]


class McpServerConfig(ConfigSection):
    """One server that speaks the Model Context Protocol. Its tools are called NAME__TOOL."""

    command: tuple[str, ...] = ()
    """What starts it, with its arguments, where it speaks over its standard streams."""
    url: str = ""
    """Where it listens, where it speaks streamable HTTP."""
    env: dict[str, SecretStr] = Field(default_factory=dict)
    """Variables it is started with; of ours it gets PATH, HOME and the like alone."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers of every request, such as Authorization."""
    allow: tuple[str, ...] = ()
    """Which of its tools may be used, by their own names or patterns with *. None, unless they are named here."""
    kind: turn.ToolClass = turn.ToolClass.UNSAFE
    """What may be done with a call that started and has no result: pure and idempotent ones are made again, an unsafe
    one waits for your word. What the server says of its tools does not count."""
    kinds: dict[str, turn.ToolClass] = Field(default_factory=dict)
    """Other classes, by tool or pattern; the first that matches."""
    serves: Serves | None = None
    """Whom its tools serve without your approval: owner, known or anyone. A turn that shows text of less trust is
    refused, and you are asked. Without it pure tools serve anyone and all others you alone."""
    serves_each: dict[str, Serves] = Field(default_factory=dict)
    """The same by tool or pattern; the first that matches."""
    output: message.Trust = message.Trust.EXTERNAL
    """How far what its tools return is trusted: external, known or owner. A turn that was shown external text may call
    no tool that serves only you."""
    limit_s: float = Field(30.0, gt=0, le=3_600)
    """Seconds a call may take."""
    chars_max: int = Field(20_000, ge=100, le=1_000_000)
    """Characters of a result that the model is shown."""

    @model_validator(mode="after")
    def one_way(self) -> Self:
        """Refuse a server that is reached in no way, or in two."""
        if bool(self.command) == bool(self.url):
            raise ValueError("a server needs either a command or a url")
        return self


class ToolsConfig(ConfigSection):
    """Tools that others serve, and which calls wait for you."""

    mcp: dict[ServerName, McpServerConfig] = Field(default_factory=dict)
    """Servers, by name."""
    approval_hours: float = Field(24.0, gt=0, le=8_760)
    """How long a call may be approved that waits for you: the turn that asked for it showed text of less trust than the
    tool needs; after that it is refused."""
    approvals_lane_max: int = Field(5, ge=0, le=1_000)
    """How many calls of one lane may wait for you at a time; with 0 such calls are always refused."""
    approvals_max: int = Field(50, ge=0, le=10_000)
    """How many calls may wait for you at a time in all."""
    leave_out: list[str] = Field(default_factory=list)
    """Tools that conversations are not offered, by name or pattern with *: each costs tokens in every prompt."""
    http_hosts: tuple[str, ...] = ()
    """Hosts whose pages workers may read with the tool http_get; without one there is no such tool. Read by https
    unless written http://10.0.0.5:8080; *.example.org allows every name below. Redirects must stay within the list.
    Private addresses need a host that is listed itself, link-local ones a listed address. What is read is external."""
    http_limit_s: float = Field(20.0, gt=0, le=600)
    """Seconds that one page may take."""
    http_bytes_max: int = Field(1_000_000, ge=1_000, le=50_000_000)
    """Bytes of a page that are read; the model is shown at most 20,000 characters."""

    @field_validator("http_hosts")
    @classmethod
    def are_hosts(cls, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse an entry that is not a host."""
        for host in hosts:
            parse_allowed_host(host)
        return hosts


class ExtensionConfig(ConfigSection):
    """One extension."""

    enabled: bool = True
    """Whether it is let in."""
    config: dict[str, Any] = Field(default_factory=dict)
    """Its own settings, as its manifest names them; secrets are taken from the environment, never from here."""


_HOOK = re.compile(r"[\w.-]+(/[\w.-]+)?/[0-9]+", re.ASCII)


class GitHubConfig(ConfigSection):
    """What is sent to GitHub, and asked of it; webhooks come in by `channels.github`."""

    token: SecretStr | None = None
    """Token by which replies are posted as comments, and pull requests are read. Without one nothing is sent. It needs
    write access to issues and pull requests, and for `hooks` to webhooks."""
    api_url: str = Field(
        "https://api.github.com", pattern=r"^https://[!-~]+$|^http://(127\.0\.0\.1|localhost)(:[0-9]+)?$"
    )
    """Where the API is; https://HOST/api/v3 for an Enterprise Server."""
    hooks: tuple[str, ...] = ()
    """Webhooks whose failed deliveries are requested again: OWNER/REPOSITORY/ID, or ORGANISATION/ID."""
    sweep_s: float = Field(900.0, ge=60, le=86_400)
    """Seconds between two looks for failed deliveries."""

    @field_validator("hooks")
    @classmethod
    def name_hooks(cls, hooks: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what does not name a webhook."""
        for hook in hooks:
            if _HOOK.fullmatch(hook) is None:
                raise ValueError(f"{hook!r} names no webhook: write OWNER/REPOSITORY/ID, or ORGANISATION/ID")
        return hooks


class ServerConfig(ConfigSection):
    """The HTTP server."""

    host: str = "127.0.0.1"
    """Address to listen on; any but loopback needs a token."""
    port: int = Field(7448, ge=0, le=65_535)
    """Port; 0 takes a free one."""
    token: SecretStr | None = None
    """Bearer token of clients: it opens the routes for messages and media."""
    operator_token: SecretStr | None = None
    """Bearer token of the owner: it opens everything, for `keepsaid --url` and programs that administer. Without one,
    each start makes another, which only commands on this machine can read."""
    public_url: str = ""
    """The address that others call the server by, such as https://agent.example; by default the one that is called."""
    mcp_issuer: str = ""
    """Address of the OAuth authorization server that gives MCP clients the tokens of keys, if you have one."""
    mcp_tools: Literal["core", "full"] = "core"
    """Tools that MCP clients are offered: core (memory), or full (also recording, transcripts,
    explanations, the inbox, tasks, schedules and the status)."""
    connections_max: int = Field(512, ge=8, le=100_000)
    """Connections open at the same time, streams included; fewer where the process may open few files. At the limit
    the connection that has waited longest for a request is closed for a new one, or the new one gets 503."""
    connections_per_address_max: int = Field(128, ge=1, le=100_000)
    """Of these, from one address other than loopback."""
    header_timeout_s: float = Field(10.0, gt=0, le=3_600)
    """Seconds a new connection has to send a whole request head, and a started head to end."""
    idle_timeout_s: float = Field(15.0, gt=0, le=3_600)
    """Seconds a connection stays open after an answer without a next request."""
    body_timeout_s: float = Field(20.0, gt=0, le=3_600)
    """Seconds in which a body must end or come as far as `body_rate_min` asks, and in which a client must read more of
    its answer; then the connection is closed."""
    body_rate_min: int = Field(32_768, ge=1)
    """Bytes per second that a body needs on average over each `body_timeout_s`; a slower one is closed with 408."""
    bodies_bytes_max: int = Field(134_217_728, ge=1_048_576)
    """Bytes of request bodies over 64 kB in memory at the same time; a request that needs more gets 503. One body is
    always taken."""


class TelemetryConfig(ConfigSection):
    """Metrics and traces. Neither holds text, nor names a sender or a conversation."""

    metrics: bool = True
    """Whether `/metrics` is served, and what it prints is counted. It needs the extra `metrics`."""
    traces: bool = False
    """Whether spans of receiving, turns, tools, memory and delivery are sent to an OpenTelemetry collector. It needs
    the extra `otel`."""
    endpoint: str | None = Field(None, pattern=r"^https?://[!-?A-~]+$")
    """Where the collector takes traces over OTLP/HTTP, such as http://localhost:4318/v1/traces. Credentials
    belong in `headers`. By default the variables OTEL_EXPORTER_OTLP_* say it, else this machine, port 4318."""
    headers: dict[str, SecretStr] = Field(default_factory=dict)
    """Headers of every request to it, such as Authorization."""
    share: float = Field(1.0, ge=0, le=1)
    """The share of traces that is sent."""
    genai: Literal["off", "latest"] = "latest"
    """latest: spans have the names of OpenTelemetry's conventions for generative AI too, which still change between
    releases, and each call of the model has a span. off: spans have only keepsaid's own names, which are stable, and
    calls of the model have none."""


class RuntimeConfig(ConfigSection):
    """The process of `keepsaid serve`."""

    watchdog_s: float = Field(5.0, ge=0.0, le=3_600.0, allow_inf_nan=False)
    """If the event loop is blocked for this number of seconds, its stack is logged; 0 logs nothing."""
