"""Settings of routing: what becomes of a message, decided by the first rule that matches."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from keepsaid.config.section import Section
from keepsaid.domain.route import FIELDS, Action, Rule
from keepsaid.domain.work import Notify, OnCrash, WorkTerms

_DEFAULT = "default"
_OF_WORK = ("skill", "model", "tools", "timeout_s", "notify", "on_crash", "retries")

Unmatched = Literal["forward", "drop"]
"""What can happen to a message that no rule matches: a task needs a rule that describes it."""


class RuleConfig(Section):
    """One routing rule; the first that matches decides."""

    name: str = Field(min_length=1)
    """What verdicts call it; no two rules have one name, and none is called default."""
    match: dict[str, str | list[str]] = Field(default_factory=dict)
    """Fields and patterns: channel, account, sender, conversation, event, trust, text, payload.a.b."""
    action: Action
    """forward, spawn or drop."""
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
    """What becomes of it when the process dies while it runs: requeue, fail or review. Without, it is run again, unless
    a call was under way that must not be repeated; then it waits for a person."""
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
        work = WorkTerms()
        if self.action is Action.SPAWN:
            attempts, crash = self.retries + 1, self.on_crash
            who = self.task, self.skill, self.model, self.tools
            work = WorkTerms(*who, self.timeout_s, self.notify, crash, attempts)
        return Rule(self.name, match, self.action, self.priority, self.task, self.reason, work)

    @model_validator(mode="after")
    def only_of_work(self) -> Self:
        """Refuse terms of work for what is not spawned: they would do nothing."""
        given = next((name for name in _OF_WORK if name in self.model_fields_set), None)
        if given is not None and self.action is not Action.SPAWN:
            raise ValueError(f"{given} is for rules whose action is spawn")
        return self


class RoutesConfig(Section):
    """The routing table."""

    default: Unmatched = "forward"
    """What happens to a message that no rule matches."""
    rules: tuple[RuleConfig, ...] = ()
    """The rules, in order."""

    @field_validator("rules")
    @classmethod
    def known_apart(cls, rules: tuple[RuleConfig, ...]) -> tuple[RuleConfig, ...]:
        """Refuse names that do not tell which rule decided."""
        names = [rule.name for rule in rules]
        twice = next((name for n, name in enumerate(names) if name in names[:n]), None)
        if twice is not None:
            raise ValueError(f"two rules are called {twice!r}")
        if _DEFAULT in names:
            raise ValueError(f"no rule may be called {_DEFAULT!r}: that is what decides when none matches")
        return rules
