"""Learning: what happens to a memory that is offered, and pairs of memories that may contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from keepsaid.domain.commits import Commit
from keepsaid.domain.memory import IMPORTANCE, Kind, NewMemory, Source
from keepsaid.domain.message import Trust
from keepsaid.text.words import spelled, topic

BYTES_MAX = 50_000
"""What one learned memory may have, in UTF-8 (seed 001)."""

LEARNABLE = frozenset(IMPORTANCE)
"""The kinds that are learned: neither episodes nor summaries, which have their own ways in."""

_FROM = frozenset(["message", "reply", "turn", "finding", "person", "note", "import", "task", "external"])
_SAYS_NOTHING = frozenset(
    ["", "unknown", "none", "null", "n/a", "na", "nothing", "undefined", "not specified", "unspecified", "-", "?"]
)

_ASKS = ("?", "\uff1f", "\u061f")
_BROAD = frozenset({Kind.FACT, Kind.EVENT, Kind.OBSERVATION})


class LearnOutcome(StrEnum):
    """What became of a memory that was offered.

    It is `new`; it is `evidence` for one that is there; it `updates` an older one; it was true in the `past` already;
    it is `known`: the same was learned from the same source; it was `forgotten` before; or it is `refused`.
    """

    NEW = "new"
    EVIDENCE = "evidence"
    UPDATES = "updates"
    PAST = "past"
    KNOWN = "known"
    FORGOTTEN = "forgotten"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class LearnResult:
    """The memory that now holds what was offered, 0 for none, and what became of the offer; `why` it was refused."""

    memory_id: int
    how: LearnOutcome
    why: str = ""


def refused(memory: NewMemory) -> str:
    """Why a memory is not learned, "" when it is; by what it came from first, then by what it says.

    Not learned is what outsiders wrote, what has no source or another than people, replies, findings and imports, other
    kinds than LEARNABLE, what is longer than BYTES_MAX, and junk: nothing said, only punctuation, only small talk, a
    question, a slot whose value says nothing, and a fact about nobody that has one word which tells anything.
    """
    if memory.trust is Trust.EXTERNAL:
        return "what outsiders wrote is not learned"
    if memory.kind not in LEARNABLE:
        return f"a memory of kind {memory.kind} is not learned"
    if not memory.sources or any(source.kind not in _FROM for source in memory.sources):
        return "it does not come from what people said"
    if len(memory.text.encode("utf-8", "replace")) > BYTES_MAX:
        return f"it is longer than {BYTES_MAX:,} bytes"
    return junk(memory)


def junk(memory: NewMemory) -> str:
    """Why what a memory says is worth nothing, "" when it is worth keeping."""
    if not spelled(memory.text):
        return "it says nothing"
    if memory.attribute and " ".join(memory.value.split()).casefold() in _SAYS_NOTHING:
        return "its value says nothing"
    if memory.attribute and memory.subject:
        return ""
    about = topic(memory.text)
    if not about:
        return "it is small talk"
    if memory.text.rstrip().endswith(_ASKS):
        return "it asks, and states nothing"
    if len(about) < 2 and not memory.subject and memory.kind in _BROAD:
        return "it says nothing of anybody"
    return ""


def origins(sources: Sequence[Source]) -> frozenset[Source]:
    """Where something was said: its sources without the findings that read them, or these where there are no others."""
    return frozenset(one for one in sources if one.kind != "finding") or frozenset(sources)


def adds_evidence(sources: Sequence[Source], known: Sequence[Source]) -> bool:
    """Whether something said again counts: not from a source that is known, nor in the agent's own replies."""
    fresh = origins(sources) - origins(known)
    return any(one.kind != "reply" for one in fresh)


class Ruling(StrEnum):
    """What the newer of two memories is to the older."""

    SAME = "same"
    UPDATES = "updates"
    CONTRADICTS = "contradicts"
    DIFFERENT = "different"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two memories that the same listeners hear; since when each holds stands beside it, in milliseconds UTC.

    They are `equal` where both fill one slot with one value: then nobody need be asked.
    """

    older: int
    newer: int
    texts: tuple[str, str]
    since: tuple[int, int]
    equal: bool = False


@dataclass(frozen=True, slots=True)
class Ruled:
    """A ruling on a pair, and by which model; "" where none was asked."""

    older: int
    newer: int
    ruling: Ruling
    by: str = ""


@dataclass(frozen=True, slots=True)
class RulePairs(Commit[int]):
    """Keep rulings and do what they come to, each pair once; returns how many were new. `at` is milliseconds UTC.

    What is the same is merged, what updates takes the place of the older, what contradicts is associated with it.
    Nothing is deleted. Nobody's word takes the place of the owner's: it contradicts it.
    """

    rulings: tuple[Ruled, ...]
    at: int
