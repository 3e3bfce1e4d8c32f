"""The ledger: what the providers saw, the only source of the judge; and the trace of a play."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b

from keepsaid.domain.commits import Received
from keepsaid.domain.message import Inbound
from keepsaid.values import frozen


class Trace:
    """Lines with virtual milliseconds in front."""

    def __init__(self, passed_ms: Callable[[], int]) -> None:
        self.lines: list[str] = []
        self._passed_ms = passed_ms

    def add(self, what: str) -> None:
        """Note that something happened now."""
        self.lines.append(f"{self._passed_ms():>9} {what}")

    def digest(self) -> str:
        """16 letters over all lines."""
        return blake2b("\n".join(self.lines).encode(), digest_size=8).hexdigest()


@dataclass(slots=True)
class Sent:
    """A message somebody sent, under a word of its own; acknowledged or not. Times in virtual milliseconds."""

    word: str
    inbound: Inbound
    began: int
    acked: int | None = None
    receipt: Received | None = None


@frozen
class Showing:
    """A reply as it arrived at its provider, once."""

    channel: str
    keyed: bool
    conversation: str
    reply_id: int
    text: str
    marked: bool
    notice: bool


@dataclass(slots=True)
class ModelCall:
    """A call of the model: by which life, for which first word, at which depth of the turn; `ended` None: it lasts.

    That of a `worker` may be made beside a turn of its lane.
    """

    life: str
    word: str
    depth: int
    began: int
    ended: int | None = None
    worker: bool = False


@frozen
class DeliveryAttempt:
    """A delivery of an event to the subscriber: in which process, and whether the event was done already."""

    life: str
    event: int
    key: str
    was_done: bool


@dataclass(slots=True)
class RunRecord:
    """All of it. `written` is when replies were committed; `raced` are lives another was started beside;
    `jumped` says that the clock was set; `broken` is what was wrong at sight. `heard` is what subscribers received,
    `taken` which event a delivery is of, and what it is about; `done` and `ended`, in order, what was delivered.
    `tasks` and `schedules` are those that turns and branches made.
    """

    sent: dict[str, Sent] = field(default_factory=dict)
    shown: list[Showing] = field(default_factory=list)
    given_up: set[int] = field(default_factory=set)
    asked: list[ModelCall] = field(default_factory=list)
    effects: Counter[tuple[str, str]] = field(default_factory=Counter)
    used: dict[tuple[str, int], int] = field(default_factory=dict)
    resampled: list[str] = field(default_factory=list)
    raced: set[str] = field(default_factory=set)
    jumped: bool = False
    requeued: set[int] = field(default_factory=set)
    written: dict[int, int] = field(default_factory=dict)
    heard: list[DeliveryAttempt] = field(default_factory=list)
    taken: dict[int, tuple[int, str]] = field(default_factory=dict)
    done: set[int] = field(default_factory=set)
    ended: list[tuple[int, str]] = field(default_factory=list)
    tasks: set[int] = field(default_factory=set)
    schedules: set[int] = field(default_factory=set)
    commits: int = 0
    broken: list[str] = field(default_factory=list)
