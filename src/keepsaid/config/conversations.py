"""Settings of conversations and memory: routing, sessions, prompts, compaction, extraction and upkeep."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from keepsaid.config.section import ConfigSection
from keepsaid.domain import compaction, maintenance, prompt, session, slot, timing
from keepsaid.domain.route import FIELDS, Action, Notify, OnCrash, Rule, WorkTerms

_DEFAULT = "default"
_OF_WORK = ("skill", "model", "tools", "timeout_s", "notify", "on_crash", "retries", "reply")

Unmatched = Literal["forward", "listen", "drop"]
"""What can happen to a message that no rule matches: a task needs a rule that describes it."""


class RuleConfig(ConfigSection):
    """One routing rule; the first that matches decides."""

    name: str = Field(min_length=1)
    """What verdicts call it; no two rules have one name, and none is called default."""
    match: dict[str, str | list[str]] = Field(default_factory=dict)
    """Fields and patterns: channel, account, sender, conversation, event, trust, text, payload.a.b."""
    action: Action
    """forward, listen (kept for later turns and in memory, without an answer), spawn or drop."""
    priority: int | None = Field(None, ge=0, le=100)
    """Priority of the batch, instead of its messages'."""
    task: str = ""
    """Description of spawned work; {{payload.path}}, {{count}}, {{text}} and others are filled in."""
    reason: str = ""
    """Why, for `inbox why`; places are filled in as in a task."""
    skill: str = ""
    """Skill that the worker of a spawned task is given: a folder of the agent's skills."""
    model: str = ""
    """Model that does it; without one, the agent's own."""
    tools: tuple[str, ...] | None = None
    """Tools it may use, also those that serve only you: by listing them you allow them on text from outside. Without a
    list it has the tools that serve anyone."""
    timeout_s: int = Field(0, ge=0)
    """Seconds it may take; 0: tasks.timeout_s."""
    notify: Notify = Notify.NONE
    """Whether the owner is sent a message about its end, where he last wrote in a direct chat: none, on_failure (also
    when it needs his word) or always. It never enters a prompt."""
    on_crash: OnCrash | None = None
    """The outcome when the process dies while it runs: requeue, fail or review. Without a value, it runs again, unless
    a call was under way that must not be repeated; then it waits for a person."""
    reply: bool = False
    """Whether its result is sent to the conversation, such as a comment on the pull request."""
    retries: int = Field(2, ge=0, le=20)
    """How often it is tried again after an error of its own. Outages are waited out and do not count."""

    @field_validator("match")
    @classmethod
    def known_fields(cls, match: dict[str, str | list[str]]) -> dict[str, str | list[str]]:
        """Refuse a field that no message has: such a rule would never match."""
        for name in match:
            if name not in FIELDS and not name.startswith("payload."):
                near = get_close_matches(name, FIELDS, 1)
                meant = f"did you mean {near[0]!r}?" if near else "fields of the payload are written payload.a.b"
                raise ValueError(f"there is no field {name!r}; {meant}")
        return match

    def rule(self) -> Rule:
        """The rule as the router reads it."""
        match = {name: (value,) if isinstance(value, str) else tuple(value) for name, value in self.match.items()}
        who, limits = (self.task, self.skill, self.model, self.tools), (self.timeout_s, self.notify, self.on_crash)
        work = WorkTerms()
        if self.action is Action.SPAWN:
            work = WorkTerms(*who, *limits, self.retries + 1, reply=self.reply)
        return Rule(self.name, match, self.action, self.priority, self.task, self.reason, work)

    @model_validator(mode="after")
    def only_of_work(self) -> Self:
        """Refuse terms of work for what is not spawned: they would do nothing."""
        given = next((name for name in _OF_WORK if name in self.model_fields_set), None)
        if given is not None and self.action is not Action.SPAWN:
            raise ValueError(f"{given} is for rules whose action is spawn")
        return self


class RoutesConfig(ConfigSection):
    """The routing table."""

    default: Unmatched = "forward"
    """What happens to a message that no rule matches."""
    rules: tuple[RuleConfig, ...] = ()
    """The rules, in order."""
    names: tuple[str, ...] = ("keepsaid",)
    """Names by which people address the agent in groups, with or without @ (channels.NAME.answer)."""

    @field_validator("rules")
    @classmethod
    def known_apart(cls, rules: tuple[RuleConfig, ...]) -> tuple[RuleConfig, ...]:
        """Refuse names that do not tell which rule decided."""
        names = [rule.name for rule in rules]
        if (twice := next((name for n, name in enumerate(names) if name in names[:n]), None)) is not None:
            raise ValueError(f"two rules are called {twice!r}")
        if _DEFAULT in names:
            raise ValueError(f"no rule may be called {_DEFAULT!r}: that is what decides when none matches")
        return rules


class SessionsConfig(ConfigSection):
    """How long a lane may be quiet."""

    inactive_s: float = Field(1_800.0, gt=0, le=31_536_000)
    """Seconds after the last turn of a lane after which its next message starts a new session."""
    sleep_s: float = Field(60.0, gt=0, le=31_536_000)
    """Seconds after which a quiet lane's session sleeps; what was said is then marked for collection."""
    end_s: float = Field(3_600.0, gt=0, le=31_536_000)
    """Seconds after which it ends."""

    def terms(self) -> session.SessionTerms:
        """The terms as the runtime reads them."""
        return session.SessionTerms(int(self.inactive_s * 1000), int(self.sleep_s * 1000), int(self.end_s * 1000))


class SlotsConfig(ConfigSection):
    """Questions that wait for an answer of a certain type."""

    expiry_s: float = Field(600.0, gt=0, le=31_536_000)
    """Seconds a question waits for its answer."""
    on_mismatch: slot.OnMismatch = slot.OnMismatch.CLEAR
    """The handling of a question when its person writes something else: clear ends it, keep keeps it open."""
    timezone: str = "UTC"
    """Where `tomorrow at 5` is meant, such as Europe/Berlin."""

    @field_validator("timezone")
    @classmethod
    def known(cls, timezone: str) -> str:
        """Refuse a place whose time nobody knows."""
        return timing.known_zone(timezone).key

    def terms(self) -> slot.SlotTerms:
        """The terms as the runtime reads them."""
        return slot.SlotTerms(int(self.expiry_s * 1000), self.on_mismatch, timing.known_zone(self.timezone))


class ContextConfig(ConfigSection):
    """What the prompt may hold. What is cut, and why, stands in `why`."""

    order: prompt.MemoryPlacement = prompt.MemoryPlacement.STABLE
    """stable: recalled memory after the recent messages, so that everything before it is cached by providers;
    seed003: before them."""
    recent_messages: int = Field(1_000, ge=0, le=1_000)
    """Records of the lane since its summary that are shown at most; compaction keeps them far fewer."""
    recent_tokens: int = Field(100_000, ge=0)
    """Estimated tokens they may cost at most."""
    identity_chars: int = Field(20_000, ge=0)
    """Characters of the identity files that are shown."""
    skills_chars: int = Field(8_000, ge=0)
    """Characters of the index of skills; the last by name are left out."""
    summary_chars: int = Field(16_000, ge=0)
    """Characters of the lane's summary."""
    session_summary_chars: int = Field(8_000, ge=0)
    """Characters of the summary of the conversation's other lanes, with `compaction.session_in_prompt`."""
    extensions_chars: int = Field(8_000, ge=0)
    """Characters of what extensions contribute; the last by priority are left out."""
    quoted_chars: int = Field(4_000, ge=0)
    """Characters of what the new messages reply to."""


class CompactionConfig(ConfigSection):
    """When the past of a lane is summarised, and what is done before a prompt no longer fits."""

    messages: int = Field(30, ge=2, le=500)
    """More messages than this since the last summary start one."""
    tokens: int = Field(2_500, ge=100)
    """More estimated tokens than this since the last summary start one."""
    age_h: float = Field(24.0, gt=0)
    """Hours since the last summary after which the lane's next message starts one."""
    keep: int = Field(10, ge=1, le=400)
    """The newest messages, which no summary takes in."""
    summary_tokens: int = Field(1_000, ge=100)
    """Estimated tokens of a summary."""
    timeout_s: float = Field(60.0, gt=0)
    """Seconds the model may take for one."""
    retry_s: float = Field(60.0, gt=0)
    """Seconds until one that failed is tried again with a message of the lane; doubled each time, an hour at most."""
    concurrent_max: int = Field(2, ge=1, le=64)
    """Lanes that are summarised at the same time."""
    session_messages: int = Field(30, ge=2)
    """The new summarised messages of its lanes after which the summary of a conversation is renewed."""
    session_tokens: int = Field(3_000, ge=100)
    """The same for estimated tokens."""
    session_keep: int = Field(20, ge=0)
    """The newest records of each lane, which it leaves out."""
    session_in_prompt: bool = False
    """Show the model, below the lane's summary, what the conversation's other lanes summarised."""
    window_tokens: int = Field(128_000, ge=1_000)
    """Tokens a model's window holds."""
    windows: dict[str, int] = Field(default_factory=dict)
    """The same for models by name, such as ollama/qwen3: 32768."""
    background: float = Field(0.80, gt=0, le=1)
    """The share of the window from which on the oldest 30 % of the messages are summarised."""
    aggressive: float = Field(0.85, gt=0, le=1)
    """The share from which on half of them are."""
    emergency: float = Field(0.95, gt=0, le=1)
    """The share from which on half of them are left out of the prompt at once, and a marker stays."""

    def terms(self) -> compaction.CompactionTerms:
        """When a lane is due."""
        return compaction.CompactionTerms(self.messages, self.tokens, int(self.age_h * compaction.HOUR_MS), self.keep)


class BulletinConfig(ConfigSection):
    """The standing briefing of what is known, one for each scope: everybody, a conversation, a person."""

    enabled: bool = True
    """Whether turns are briefed."""
    model: bool = True
    """Let the chat model write it, where one is set; else it is put together from memories word for word."""
    every_min: float = Field(60.0, gt=0, le=525_600)
    """Minutes that a bulletin is kept at least; then the next turn that reads it renews it, if memory changed."""
    words: int = Field(500, ge=50, le=5_000)
    """The most words of a bulletin; approximate where a model writes it."""
    timeout_s: float = Field(60.0, gt=0, le=3_600)
    """Seconds the model may take for one."""
    chars: int = Field(8_000, ge=0)
    """Characters of all bulletins of a turn that are shown."""


class CollectionConfig(ConfigSection):
    """How what was said in a session becomes memory."""

    extractor: str = Field("auto", pattern=r"^(auto|rules|none|ext/[a-z][a-z0-9_-]{0,39})$")
    """auto: the chat model reads what was said, and rules where none is set; rules: never a model, only what people
    state outright is learned; none: nothing is collected, and marks stay; ext/ID: that of an extension."""
    every_s: float = Field(30.0, gt=0, le=86_400)
    """Seconds between two looks at the marked sessions."""
    passages_max: int = Field(10, ge=1, le=1_000)
    """Passages that one look reads, each of another session or of the next part of one."""
    records_max: int = Field(30, ge=1, le=500)
    """Records of people and agent in one passage."""
    records_min: int = Field(14, ge=1, le=500)
    """Records of people and agent that a model waits for while a conversation goes on: fewer calls, later facts."""
    tokens_max: int = Field(4_000, ge=100)
    """Estimated tokens of one passage."""
    answer_tokens_max: int = Field(4_000, ge=100)
    """Tokens of the model's answer to one."""
    timeout_s: float = Field(90.0, gt=0, le=600)
    """Seconds a call of the model may take."""
    tries: int = Field(5, ge=1, le=100)
    """Attempts that come to nothing before a session is parked."""
    retry_s: float = Field(60.0, gt=0)
    """Seconds until one is repeated; doubled each time, an hour at most."""
    daily_call_limit: int = Field(2_000, ge=0)
    """Calls of the model in a day (UTC), however often it is started; what is left waits for the next."""
    model_tokens_a_day: int = Field(4_000_000, ge=0)
    """The same for its tokens."""
    nightly_hour: int = Field(3, ge=0, le=23)
    """The hour, in slots.timezone, at which every session with unread records is marked."""


class MaintenanceConfig(ConfigSection):
    """What is done to memory at night, and how fast what nobody uses fades."""

    enabled: bool = True
    """Whether it is done every night; `keepsaid memory maintain` does it in any case."""
    hour: float = Field(3.0, ge=0, lt=24)
    """The hour of the day (UTC) at which it begins."""
    rate: float = Field(0.02, ge=0, le=10)
    """How fast importance fades: of a memory unused for d days exp(-rate * d^0.8) is left. 0 lets nothing fade."""
    floor: float = Field(0.05, ge=0, le=1)
    """Importance below which a memory is archived: it comes to mind no more, and is found where archived ones are
    searched."""
    grace_days: float = Field(30.0, ge=0)
    """Days after its last use in which a memory is never archived."""
    step_ms: float = Field(4.0, ge=0, le=1_000)
    """Milliseconds for which one step works before the store is left to others; 0 sets no limit but a number of
    memories."""
    judge_pairs_a_day: int = Field(100, ge=0, le=100_000)
    """The close pairs of memories that the chat model judges in 24 hours, ten in a call; 0 for none."""

    def curve(self) -> maintenance.Curve:
        """The curve by which memories fade."""
        return maintenance.Curve(self.rate, self.floor, self.grace_days)
