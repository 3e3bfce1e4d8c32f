"""How far the messages of a bot of Discord are on disk: the session to resume, its last dispatch, and each channel."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from keepsaid.domain.line import Cursor
from keepsaid.values import frozen

SESSION, SEQ, SINCE, AFTER = "session", "seq", "since", "after:"
"""Names of cursors; after the last comes the id of a channel."""

_UNWRITTEN_MAX: Final = 500
"""Dispatches without a message after which their number is written all the same: a resume repeats those before."""

_MALFORMED_MAX: Final = 3


@frozen
class GatewaySession:
    """A session of the gateway, and where it is resumed."""

    id: str
    url: str

    def as_value(self) -> str:
        """The session as its cursor has it."""
        return json.dumps({"session_id": self.id, "resume_gateway_url": self.url})


def session_of(value: str | None) -> GatewaySession | None:
    """The session in a cursor; None where it has none."""
    try:
        told = json.loads(value or "null")
    except ValueError:
        return None
    if not isinstance(told, dict):
        return None
    number, url = told.get("session_id"), told.get("resume_gateway_url")
    return GatewaySession(number, url) if isinstance(number, str) and isinstance(url, str) else None


class GatewayProgress:
    """What is on disk, and what is to be written with the next messages.

    `after` has the newest message of each channel on disk, `since` when the bot was first connected, as an id of
    Discord, 0 before. `is_behind` says that messages may have been missed and are still to be read.
    """

    def __init__(self, account: str, cursors: Mapping[str, str]) -> None:
        self._account = account
        self.session = session_of(cursors.get(SESSION))
        self.seq = _number(cursors.get(SEQ))
        self.since = _number(cursors.get(SINCE))
        self.after = {
            name.removeprefix(AFTER): _number(value) for name, value in cursors.items() if name.startswith(AFTER)
        }
        self.is_behind = False
        self._written = self.seq
        self._is_new = False
        self._malformed_at, self._malformed = -1, 0
        if not self.seq:
            self.session = None

    @property
    def newest(self) -> int:
        """The newest message on disk, or when the bot was first connected."""
        return max((self.since, *self.after.values()))

    def begin(self, session: GatewaySession, seq: int, now: int) -> None:
        """A new session has begun; `now` is the id of this moment. From the second one on, messages may be missed."""
        self.is_behind = self.is_behind or self.since > 0
        self.since = self.since or now
        self.session, self.seq, self._is_new = session, seq, True

    def end_session(self) -> None:
        """The session cannot be resumed."""
        self.session, self.seq = None, 0

    def needs_writing(self, seq: int) -> bool:
        """Whether cursors are to be written though there are no messages."""
        return self._is_new or seq - self._written >= _UNWRITTEN_MAX

    def is_poison(self) -> bool:
        """Whether a frame that cannot be read came so often after the same dispatch that it has to be kept so."""
        self._malformed = self._malformed + 1 if self._malformed_at == self.seq else 1
        self._malformed_at = self.seq
        return self._malformed >= _MALFORMED_MAX

    def cursors(self, seq: int, after: Mapping[str, int], *, caught_up: bool = False) -> list[Cursor]:
        """The cursors that go with messages up to dispatch `seq`, the newest of which are in `after` by channel.

        While messages may have been missed, the session is none of them, unless these are the messages (`caught_up`).
        """
        made = [
            Cursor(self._account, f"{AFTER}{channel}", str(number))
            for channel, number in after.items()
            if number > self.after.get(channel, 0)
        ]
        if (self.is_behind and not caught_up) or self.session is None:
            return made
        made += [Cursor(self._account, SESSION, self.session.as_value()), Cursor(self._account, SEQ, str(seq))]
        return [*made, Cursor(self._account, SINCE, str(self.since))] if self._is_new else made

    def wrote(self, seq: int, after: Mapping[str, int]) -> None:
        """What `cursors` returned is on disk."""
        self.passed(seq)
        for channel, number in after.items():
            self.after[channel] = max(number, self.after.get(channel, 0))
        if not self.is_behind:
            self._written, self._is_new = self.seq, False

    def passed(self, seq: int) -> None:
        """The dispatches up to this one need not come again while the process lives."""
        self.seq = max(self.seq, seq)


def _number(value: str | None) -> int:
    return int(value) if value is not None and value.isascii() and value.isdecimal() and len(value) <= 20 else 0
