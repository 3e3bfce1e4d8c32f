"""Revisions: why a memory cannot be pinned, shared, merged or archived, and which memory to use instead."""

from __future__ import annotations

from enum import StrEnum

from keepsaid.domain import ids
from keepsaid.values import frozen


class RevisionReason(StrEnum):
    """Why a change to a memory is refused; the first five say that it is not current."""

    MISSING = "missing"
    SUPERSEDED = "superseded"
    MERGED = "merged"
    EXPIRED = "expired"
    ARCHIVED = "archived"
    KIND = "kind"
    REPEATED = "repeated"
    SCOPE = "scope"
    SLOT = "slot"
    CONTRADICTS = "contradicts"
    BETWEEN = "between"


@frozen
class RevisionRefusal:
    """The refusal of a change to one memory; nothing was changed.

    `successor` is the current memory that replaced it, or contains it; 0 if there is none. `other` is the memory of a
    merge that it does not fit. `until` is when it expired, in milliseconds UTC.
    """

    memory_id: int
    reason: RevisionReason
    successor: int = 0
    other: int = 0
    until: int | None = None

    @property
    def sentence(self) -> str:
        """What stands in the way, and which memory to use instead."""
        one, other, next_one = (ids.show("memory", id_) for id_ in (self.memory_id, self.other, self.successor))
        use = f"by {next_one}; use {next_one}" if self.successor else "by a memory that is no longer current"
        into = f"into {next_one}; use {next_one}" if self.successor else "into a memory that is no longer current"
        return {
            RevisionReason.MISSING: f"there is no memory {one}",
            RevisionReason.SUPERSEDED: f"{one} was replaced {use}",
            RevisionReason.MERGED: f"{one} was merged {into}",
            RevisionReason.EXPIRED: f"{one} expired on {ids.when(self.until)}, and no memory replaced it",
            RevisionReason.ARCHIVED: f"{one} is archived",
            RevisionReason.KIND: f"{one} is an episode or a summary; only learned memories can be merged or archived",
            RevisionReason.REPEATED: f"{one} is named twice, or no other memory is named",
            RevisionReason.SCOPE: f"{one} and {other} are visible to different people, so they cannot be merged",
            RevisionReason.SLOT: f"{one} and {other} do not state the same attribute, so they cannot be merged",
            RevisionReason.CONTRADICTS: f"{one} and {other} contradict each other; archive the one that is wrong",
            RevisionReason.BETWEEN: f"{one} and {other} cannot be merged: another value was valid between them",
        }[self.reason]

    @property
    def hint(self) -> str:
        """The command that helps."""
        one = ids.show("memory", self.memory_id)
        if self.successor:
            return f"keepsaid memory show {ids.show('memory', self.successor)}"
        return {
            RevisionReason.MISSING: "keepsaid memory ls",
            RevisionReason.EXPIRED: f'keepsaid memory edit {one} "TEXT"',
            RevisionReason.ARCHIVED: f"keepsaid memory restore {one}",
            RevisionReason.KIND: f"keepsaid memory show {one}",
            RevisionReason.REPEATED: "keepsaid memory merge --help",
            RevisionReason.CONTRADICTS: f"keepsaid memory archive {ids.show('memory', self.other)}",
        }.get(self.reason, f"keepsaid memory history {one}")
