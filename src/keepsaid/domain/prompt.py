"""The prompt: layers with budgets, records of a transcript, tool calls with answers, and the prefix sent before."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from enum import StrEnum
from hashlib import blake2b
from typing import NamedTuple

from keepsaid.domain.files import Picture
from keepsaid.domain.message import Trust
from keepsaid.values import frozen

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]


class Role(StrEnum):
    """Who a record of the transcript is from."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


@frozen
class ToolCall:
    """A call the model asked for; `arguments` is the JSON text exactly as the model wrote it."""

    id: str
    name: str
    arguments: str


@frozen
class Record:
    """One entry of a transcript: what was said, the calls of an assistant, or the result of one call.

    `ref` names the message that a user's record of a running turn shows, such as `message:17`. `attached` says by name
    and reference what came with the words, "" for nothing. `trust` is that of the text: of a message its sender's,
    of an answer that of its turn when it was given, of an output what its tool declares; None where none is stored.
    `pictures` are shown beside its text, and not stored with it.
    """

    role: Role
    text: str
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    speaker: str = ""
    ref: str = ""
    attached: str = ""
    trust: Trust | None = field(default=None, compare=False, repr=False)
    pictures: tuple[Picture, ...] = ()

    @property
    def chars(self) -> int:
        """How many characters its text, its calls and its attachments have."""
        return len(self.text) + len(self.attached) + sum(len(call.arguments) for call in self.calls)


@frozen
class Layer:
    """A part of the context: its text as sent, its cost in estimated tokens, and why it was cut, if it was."""

    name: str
    text: str
    tokens: int
    cut: str = ""


class MemoryPlacement(StrEnum):
    """Where recalled memory stands: after the recent messages, or before them as seed 003 lists it."""

    STABLE = "stable"
    SEED003 = "seed003"


@frozen
class Prompt:
    """All that a model sees before its first step.

    `system`, `summary`, `session_summary` and `history` stay as they are from turn to turn, and are only appended
    to. `status`, `recalled`, `extra`, `quoted` and `user` belong to this turn alone: they are handed over apart, so
    that they can never be stored. `summary` covers the lane before `history`, `session_summary`
    the other lanes of the conversation, `extra` is what extensions add below memory. `pictures` came with the new
    messages.
    """

    system: str
    history: tuple[Record, ...]
    recalled: str
    user: str
    layers: tuple[Layer, ...] = ()
    summary: str = ""
    status: str = ""
    quoted: str = ""
    extra: str = ""
    order: MemoryPlacement = MemoryPlacement.STABLE
    session_summary: str = ""
    pictures: tuple[Picture, ...] = ()

    @property
    def chars(self) -> int:
        """How many characters it has."""
        return len(self.system) + sum(record.chars for _, record in self.parts)

    @property
    def parts(self) -> tuple[tuple[str, Record], ...]:
        """Everything that follows the system text, in the order in which it is sent, each with its layer's name."""
        stands = (*_said("summary", self.summary), *_said("session_summary", self.session_summary))
        recalled = _said("memory", self.recalled)
        recent = tuple(("recent", record) for record in self.history)
        now, extra = _said("status", self.status), _said("extensions", self.extra)
        asked = (*_said("quoted", self.quoted), *_said("message", self.user, self.pictures))
        if self.order is MemoryPlacement.SEED003:
            return (*stands, *recalled, *recent, *now, *extra, *asked)
        return (*stands, *recent, *now, *recalled, *extra, *asked)


def _said(name: str, text: str, pictures: tuple[Picture, ...] = ()) -> tuple[tuple[str, Record], ...]:
    return ((name, Record(Role.USER, text, pictures=pictures)),) if text else ()


@frozen
class LayerShare:
    """A layer of a prompt: its estimated tokens, its characters, and what of it was cut, "" for nothing."""

    name: str
    tokens: int
    chars: int
    cut: str = ""


def shares_of(trace: Json) -> tuple[LayerShare, ...]:
    """The tools and layers that a turn's trace records, in their order; none where none is recorded."""
    layers = trace.get("layers") if isinstance(trace, dict) else None
    found = [one for one in layers if isinstance(one, dict)] if isinstance(layers, list) else []
    tools = trace.get("tools") if isinstance(trace, dict) else None
    if found and isinstance(tools, dict):
        found = [{**tools, "name": "tools", "cut": f"{tools.get('count')} on offer"}, *found]
    shares: list[LayerShare] = []
    for one in found:
        tokens, chars = (value if isinstance(value := one.get(name), int) else 0 for name in ("tokens", "chars"))
        shares.append(LayerShare(str(one.get("name", "")), tokens, chars, str(one.get("cut") or "")))
    return tuple(shares)


def factor_of(trace: Json) -> float:
    """What the model's own counts of tokens were to the estimates of a turn; 1 where nothing is recorded."""
    factor = trace.get("factor") if isinstance(trace, dict) else None
    return float(factor) if isinstance(factor, int | float) else 1.0


def in_one_line(shares: tuple[LayerShare, ...], window: int = 0, factor: float = 1.0) -> str:
    """The layers with their tokens, and their share of a model's window in tokens, 0 for not known.

    `factor` is what the model's own counts are to the estimates.
    """
    total = int(sum(one.tokens for one in shares) * factor + 0.5)
    told = " | ".join(f"{one.name} {one.tokens:,}" + (f" ({one.cut})" if one.cut else "") for one in shares)
    whole = f" of {window:,} ({100 * total / window:.0f} %)" if window else ""
    return f"{told}   about {total:,} tokens{whole}"


STANDING = ("tools", "policy", "identity", "personality", "skills", "workers", "conversation", "bulletin", "client")
"""Layers of the system text, in order, below the tools on offer."""

_LASTING = (*STANDING, "summary", "session_summary", "recent")

_NEWEST = 128
"""The newest recent records that have a mark each: more than a turn adds, so that where the one before it ended has
one in the next prompt too."""

_EVERY = 16
"""Of the records before them each so-many-th has one, counted from the first."""

_DIGEST_BYTES = 5


@frozen
class PrefixMark:
    """The end of a part: the layer's name, the bytes up to there, and a digest of them."""

    layer: str
    end: int
    digest: str


@frozen
class Repeated:
    """Of the bytes of an earlier prompt, and of those before its status, how many a later one repeats.

    `broken` is the layer in which they part; "" when all that stood before the status is repeated.
    """

    bytes: int
    whole: int
    stable: int
    broken: str = ""

    @property
    def share(self) -> float:
        """Of the whole earlier prompt."""
        return self.bytes / self.whole if self.whole else 1.0

    @property
    def stable_share(self) -> float:
        """Of what stood before its status, recalled memory and messages."""
        return min(self.bytes, self.stable) / self.stable if self.stable else 1.0


def marks_of(prompt: Prompt, tools: str = "") -> tuple[PrefixMark, ...]:
    """The marks of a prompt, in the order in which it is sent; `tools` are those on offer, as they are sent."""
    made: list[PrefixMark] = []
    running = blake2b(digest_size=_DIGEST_BYTES)
    end = records = 0
    newest = len(prompt.history) - _NEWEST
    for name, text in _parts(prompt, tools):
        raw = text.encode("utf-8", "surrogatepass")
        running.update(b"%d:" % len(raw) + raw)
        end += len(raw)
        records += name == "recent"
        if name != "recent" or records > newest or not records % _EVERY:
            made.append(PrefixMark(name, end, running.copy().hexdigest()))
    return tuple(made)


def _parts(prompt: Prompt, tools: str) -> Iterator[tuple[str, str]]:
    if tools:
        yield "tools", tools
    for layer in prompt.layers:
        if layer.name in STANDING and layer.text:
            yield layer.name, layer.text
    for name, record in prompt.parts:
        yield name, _written(record)


def _written(record: Record) -> str:
    """A record as one text; what one record says no other does."""
    if not record.calls and not record.call_id:
        return f"{record.role}\0{record.text}"
    calls = "".join(f"\0{call.id}\0{call.name}\0{call.arguments}" for call in record.calls)
    return f"{record.role}\0{record.text}\0{record.call_id}{calls}"


def repeated(before: Sequence[PrefixMark], after: Sequence[PrefixMark]) -> Repeated:
    """What the later prompt repeats of the earlier one."""
    there = {(mark.end, mark.digest) for mark in after}
    same = max((n for n, mark in enumerate(before, 1) if (mark.end, mark.digest) in there), default=0)
    whole = before[-1].end if before else 0
    stable = max((mark.end for mark in before if mark.layer in _LASTING), default=0)
    shared = before[same - 1].end if same else 0
    if shared >= stable:
        return Repeated(shared, whole, stable)
    new = next((mark.layer for mark in after if mark.end > shared), "")
    old = before[same].layer
    return Repeated(shared, whole, stable, min(old, new, key=_LASTING.index) if new in _LASTING else old)


REFUSED = "error:"
"""How the answer to a refused call begins."""


def object_schema(properties: Mapping[str, Json], *required: str) -> Mapping[str, Json]:
    """Return the schema of an object with these properties and no others."""
    needed: dict[str, Json] = {"required": list(required)} if required else {}
    return {"type": "object", "properties": {**properties}, **needed, "additionalProperties": False}


class AnsweredCall(NamedTuple):
    """A call, the text that the tool returned, and the trust of the turn when it called; None where none is stored."""

    call: ToolCall
    text: str
    trust: Trust | None

    @property
    def arguments(self) -> dict[str, Json]:
        """The arguments as an object; empty if they are none."""
        arguments: Json = json.loads(self.call.arguments or "{}")
        return arguments if isinstance(arguments, dict) else {}


def answered_calls(records: Sequence[Record], *names: str) -> Iterator[AnsweredCall]:
    """Yield the calls of these tools that were answered and not refused, in order.

    A later step may use the ids of calls again: an answer belongs to the newest call with its id.
    """
    calls: dict[str, ToolCall] = {}
    trust = None
    for record in records:
        if record.role is Role.ASSISTANT:
            calls = {call.id: call for call in record.calls if call.name in names}
            trust = record.trust
        elif record.role is Role.TOOL and record.call_id in calls and not record.text.startswith(REFUSED):
            yield AnsweredCall(calls[record.call_id], record.text, trust)
