"""Assemble: the prompt of one turn, layer by layer, the same bytes for the same inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from keepsaid.domain.memory import Injection
from keepsaid.domain.message import Message
from keepsaid.domain.prompt import Layer, Prompt, Record, Role, estimate_tokens
from keepsaid.domain.turn import Claimed, Recent
from keepsaid.pipeline.context.policy import POLICY

_HEADER = "[Context from memory]:\n"


@dataclass(frozen=True, slots=True)
class Budget:
    """What the layers may cost: messages and estimated tokens of the lane's tail, characters of identity."""

    recent_records: int = 30
    recent_tokens: int = 8_000
    identity_chars: int = 20_000


def assemble(claimed: Claimed, recent: Recent, injection: Injection, identity: str, budget: Budget) -> Prompt:
    """The prompt: policy, identity, the lane's recent records, recalled memory, the new messages."""
    who, cut = identity[: budget.identity_chars], ""
    if len(who) < len(identity):
        cut = f"cut to {budget.identity_chars:,} of {len(identity):,} characters"
    history, left_out = _fitting(recent.records, budget.recent_tokens)
    older = f"{left_out} older records left out" if left_out else ""
    recalled = _HEADER + injection.block if injection.block else ""
    user = said(claimed.messages)
    layers = (
        _layer("policy", POLICY),
        _layer("identity", who, cut),
        _lines("recent", [_line(record) for record in history], older),
        _lines("memory", recalled.splitlines(), injection.skipped),
        _layer("message", user),
    )
    system = f"{POLICY}\n\n{who}" if who else POLICY
    return Prompt(system, history, recalled, user, layers)


def said(messages: Sequence[Message]) -> str:
    """The new messages as the model reads them: the bare text of one, names before several people's."""
    if len(messages) == 1:
        return messages[0].text
    speakers = {message.inbound.origin.sender for message in messages}
    return "\n".join(
        f"{speaker(message)}: {message.text}" if len(speakers) > 1 else message.text for message in messages
    )


def speaker(message: Message) -> str:
    """What the sender is called."""
    return message.inbound.origin.name or message.inbound.origin.sender


def _fitting(records: Sequence[Record], tokens_max: int) -> tuple[tuple[Record, ...], int]:
    """The newest records that fit, never a tool's result without its call; and how many were left out."""
    start, tokens = len(records), 0
    for position in range(len(records) - 1, -1, -1):
        tokens += estimate_tokens(records[position].text)
        if tokens > tokens_max:
            break
        start = position
    while start < len(records) and records[start].role is Role.TOOL:
        start += 1
    return tuple(records[start:]), start


def _line(record: Record) -> str:
    calls = "".join(f" [{call.name} {call.arguments}]" for call in record.calls)
    return f"{record.speaker or record.role}: {record.text}{calls}"


def _layer(name: str, text: str, cut: str = "") -> Layer:
    return Layer(name, text, estimate_tokens(text), cut)


def _lines(name: str, lines: Sequence[str], cut: str = "") -> Layer:
    """A layer of lines, most of which stood in the prompt before and need no counting again."""
    return Layer(name, "\n".join(lines), sum(map(estimate_tokens, lines)), cut)
