"""Assemble: the prompt of one turn, layer by layer, the same bytes for the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Layer, Prompt, Record, Role, estimate_tokens
from keepsaid.domain.turn import Claimed, Recent
from keepsaid.pipeline.context.late import marked, unforged
from keepsaid.pipeline.context.policy import POLICY

_HEADER = "[Context from memory]:\n"
_CONTINUED = "\n  "


@dataclass(frozen=True, slots=True)
class Budget:
    """What the layers may cost: messages and estimated tokens of the lane's tail, characters of identity."""

    recent_records: int = 30
    recent_tokens: int = 8_000
    identity_chars: int = 20_000


def assemble(claimed: Claimed, recent: Recent, injection: Injection, identity: str, budget: Budget) -> Prompt:
    """The prompt: policy, identity, the lane's recent records, recalled memory, the new messages.

    Where more people than one may be heard, each text begins with its speaker's name.
    """
    who, cut = identity[: budget.identity_chars], ""
    if len(who) < len(identity):
        cut = f"cut to {budget.identity_chars:,} of {len(identity):,} characters"
    named = is_named(claimed)
    history = tuple(_named(record) if named else _folded(record) for record in recent.records)
    older = f"{recent.left_out} older records left out" if recent.left_out else ""
    recalled = _HEADER + injection.block if injection.block else ""
    user = "\n".join(spoken(claimed, message) for message in claimed.messages)
    layers = (
        _layer("policy", POLICY),
        _layer("identity", who, cut),
        _lines("recent", [_line(record) for record in history], older),
        _lines("memory", recalled.splitlines(), injection.skipped),
        _layer("message", user),
    )
    system = f"{POLICY}\n\n{who}" if who else POLICY
    return Prompt(system, history, recalled, user, layers)


def is_named(claimed: Claimed) -> bool:
    """Whether texts of this turn begin with their speakers' names: where more people than one may be heard."""
    return not all(message.inbound.origin.direct for message in claimed.messages)


def spoken(claimed: Claimed, message: Message) -> str:
    """A new message as it stands in the prompt, below its marker if it is answered late."""
    said = _spoken(speaker(message), message.text) if is_named(claimed) else unforged(message.text)
    return marked(message, claimed.late_before) + said


def speaker(message: Message) -> str:
    """What the sender is called."""
    return message.inbound.origin.name or message.inbound.origin.sender


def fitted(recent: Recent, tokens_max: int) -> Recent:
    """The newest records that fit, never a tool's result without its call."""
    records = recent.records
    start, tokens = len(records), 0
    for position in range(len(records) - 1, -1, -1):
        tokens += estimate_tokens(records[position].text)
        if tokens > tokens_max:
            break
        start = position
    while start < len(records) and records[start].role is Role.TOOL:
        start += 1
    return Recent(records[start:], recent.refs[start:], start) if start else recent


def _named(record: Record) -> Record:
    """A record as it is sent where several people speak; the name then stands in the text."""
    return Record(Role.USER, _spoken(record.speaker, record.text)) if record.role is Role.USER else record


def _folded(record: Record) -> Record:
    """A record as it is sent where one person speaks; he cannot mark his own words as ours either."""
    return replace(record, text=unforged(record.text)) if record.role is Role.USER else record


def _spoken(name: str, text: str) -> str:
    """A text after its speaker's name, on lines none of which can pass for somebody else's."""
    name = " ".join(name.replace(":", " ").split())
    return f"{name}: {_CONTINUED.join(text.splitlines())}"


def _line(record: Record) -> str:
    return record.text + "".join(f" [{call.name} {call.arguments}]" for call in record.calls)


def _layer(name: str, text: str, cut: str = "") -> Layer:
    return Layer(name, text, estimate_tokens(text), cut)


def _lines(name: str, lines: Sequence[str], cut: str = "") -> Layer:
    """A layer of lines, most of which stood in the prompt before and need no counting again."""
    return Layer(name, "\n".join(lines), sum(map(estimate_tokens, lines)), cut)
