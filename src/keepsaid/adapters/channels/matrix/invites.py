"""Invitations to rooms: accepted from allowed users only, and tried again until the server answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, MatrixUnreachable, path_of, wait_ms
from keepsaid.ports.runtime import Clock

Allowed = Callable[[str], bool] | Collection[str]
"""The user ids that may invite the account, or whether one may."""

_log = logging.getLogger("keepsaid.matrix")
_PENDING_MAX, _ID_CHARS_MAX = 50, 255
_BY = "|"
_TRIES_MAX = 5
_AGAIN_MS = 60_000


class MatrixInvites:
    """Joins the rooms to which allowed users invited the account; one of another user waits until the user is allowed.

    `_pending` maps the rooms to who invited the account there.
    """

    def __init__(self, api: MatrixApi, clock: Clock, allowed: Allowed) -> None:
        self._api = api
        self._clock = clock
        self._allowed = allowed
        self._pending: dict[str, str] = {}
        self._tries: dict[str, int] = {}
        self._next_at = 0.0

    @property
    def value(self) -> str:
        """The rooms that are not joined yet, each with who invited the account there, as a cursor."""
        return " ".join(f"{room}{_BY}{inviter}" for room, inviter in self._pending.items())

    def load(self, value: str) -> None:
        """Take the rooms of a stored cursor."""
        for one in value.split():
            room, _, inviter = one.partition(_BY)
            self._pending.setdefault(room, inviter)

    def take(self, invites: object, user: str) -> None:
        """Take the invitations of a sync."""
        for room, told in invites.items() if isinstance(invites, Mapping) else ():
            inviter = _inviter(told, user)
            if not _is_id(room, "!") or not _is_id(inviter, "@"):
                continue
            if not self._may_invite(str(inviter)):
                _log.info("an invitation to %s by %s is not accepted: the user is not allowed to", room, inviter)
            self._pending.setdefault(room, str(inviter))
            self._next_at = 0.0
        while len(self._pending) > _PENDING_MAX:
            shut_out = (room for room, inviter in self._pending.items() if not self._may_invite(inviter))
            room = next(shut_out, next(iter(self._pending)))
            _log.warning("an invitation to %s is forgotten: more than %d are pending", room, _PENDING_MAX)
            self.settle(room)

    def settle(self, room: str) -> None:
        """The account is in a room, or was uninvited."""
        self._pending.pop(room, None)
        self._tries.pop(room, None)

    async def join(self) -> None:
        """Join the rooms to which allowed users invited; what fails is tried again a minute later, five times."""
        if self._clock.monotonic_ms() < self._next_at:
            return
        for room in [room for room, inviter in self._pending.items() if self._may_invite(inviter)]:
            try:
                await self._api.call("POST", path_of("rooms", room, "join"), {})
            except MatrixRefused as error:
                if error.is_throttled:
                    self._next_at = self._clock.monotonic_ms() + wait_ms(error.retry_after_ms)
                    return
                self._failed(room, error, is_final=not error.passes)
            except MatrixUnreachable as error:
                self._failed(room, error)
            else:
                self.settle(room)

    def _failed(self, room: str, error: Exception, *, is_final: bool = False) -> None:
        self._tries[room] = self._tries.get(room, 0) + 1
        self._next_at = self._clock.monotonic_ms() + _AGAIN_MS
        if is_final or self._tries[room] >= _TRIES_MAX:
            _log.warning("the room %s cannot be joined: %s", room, error)
            self.settle(room)

    def _may_invite(self, user: str) -> bool:
        return self._allowed(user) if callable(self._allowed) else user in self._allowed


def _is_id(name: object, sign: str) -> bool:
    """Whether this can be the id of a room or a user: other names may not come into a cursor."""
    is_short = isinstance(name, str) and len(name) <= _ID_CHARS_MAX
    return is_short and str(name).startswith(sign) and len(str(name).split()) == 1


def _inviter(told: object, user: str) -> str | None:
    """Who invited the account, by the state that an invitation shows of its room."""
    state = told.get("invite_state") if isinstance(told, Mapping) else None
    events = state.get("events") if isinstance(state, Mapping) else None
    for event in events if isinstance(events, list) else ():
        if not isinstance(event, Mapping) or event.get("type") != "m.room.member" or event.get("state_key") != user:
            continue
        content, sender = event.get("content"), event.get("sender")
        if isinstance(content, Mapping) and content.get("membership") == "invite" and isinstance(sender, str):
            return sender
    return None
