"""Prefix: how much of a prompt the one before it had sent already, byte for byte, and what broke it.

Providers charge little for the bytes a prompt shares with the one before it, from its beginning up to the first
that differs. A prompt leaves marks: where a part ends, and a digest of all bytes up to there. No text is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b

from keepsaid.domain.prompt import Prompt, Record

STANDING = ("tools", "policy", "identity", "personality", "skills", "workers", "conversation", "bulletin")
"""Layers of the system text, in order, below the tools on offer."""

_NEWEST = 128
"""The newest recent records that have a mark each: more than a turn adds, so that where the one before it ended has
one in the next prompt too."""

_EVERY = 16
"""Of the records before them each so-many-th has one, counted from the first."""

_DIGEST_BYTES = 5


@dataclass(frozen=True, slots=True)
class Mark:
    """The end of a part: the layer's name, the bytes up to there, and a digest of them."""

    layer: str
    end: int
    digest: str


@dataclass(frozen=True, slots=True)
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


def marks_of(prompt: Prompt, tools: str = "") -> tuple[Mark, ...]:
    """The marks of a prompt, in the order in which it is sent; `tools` are those on offer, as they are sent."""
    made: list[Mark] = []
    running = blake2b(digest_size=_DIGEST_BYTES)
    end = records = 0
    newest = len(prompt.history) - _NEWEST
    for name, text in _parts(prompt, tools):
        raw = text.encode("utf-8", "surrogatepass")
        running.update(b"%d:" % len(raw) + raw)
        end += len(raw)
        records += name == "recent"
        if name != "recent" or records > newest or not records % _EVERY:
            made.append(Mark(name, end, running.copy().hexdigest()))
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


def repeated(before: Sequence[Mark], after: Sequence[Mark]) -> Repeated:
    """What the later prompt repeats of the earlier one."""
    there = {(mark.end, mark.digest) for mark in after}
    same = max((n for n, mark in enumerate(before, 1) if (mark.end, mark.digest) in there), default=0)
    whole = before[-1].end if before else 0
    stable = max((mark.end for mark in before if mark.layer in _LASTING), default=0)
    shared = before[same - 1].end if same else 0
    if shared >= stable:
        return Repeated(shared, whole, stable)
    new = next((mark.layer for mark in after if mark.end > shared), "")
    return Repeated(shared, whole, stable, _broken(before[same].layer, new))


_LASTING = (*STANDING, "summary", "session_summary", "recent")


def _broken(old: str, new: str) -> str:
    """The layer that changed first: one that came, went, or reads otherwise."""
    if new not in _LASTING or old == new:
        return old
    return min(old, new, key=_LASTING.index)
