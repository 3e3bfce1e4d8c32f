"""The context of a lane: what stands for its past, and the records that follow."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field, replace

from keepsaid.domain.lane import Lane
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Record
from keepsaid.domain.summary import Summary
from keepsaid.domain.turn import Recent

TAIL_MAX = 1_000
"""Records of a lane that are read for a turn; a tail that is longer is summarised or cut before it gets there."""

POSTS_MAX = 10
"""Of what schedules say in a lane between two of its turns so many are shown: the newest."""


@dataclass(frozen=True, slots=True)
class TranscriptSpan:
    """Records of a lane's transcript with their positions, oldest first."""

    records: tuple[Record, ...] = ()
    positions: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class DroppedSpan:
    """A span that left a lane's context with version `version`: into a summary, or cut; `how` says which.

    `model` and `extractive` are summaries, `guard` and `reset` are cuts. A reset of nothing ends before it begins.
    """

    version: int
    first: int
    last: int
    how: str
    at: int


@dataclass(frozen=True, slots=True)
class LaneSummary:
    """A summary with its lane; `messages` and `chars` count all that it and the ones before it took in.

    `external` says that the lane has held words from outside, be it through a tool, `left` that it began anew after it.
    """

    lane: Lane
    summary: Summary
    messages: int = 0
    chars: int = 0
    external: bool = False
    left: bool = False


@dataclass(frozen=True, slots=True)
class Block:
    """What an earlier turn was reminded of: the text it was shown, the memories in it, and where its records begin."""

    position: int
    text: str
    memories: tuple[int, ...] = ()
    trust: Trust = field(default=Trust.EXTERNAL, compare=False)


@dataclass(frozen=True, slots=True)
class SchedulePost:
    """What a schedule said in the lane by itself, and the last position of the transcript when it did."""

    after: int
    text: str
    trust: Trust = field(default=Trust.EXTERNAL, compare=False)


@dataclass(frozen=True, slots=True)
class Reminders:
    """What a lane was reminded of: `blocks` that are shown again, oldest first, and the memories given `lately`."""

    blocks: tuple[Block, ...] = ()
    lately: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class LaneTail:
    """The summary in force and the records after it.

    `version` is the fence: every change of a lane's context names the one it saw. `summarised_until` is the last
    position of the transcript that a summary covers, `floor` the last that was cut off by a guard or a reset,
    `head` the last of all; `positions` are those of the records. `left_out` counts the messages the guard cut off.
    After `attempts` summaries in a row that came to nothing none is tried before `next_at`. `used` is the most that a
    call of the lane's last turn was charged for, in tokens; 0 when the context changed since, or nobody knows.
    `reminders` are those of earlier turns, `posts` what schedules said here meanwhile: no turn made it, and it is no
    record.
    """

    recent: Recent = Recent()
    positions: tuple[int, ...] = ()
    summary: Summary | None = None
    summarised_until: int = 0
    floor: int = 0
    version: int = 0
    left_out: int = 0
    head: int = 0
    attempts: int = 0
    next_at: int = 0
    used: int = 0
    reminders: Reminders = Reminders()
    posts: tuple[SchedulePost, ...] = ()

    @property
    def chars(self) -> int:
        """How many characters its records have."""
        return sum(record.chars for record in self.recent.records)

    @property
    def blocks(self) -> dict[int, Block]:
        """The earlier blocks that are shown, by the position of the record they stand before."""
        shown = set(self.positions)
        return {block.position: block for block in self.reminders.blocks if block.position in shown}

    @property
    def said_between(self) -> dict[int, tuple[str, ...]]:
        """The posts, by the position of the record that they stand behind; 0 for those before the first.

        What was posted before an older record that is left out is left out as well.
        """
        found: dict[int, tuple[str, ...]] = {}
        for post in self.posts:
            place = bisect_right(self.positions, post.after)
            if place or not self.positions or post.after >= self.positions[0] - 1:
                at = self.positions[place - 1] if place else 0
                found[at] = (*found.get(at, ()), post.text)
        return found

    @property
    def recalling(self) -> Recent:
        """The records, with the memories that earlier blocks show, and those that are not to be given again."""
        standing = frozenset(one for block in self.blocks.values() for one in block.memories)
        return replace(self.recent, standing=standing, lately=self.reminders.lately)

    @property
    def standing_for(self) -> str:
        """What stands for everything before the records: the summary, and how much was left out for want of room."""
        said = [self.summary.text] if self.summary is not None else []
        if self.left_out:
            many = "1 older message was" if self.left_out == 1 else f"{self.left_out} older messages were"
            said.append(f"[System: {many} left out here, because the prompt would not have fitted]")
        return "\n\n".join(said)

    @property
    def covered(self) -> int:
        """The last position that is not part of the tail."""
        return max(self.summarised_until, self.floor)
