"""Forgetting, as a port: what a request reaches in either store, and how memory deletes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from keepsaid.domain.forgetting import Counts, ForgetSelector, ForgetTargets, Forgetting, HoldingTurns, Traced, Work
from keepsaid.domain.lane import Lane
from keepsaid.domain.memory import NewMemory


class Echoes(Protocol):
    """Recognises sentences that were forgotten; of them it keeps keyed hashes alone."""

    async def silence(self, sentences: Sequence[bytes], at: int, aside: int = 0) -> None:
        """Forget these sentences, by their digests; an undo of forgetting `aside`, if any, takes them back."""

    async def repeated(self, sentences: Sequence[str], ids: Sequence[int]) -> frozenset[str]:
        """Return the sentences, as folded words, that a person says in a memory other than these."""

    async def in_texts(self, said: Sequence[tuple[str, str]]) -> Sequence[bool]:
        """Whether each text, with the person who said it ("" for the agent), repeats a sentence that was forgotten."""

    async def in_memory(self, memory: NewMemory) -> bool:
        """Whether a memory was forgotten before, or repeats a sentence that was."""


class ForgetOperations(Protocol):
    """Finds and deletes what a request to forget reaches."""

    async def find_targets(self, wish: ForgetSelector) -> ForgetTargets:
        """Find everything that a request to forget would delete; nothing is changed."""

    async def forget(self, wish: ForgetSelector, by: str, undo_ms: int = 0) -> Forgetting | None:
        """Forget what a request names; None for nothing. With `undo_ms`, it can be undone for so long."""


class ForgettingView(Protocol):
    """Reads requests to forget, and what was forgotten."""

    async def newest(self, limit: int) -> Sequence[Forgetting]:
        """The newest requests first."""

    async def unfinished(self) -> Sequence[Forgetting]:
        """Requests that are not done, the oldest first."""

    async def undoable(self) -> Sequence[Forgetting]:
        """Requests that kept something aside, those that end first."""

    async def one(self, number: int) -> Forgetting | None:
        """One request."""

    async def get_targets(self, number: int) -> ForgetTargets:
        """The targets of a request; none once it is scrubbed."""

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        """Messages that are there although they have one of these tombstones."""


class ReachView(Protocol):
    """Reads everything that a wish reaches in the operational store."""

    async def messages(self, wish: ForgetSelector) -> tuple[int, ...]:
        """The messages that a wish names, without those that are forgotten already."""

    async def work(self, wish: ForgetSelector) -> Work:
        """Tasks, schedules and turns in whose words the text of a wish stands, and schedules into its conversation."""

    async def made(self, messages: Sequence[int], turns: Sequence[int]) -> Work:
        """Tasks that were made of these messages or by these turns, and schedules that the turns asked for."""

    async def answering(self, messages: Sequence[int]) -> tuple[int, ...]:
        """The turns that answered these messages."""

    async def list_texts(self, messages: Sequence[int]) -> tuple[str, ...]:
        """The texts of these messages."""

    async def list_attributed_texts(self, messages: Sequence[int]) -> tuple[tuple[str, str], ...]:
        """The persons who wrote these messages, by their names, each with the text."""

    async def lanes(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes in which they stand."""

    async def summarised(self, messages: Sequence[int], turns: Sequence[int]) -> tuple[Lane, ...]:
        """The lanes with a summary that was made of them."""

    async def forgotten(self, refs: Sequence[str]) -> frozenset[str]:
        """Those of the sources `message:ID`, `reply:ID` and `turn:ID` that were forgotten before."""

    async def holding(self, lanes: Sequence[Lane], words: frozenset[str], memories: Sequence[int]) -> HoldingTurns:
        """Turns of these lanes that hold one of the words, and turns anywhere that name one of the memories."""

    async def at_work(self, since: int, lanes: Sequence[Lane]) -> int:
        """Turns that are open since before a time and may still write what they were shown."""


class MemoryUndoLog(Protocol):
    """Undo images of forgettings: the deleted rows of memory, kept until the undo period ends."""

    async def put_back(self, number: int) -> bool:
        """Put back what one kept aside, with tombstones taken away; whether anything was."""

    async def drop(self, number: int) -> bool:
        """Delete what one kept aside; whether anything was."""


class ForgetfulMemory(Protocol):
    """Memory as forgetting needs it. It reads everything: permission is checked before."""

    @property
    def echoes(self) -> Echoes:
        """The sentences that were forgotten."""

    async def joined(self, person: str) -> tuple[str, ...]:
        """All identities of a person, who is named by one of them or by the id that joined them."""

    async def named(self, wish: ForgetSelector) -> tuple[int, ...]:
        """The memories that a request names."""

    async def lineage(self, ids: Sequence[int], refs: Sequence[str]) -> Sequence[Traced]:
        """Memories by id, key, source or equal words of a person, and those merged into them; no reply by its words."""

    async def said_elsewhere(self, words: frozenset[str], ids: Sequence[int]) -> frozenset[str]:
        """The words that a person said in a memory other than these, or anybody before them."""

    async def holding(self, words: frozenset[str]) -> tuple[int, ...]:
        """Summaries and bulletins that hold one of the words: they are made anew from what stays."""

    async def hide(self, ids: Sequence[int], digests: Sequence[bytes], at: int, aside: int = 0) -> Counts:
        """Hide memories and bury their digests, kept for an undo of forgetting `aside`; returns what was deleted."""

    async def erase(self, ids: Sequence[int], aside: int = 0, people: Sequence[str] = ()) -> Counts:
        """Delete memories with all derived rows, and these identities of `people`; returns what was deleted."""

    async def tombstones(self) -> tuple[bytes, ...]:
        """Every tombstone."""

    async def add_tombstones(self, hashes: Sequence[bytes], at: int) -> int:
        """Add tombstones by their hashes, at `at` (milliseconds UTC); returns how many were new."""

    async def revived(self, hashes: Sequence[bytes]) -> tuple[int, ...]:
        """Memories that are there although they have one of these tombstones."""

    async def empty_log(self) -> bool:
        """Cut the log of the file to nothing; False while somebody reads it."""


class TypedLines(Protocol):
    """The history of lines that the interactive chat offers again."""

    async def forget(self, holds: Callable[[str], bool]) -> int:
        """Remove the entries for which `holds` is true, for good; returns how many there were."""


class NoTypedLines:
    """A home in which nobody typed anything."""

    async def forget(self, holds: Callable[[str], bool]) -> int:  # noqa: ARG002
        """Remove nothing."""
        return 0
