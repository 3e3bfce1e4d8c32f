"""Lines: whether the way between a channel and its provider is open, since when, and why not; how far it was read.

Source: spec channels, G3 and G7.
"""

from __future__ import annotations

from enum import StrEnum

from keepsaid.domain.commits import Commit
from keepsaid.domain.prompt import Json
from keepsaid.values import frozen


class LineState(StrEnum):
    """What a line is: of these, only `up` lets messages in."""

    CONNECTING = "connecting"
    UP = "up"
    THROTTLED = "throttled"
    REFUSED = "refused"
    DOWN = "down"


@frozen
class Line:
    """The line of one account on a channel: its state since when, when it was last up, and when it is tried again.

    Times are milliseconds UTC; 0 for never. `reason` says why it is not up.
    """

    channel: str
    account: str
    state: LineState = LineState.CONNECTING
    since: int = 0
    last_ok: int = 0
    reason: str = ""
    next_try_at: int = 0

    @property
    def works(self) -> bool:
        """Whether messages come in, or soon will without anybody's help."""
        return self.state in (LineState.UP, LineState.CONNECTING, LineState.THROTTLED)

    def as_json(self) -> dict[str, Json]:
        """The line as it is written down."""
        return {
            "channel": self.channel,
            "account": self.account,
            "state": self.state.value,
            "since": self.since,
            "last_ok": self.last_ok,
            "reason": self.reason,
            "next_try_at": self.next_try_at,
        }


@frozen
class Cursor:
    """How far an account's messages have been read on one strand of its provider, in the words of the provider."""

    account: str
    name: str
    value: str


@frozen
class MoveCursors(Commit[None]):
    """Keep how far accounts of a channel have been read; all that stands before it is stored already."""

    channel: str
    cursors: tuple[Cursor, ...]
    at: int


def line_of(told: object) -> Line | None:
    """The line that was written down so; None for anything else."""
    if not isinstance(told, dict):
        return None
    try:
        texts = [str(told[name]) for name in ("channel", "account", "state", "reason")]
        since, last_ok, next_try_at = (int(told[name]) for name in ("since", "last_ok", "next_try_at"))
        return Line(texts[0], texts[1], LineState(texts[2]), since, last_ok, texts[3], next_try_at)
    except (KeyError, TypeError, ValueError):
        return None
