"""The runtime, as a port: clock, ids, stop signal, lock, threads, disk space, redaction, wake-ups, failpoints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol, TypeVar

from keepsaid.domain.redaction import Masked, SecretMark, masked
from keepsaid.domain.route import TaskKind
from keepsaid.values import frozen

_armed: Callable[[str], None] | None = None


def point(name: str) -> None:
    """Pass a named point of the road; does nothing unless a harness armed it."""
    if _armed is not None:
        _armed(name)


def arm(action: Callable[[str], None] | None) -> None:
    """Let every `point` call `action` with its name, or stop that with None. For `testing.crash` only."""
    global _armed  # noqa: PLW0603 - one switch for the whole process is the point of it
    _armed = action


class Standing(Protocol):
    """What a process knows of its own life where several share a store: one that was frozen is taken for dead."""

    @property
    def is_sure(self) -> bool:
        """Whether no other process can have taken this one for dead by now."""

    async def ascertain(self) -> None:
        """Return once `is_sure`; asks the store when it has to.

        Raises ProcessFenced when others took over, StoreError when the store does not answer.
        """


class Redactor(Protocol):
    """Finds secrets in texts. The time is linear in the text; a long one is read in a thread."""

    def marks(self, text: str) -> tuple[SecretMark, ...]:
        """The secrets in a text, in order; they do not overlap."""

    def redacted(self, text: str) -> str:
        """The text with every secret replaced by what kind it was; doing so again changes nothing."""


class MarksView(Protocol):
    """Reads where stored messages hold secrets."""

    async def marks(self, message_id: int) -> tuple[SecretMark, ...]:
        """The marks of a message's text; nothing before its episode is recorded."""


_INLINE_CHARS_MAX = 2_000
"""More is searched for secrets in a thread: the event loop is not to be held for longer than 2 ms."""

_INLINE_SENTENCES_CHARS_MAX = 200
"""More is read sentence by sentence in a thread, for the same reason: that takes ten times as long."""

Found = TypeVar("Found")


async def read_sentences(read: Callable[[], Found], chars: int) -> Found:
    """Call a function that reads sentences: in a thread, unless they are short; `chars` is their length."""
    return read() if chars <= _INLINE_SENTENCES_CHARS_MAX else await asyncio.to_thread(read)


async def masked_texts(redactor: Redactor, texts: Sequence[str]) -> list[Masked]:
    """Each of some texts without its secrets."""

    def read() -> list[Masked]:
        found = ((text, redactor.marks(text)) for text in texts)
        return [Masked(masked(text, marks) if marks else text, marks) for text, marks in found]

    return read() if sum(map(len, texts)) <= _INLINE_CHARS_MAX else await asyncio.to_thread(read)


class Clock(Protocol):
    """Wall time in milliseconds UTC, and waiting."""

    def now_ms(self) -> int:
        """Wall time, milliseconds UTC. It may jump."""

    def steady_ms(self) -> int:
        """Milliseconds UTC as they would be had the wall clock not been set since the start: leases go by it."""

    def due_ms(self) -> int:
        """The latest wall time since the start plus what passed since: a clock that is set wrong delays nothing."""

    def monotonic_ms(self) -> float:
        """A time that never goes back, in milliseconds, for measuring."""

    async def wait(self, hint: asyncio.Event, timeout_ms: float) -> None:
        """Return when the hint is set, and clear it, or after the timeout, whichever is first."""


class Ids(Protocol):
    """Makes identifiers."""

    def next(self) -> int:
        """A new 63-bit number, larger than any this source made before."""

    def follow(self, number: int) -> None:
        """Make every later number larger than this one, which was made before the start."""


class StopToken:
    """Stop signal of the runtime: work that runs in steps checks it between two steps, and ends if it is set."""

    def __init__(self) -> None:
        self._requested = asyncio.Event()

    @property
    def is_set(self) -> bool:
        """Whether a stop was requested."""
        return self._requested.is_set()

    def set(self) -> None:
        """Request a stop: work that runs in steps ends before its next step."""
        self._requested.set()

    async def wait(self) -> None:
        """Return once a stop has begun."""
        await self._requested.wait()


class Hint(asyncio.Event):
    """A wake-up event. Where processes share a store, `publish` lets the others set theirs: they `hear` of it."""

    publish: Callable[[], None] | None = None

    def set(self) -> None:
        """Wake who waits, here and in the other processes."""
        super().set()
        if self.publish is not None:
            self.publish()

    def hear(self) -> None:
        """Wake who waits here."""
        super().set()


class Holders(dict[int, list[asyncio.Event]]):
    """The holders of batches in this process, by batch. `publish` lets other processes wake theirs."""

    publish: Callable[[int], None] | None = None

    def wake(self, batch_id: int) -> None:
        """Wake the holders of a batch, here and in the other processes."""
        self.hear(batch_id)
        if self.publish is not None:
            self.publish(batch_id)

    def hear(self, number: int) -> None:
        """Wake the holders of a batch in this process."""
        for holder in self.get(number, ()):
            holder.set()


@frozen
class Wakeups:
    """Wake-up events, one for each stage; set when there may be work for it.

    `held` has one for each holder of a batch in this process: set when another may have taken the batch over. Who
    lost it may not know yet when the next has it.
    """

    route: Hint = field(default_factory=Hint)
    work: Hint = field(default_factory=Hint)
    deliver: Hint = field(default_factory=Hint)
    record: Hint = field(default_factory=Hint)
    task: Hint = field(default_factory=Hint)
    branch: Hint = field(default_factory=Hint)
    call: Hint = field(default_factory=Hint)
    agent: Hint = field(default_factory=Hint)
    relay: Hint = field(default_factory=Hint)
    schedule: Hint = field(default_factory=Hint)
    files: Hint = field(default_factory=Hint)
    held: Holders = field(default_factory=Holders)

    @property
    def named(self) -> dict[str, Hint]:
        """Those of the stages, by name."""
        ours = {"route": self.route, "work": self.work, "deliver": self.deliver, "record": self.record}
        ours |= {"relay": self.relay, "schedule": self.schedule, "files": self.files}
        return {**ours, **{str(kind): hint for kind, hint in self.of_tasks.items()}}

    @property
    def of_tasks(self) -> dict[TaskKind, Hint]:
        """Those of the stages that do tasks, by kind."""
        work = {TaskKind.WORKER: self.task, TaskKind.BRANCH: self.branch}
        return {**work, TaskKind.CALL: self.call, TaskKind.AGENT: self.agent}

    def wake_holders(self, batch_id: int) -> None:
        """Wake the holders of a batch, so that they check at once whether they still hold it."""
        self.held.wake(batch_id)


class NumberedHints(Protocol):
    """Wake-ups about one thing each, by its number. `publish` lets other processes wake theirs: they `hear` of it."""

    publish: Callable[[int], None] | None

    def hear(self, number: int) -> None:
        """Wake who waits here."""


class Peers(Protocol):
    """The other processes that share a store with this one: wake-ups go between them, and all go by one clock.

    A wake-up may be lost: who waits also looks by itself.
    """

    @property
    def node(self) -> int:
        """A number that no other process has: ids are made with it."""

    def now_ms(self) -> int:
        """The wall time of the store's server, milliseconds UTC."""

    def join(self, hints: Mapping[str, Hint], numbered: Mapping[str, NumberedHints]) -> None:
        """Publish these from now on, and let the other processes' wake them."""


class Relay(Protocol):
    """Another way for wake-ups between processes, which may lose them, delay them or make them up."""

    def begin(self, group: str, hear: Callable[[str], None], missed: Callable[[], None]) -> None:
        """Listen to the processes of a group from now on, on a thread of its own.

        `hear` gets names as others sent them, and perhaps anything else; `missed` is called when some may be lost.
        """

    def send(self, names: str) -> bool:
        """Send names to the others; False where they have to go another way."""

    def describe(self) -> str:
        """What and how it is, in a line."""

    def close(self) -> None:
        """Disconnect."""


class Lock(Protocol):
    """Proves that one process at most is the runtime of a home."""

    def acquire(self) -> None:
        """Take the lock; raises HomeBusy, naming the holder, when another process has it."""

    def check(self) -> None:
        """Raise StoreGone when what is locked was deleted, moved or replaced by somebody."""

    def release(self) -> None:
        """Give it back. The death of the process does so too."""


T = TypeVar("T")


class Offload(Protocol):
    """Runs functions that compute something from a text and have no effect."""

    async def __call__(self, chars: int, work: Callable[[], T]) -> T:
        """What `work` returns or raises; `chars` is about how many characters it reads.

        Work over few characters runs at once, on the event loop; other work in a thread. Who stops waiting does not
        stop the thread.
        """


async def inline(chars: int, work: Callable[[], T]) -> T:  # noqa: ARG001 - the protocol's signature
    """Run the work at once, however long the text is: for tests and for where no event loop has to stay free."""
    return work()


class PaddedOffload:
    """Offloads work and adds `more` characters to the size of each call."""

    def __init__(self, offload: Offload, more: int) -> None:
        self._offload = offload
        self._more = more

    async def __call__(self, chars: int, work: Callable[[], T]) -> T:
        """Offload the work with a padded size."""
        return await self._offload(self._more + chars, work)


class Space(Protocol):
    """What is left where the stores are."""

    def free_bytes(self) -> int:
        """Bytes that may still be written there; the least of all the places."""
