"""Sessions: epochs of a lane; they are marked, and their unread records read once, in spans (seed 002)."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import commits, learning, prompt, visibility
from keepsaid.domain.message import SYSTEM, Lane, Trust
from keepsaid.text import tokens, topics
from keepsaid.values import frozen

UNPROCESSED_MAX = 5
"""More new user and assistant records than this mark the session for collection (seed 004)."""


class SessionEnd(StrEnum):
    """Why a session ended."""

    INACTIVITY = "inactivity"
    IDLE = "idle"
    COMPACTION = "compaction"
    RESET = "reset"
    INCOGNITO = "incognito"


FIRST = "first message"
"""Why the first session of a lane started; later ones start because the one before ended."""

MARKS = {
    SessionEnd.INACTIVITY: "switch",
    SessionEnd.IDLE: "end",
    SessionEnd.COMPACTION: "compaction",
    SessionEnd.RESET: "reset",
    SessionEnd.INCOGNITO: "switch",
}
"""What a mark says that the end of a session set."""


@frozen
class Session:
    """A session as it stands; positions count records of the lane's transcript, from 1, times are milliseconds UTC.

    It covers the records `first` to `last`, none where `last` is before `first`. `invalidated_at` is the last record
    that waits for collection, None when nothing does; up to `processed_until` all is collected.
    """

    id: int
    state: str
    first: int
    last: int
    started_at: int
    active_at: int
    started_reason: str
    ended_at: int | None = None
    ended_reason: str = ""
    invalidated_at: int | None = None
    invalidated_reason: str = ""
    processed_until: int | None = None


@frozen
class SessionTerms:
    """How long a lane may be quiet, in milliseconds: before its next message starts a session, sleep, and end."""

    inactive_ms: int = 1_800_000
    sleep_ms: int = 60_000
    end_ms: int = 3_600_000


class Rested(NamedTuple):
    """What a `Rest` did: sessions that sleep now, that ended, and how many it looked at."""

    slept: int
    ended: int
    looked: int


@frozen
class Rest(commits.Commit[Rested]):
    """Let sessions of quiet lanes sleep, and end: those quiet since `sleep_before` and `end_before` at the latest.

    Of each kind `limit` at most, the longest quiet first. A lane with messages that wait or are being answered is not
    quiet: its session counts as quiet since `steady` from then on, as does one that is quiet since a later time,
    by a clock that was wrong. `steady`, and what lanes are quiet since, go by the steady clock, `at` by the wall.
    """

    sleep_before: int
    end_before: int
    steady: int
    at: int
    limit: int = 100


class QuietSince(NamedTuple):
    """Since when the longest quiet lane is, by the state of its session; None where there is none."""

    active: int | None
    sleeping: int | None


SOFT = frozenset({"records", "sleep"})
"""Reasons of marks that wait for enough records before a model reads them; all others are read whatever they hold."""

RIPE = 6
"""Records of people and agent that a soft mark waits for, unless the reader waits for more."""

_TOKENS_BESIDE = 12
"""What stands beside an utterance when it is shown: its number, its time and its speaker."""

NIGHTLY = "nightly"
ASKED = "asked"
"""Why a session is marked by the clock, and by a person."""


@frozen
class Utterance:
    """A record of a transcript as collection reads it: what was said, where, by whom and how far that is trusted.

    `ref` names the message or reply. What the agent said is external where it had read anything from outside.
    """

    position: int
    role: prompt.Role
    text: str
    ref: str = ""
    speaker: str = ""
    sender: str = ""
    trust: Trust = Trust.EXTERNAL
    direct: bool = False
    at: int = 0

    @property
    def is_source(self) -> bool:
        """Whether a known person said it here: only such text is ever the source of a statement."""
        said = self.role is prompt.Role.USER and self.ref.startswith("message:") and bool(self.text.strip())
        return said and visibility.trust_of_words(self.trust, self.text) is not Trust.EXTERNAL and self.sender != SYSTEM

    @property
    def is_readable(self) -> bool:
        """Whether an extractor may read it at all, if only to understand the sources."""
        said = self.role is prompt.Role.ASSISTANT and bool(self.text.strip())
        return self.is_source or (said and self.trust is not Trust.EXTERNAL)


@frozen
class Passage:
    """The records of a session from `first` to `last` that somebody said; others between them are left out.

    `slots` are what is known of the speakers, one a line, so that an extractor names the same thing alike.
    """

    lane: Lane
    first: int
    last: int
    utterances: tuple[Utterance, ...] = ()
    slots: tuple[str, ...] = ()

    @property
    def sources(self) -> tuple[Utterance, ...]:
        """The utterances that may be sources of statements: what known people said."""
        return tuple(one for one in self.utterances if one.is_source)


def may_state(passage: Passage) -> bool:
    """Whether people said anything that may be worth remembering: more than small talk and plain questions.

    What follows a question of the agent is an answer, however short.
    """
    asked = False
    for one in passage.utterances:
        if one.is_source and not topics.only_asks(one.text) and (asked or topics.topic(one.text)):
            return True
        asked = one.is_readable and not one.is_source and "?" in one.text
    return False


def fitted(passage: Passage, tokens_max: int) -> Passage:
    """The beginning of a passage up to a number of estimated tokens, and one utterance at least."""
    cost = 0
    for n, one in enumerate(passage.utterances):
        cost += tokens.estimate_tokens(one.text) + _TOKENS_BESIDE
        if n and cost > tokens_max:
            return replace(passage, last=one.position - 1, utterances=passage.utterances[:n])
    return passage


@frozen
class ExtractionLease:
    """The right to read a session's records after `after`, under a fence; they are marked up to `marked`.

    A `finding` of an earlier attempt is applied first: what it says was read and paid for already. `whole` says that
    the records before `after` are done with.
    """

    session_id: int
    lane: Lane
    fence: int
    after: int
    marked: int
    reason: str
    attempts: int = 0
    finding: learning.ExtractionResult | None = None
    whole: bool = True


@frozen
class ClaimCollection(commits.Commit[ExtractionLease | None]):
    """Claim the session that is due for longest; None where none is.

    A `thorough` reader is done with what it has read: it takes no soft mark of fewer than `ripe` records. Another takes
    what it has not read itself, and leaves the mark.
    """

    owner: str
    at: int
    lease_until: int
    thorough: bool = True
    ripe: int = RIPE


@frozen
class KeepFinding(commits.Commit[bool]):
    """Keep what was found, before anything of it becomes memory; refused (False) with an old fence."""

    finding: learning.ExtractionResult
    fence: int


class Left(StrEnum):
    """What a reading left of the mark."""

    REFUSED = "refused"
    MARKED = "marked"
    CLEARED = "cleared"


@frozen
class Collected(commits.Commit[Left]):
    """The records up to `until` are read, and what was found in them is in memory; refused with an old fence.

    The mark is cleared where the session has no record after `until`, the last one loaded: what was said meanwhile
    stays marked. A reading that was not `thorough` leaves it, and is not made again.
    """

    session_id: int
    fence: int
    until: int
    at: int
    thorough: bool = True
    finding_id: int | None = None


@frozen
class CollectionFailed(commits.Commit[bool]):
    """A reading came to nothing; it is tried again at `next_at`, or parked where that is None.

    Refused (False) with an old fence. An outage is not `charged` as an attempt.
    """

    session_id: int
    fence: int
    error: str
    at: int
    next_at: int | None
    charged: bool = True


@frozen
class RequeueCollection(commits.Commit[bool]):
    """Read a parked session again, by a person's word; False when it is not parked."""

    session_id: int
    at: int


@frozen
class Invalidate(commits.Commit[bool]):
    """Mark a session up to a record; the larger mark wins.

    False where that changes nothing, or the session has no such record.
    """

    session_id: int
    record: int
    reason: str
    at: int


class Marked(NamedTuple):
    """How many sessions were marked, and after which to go on; None at the end."""

    sessions: int
    after: int | None


@frozen
class MarkUnprocessed(commits.Commit[Marked]):
    """Mark sessions with records that nobody has read, `limit` of those after `after`; at the end the run is recorded.

    Where nobody reads thoroughly, what was read the other way is left alone.
    """

    at: int
    reason: str = NIGHTLY
    after: int = 0
    limit: int = 100
    thorough: bool = True


@frozen
class CollectionLine:
    """A session in a list: where its mark stands, how far it is read, and why it waits; times in milliseconds UTC."""

    session_id: int
    lane: Lane
    state: str
    reason: str
    marked: int | None
    processed_until: int | None
    read_until: int
    due_at: int | None
    attempts: int
    error: str
    findings: int
