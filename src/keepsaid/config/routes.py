"""Settings of routing: what becomes of a message, decided by the first rule that matches."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Literal

from pydantic import Field, field_validator

from keepsaid.config.section import Section
from keepsaid.domain.route import FIELDS, Action, Rule

_DEFAULT = "default"

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
        return Rule(self.name, match, self.action, self.priority, self.task, self.reason)


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
