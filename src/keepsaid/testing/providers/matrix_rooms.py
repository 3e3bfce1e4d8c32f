"""The rooms of a scripted homeserver: events in the order of one stream, and what a sync says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from keepsaid.values import frozen

USER, DEVICE = "@bot:test", "SCRIPTED"
"""The account that reads, and the device of its token."""

_MEMBER = "m.room.member"
_SHOWN = ("m.room.name", "m.room.encryption")
"""Types of state that an invitation shows, as far as they are used here."""


class MatrixError(Exception):
    """A refusal: its status, its code and words, and milliseconds to wait if there are any."""

    def __init__(self, status: int, code: str, what: str = "", retry_after_ms: int | None = None) -> None:
        super().__init__(what or code)
        self.status = status
        self.code = code
        self.retry_after_ms = retry_after_ms


@frozen
class RoomEvent:
    """An event and its place in the stream."""

    at: int
    room: str
    event: dict[str, Any]


class MatrixRoomsLedger:
    """Every event of the server. `now_ms` is its clock; `user` the account whose view a sync gives.

    `at` is the end of the stream. `transactions` has the ids of the events that the account sent, by its device and
    their transaction ids.
    """

    def __init__(self, now_ms: Callable[[], int], user: str = USER) -> None:
        self.user = user
        self.events: list[RoomEvent] = []
        self.transactions: dict[tuple[str, str], str] = {}
        self.invites: dict[str, tuple[int, str]] = {}
        self.left: dict[str, int] = {}
        self.direct: dict[str, list[str]] = {}
        self.direct_at = 0
        self._now_ms = now_ms
        self._state: dict[str, dict[tuple[str, str], RoomEvent]] = {}
        self.at = 1

    def rooms(self) -> list[str]:
        """The rooms in which the account is."""
        return [room for room in self._state if self.membership(room) == "join"]

    def membership(self, room: str, user: str = "") -> str:
        """What a user is to a room: `join`, `invite` or `leave`."""
        found = self._state.get(room, {}).get((_MEMBER, user or self.user))
        return str(found.event["content"]["membership"]) if found is not None else "leave"

    def state(self, room: str, kind: str, key: str = "") -> dict[str, Any] | None:
        """The content of a state event; None where there is none."""
        found = self._state.get(room, {}).get((kind, key))
        return dict(found.event["content"]) if found is not None else None

    def members(self, room: str) -> dict[str, dict[str, Any]]:
        """The contents of the member events of those who are in a room."""
        found = self._state.get(room, {})
        return {
            key: one.event["content"]
            for (kind, key), one in found.items()
            if kind == _MEMBER and one.event["content"]["membership"] == "join"
        }

    def add(self, room: str, kind: str, sender: str, content: Mapping[str, Any], **more: Any) -> str:
        """Add an event, with `state_key` a state event; returns its id."""
        self.at += 1
        at = self.at
        event: dict[str, Any] = {
            "event_id": f"$event{at}",
            "type": kind,
            "sender": sender,
            "origin_server_ts": self._now_ms(),
            "content": dict(content),
            **more,
        }
        placed = RoomEvent(at, room, event)
        state = self._state.setdefault(room, {})
        if "state_key" in more:
            place = kind, str(more["state_key"])
            if place in state:
                event["unsigned"] = {"prev_content": state[place].event["content"]}
            state[place] = placed
        self.events.append(placed)
        return str(event["event_id"])

    def enter(self, room: str, user: str, membership: str = "join", by: str = "") -> str:
        """A user joins or leaves a room, or is invited by another; returns the id of the event."""
        content = {"membership": membership, "displayname": name_of(user)}
        if user == self.user:
            self.left.pop(room, None)
            self.invites.pop(room, None)
            if membership == "invite":
                self.invites[room] = self.at + 1, by
            elif membership == "leave":
                self.left[room] = self.at + 1
        return self.add(room, _MEMBER, by or user, content, state_key=user)

    def mark_direct(self, user: str, room: str) -> None:
        """Put a room among those with one person: the account data `m.direct`."""
        self.at += 1
        self.direct_at = self.at
        self.direct.setdefault(user, []).append(room)

    def find(self, room: str, number: str) -> RoomEvent | None:
        """An event by its id."""
        return next((one for one in self.events if one.room == room and one.event["event_id"] == number), None)

    def has_reaction(self, room: str, user: str, content: Mapping[str, Any]) -> bool:
        """Whether a user gave an event of a room this reaction before."""
        given = (one.event for one in self.events if one.room == room and one.event["type"] == "m.reaction")
        return any((one["sender"], one["content"]) == (user, content) for one in given)

    def page(self, room: str, start: int, to: int, limit: int, types: Sequence[str] | None) -> list[RoomEvent]:
        """The events up to a place and after another, the newest first."""
        found = [one for one in self.events if one.room == room and to < one.at <= start and _is_of(one, types)]
        return found[::-1][:limit]

    def view(self, since: int, limit: int, types: Sequence[str] | None) -> dict[str, Any]:
        """The rooms of a sync from a place on; 0 for a first one."""
        joined = {room: one for room in self.rooms() if (one := self._room(room, since, limit, types))}
        left = {room: self._timeline(room, since, limit, types) for room, at in self.left.items() if at > since > 0}
        invited = {room: self._invited(room, by) for room, (at, by) in self.invites.items() if at > since}
        parts = (("join", joined), ("leave", left), ("invite", invited))
        return {name: part for name, part in parts if part}

    def _room(self, room: str, since: int, limit: int, types: Sequence[str] | None) -> dict[str, Any]:
        own = self._state[room][_MEMBER, self.user]
        is_new = own.at > since and own.event.get("unsigned", {}).get("prev_content", {}).get("membership") != "join"
        told = self._timeline(room, 0 if is_new else since, limit, types)
        events = told["timeline"]["events"]
        if not events:
            return {}
        named = {one["event_id"] for one in events}
        shown = {self.user, *(one["sender"] for one in events)}
        state = [
            one.event
            for (kind, key), one in self._state[room].items()
            if (one.at > since or is_new) and one.event["event_id"] not in named and (not types or kind in types)
            if kind != _MEMBER or key in shown
        ]
        told["state"] = {"events": state}
        if is_new or not since or any(one["type"] == _MEMBER for one in events):
            told["summary"] = {"m.joined_member_count": len(self.members(room))}
        return told

    def _timeline(self, room: str, since: int, limit: int, types: Sequence[str] | None) -> dict[str, Any]:
        found = self.page(room, self.at, since, limit + 1, types)
        held = found[:limit][::-1]
        start = (held[0].at if held else self.at + 1) - 1
        timeline = {"events": [one.event for one in held], "limited": len(found) > limit, "prev_batch": f"s{start}"}
        return {"timeline": timeline}

    def _invited(self, room: str, by: str) -> dict[str, Any]:
        """The invitation and what the state of the room shows to who is invited, without ids and times."""
        shown = (*((kind, "") for kind in _SHOWN), (_MEMBER, by), (_MEMBER, self.user))
        state = self._state[room]
        events = [
            {"type": kind, "state_key": key, **{name: state[kind, key].event[name] for name in ("sender", "content")}}
            for kind, key in shown
            if (kind, key) in state
        ]
        return {"invite_state": {"events": events}}


def name_of(user: str) -> str:
    """The name that a user shows: `@ann:test` is Ann."""
    return user[1:].partition(":")[0].capitalize()


def _is_of(one: RoomEvent, types: Sequence[str] | None) -> bool:
    return not types or one.event["type"] in types
