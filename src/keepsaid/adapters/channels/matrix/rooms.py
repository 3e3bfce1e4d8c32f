"""The rooms of an account: their titles, who is in them, which are direct, and which are encrypted.

A room is looked up when its first message comes; after that, its state events keep what is known of it up to date.
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Iterable, Mapping

from keepsaid.adapters.channels.matrix.api import Answer, MatrixApi, MatrixRefused, MatrixUnreachable, path_of
from keepsaid.adapters.channels.matrix.events import MESSAGE, MatrixPlace, RelatedEvent, related_event
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_EVENT, ENCRYPTION, Event, MatrixUser
from keepsaid.errors import InputError
from keepsaid.text.normal import cut

_log = logging.getLogger("keepsaid.matrix")
_ROOMS_MAX, _NAMES_MAX, _EVENTS_MAX = 1_000, 2_000, 4_000
_TITLE_CHARS_MAX = 200
_TITLE, _ALIAS, _MEMBER, _DIRECT = "m.room.name", "m.room.canonical_alias", "m.room.member", "m.direct"
_TITLES = ((_TITLE, "name"), (_ALIAS, "alias"))


class MatrixRoom:
    """A room as it is known: `joined` counts its members, None where that has to be looked up."""

    def __init__(self) -> None:
        self.titles: dict[str, str] = {}
        self.names: dict[str, str] = {}
        self.joined: int | None = None
        self.is_titled = False

    @property
    def title(self) -> str:
        """The name of the room, else its address; "" without either."""
        return self.titles.get(_TITLE) or self.titles.get(_ALIAS) or ""

    def rename(self, user: str, name: object) -> None:
        """A member is called so now, by themselves; at most 2,000 names are kept."""
        if len(self.names) >= _NAMES_MAX and user not in self.names:
            self.names.clear()
        self.names[user] = cut(name, _TITLE_CHARS_MAX) if isinstance(name, str) else ""


class MatrixRooms:
    """What is known of the rooms of an account. `encrypted` has the ids of those that are.

    `reads_encrypted` says that their messages can be read.
    """

    def __init__(self, api: MatrixApi, *, reads_encrypted: bool = False) -> None:
        self._api = api
        self._reads_encrypted = reads_encrypted
        self.encrypted: set[str] = set()
        self._plain: set[str] = set()
        self._rooms: OrderedDict[str, MatrixRoom] = OrderedDict()
        self._direct: frozenset[str] | None = None
        self._events: OrderedDict[str, RelatedEvent] = OrderedDict()

    async def place(self, room: str, sender: object, user: MatrixUser) -> MatrixPlace:
        """The room of a message. Raises MatrixRefused for what passes, and MatrixUnreachable."""
        known = self._known(room)
        if not known.is_titled:
            for kind, field in _TITLES:
                if kind not in known.titles:
                    self._entitle(known, kind, field, await self._find(path_of("rooms", room, "state", kind)))
            known.is_titled = True
        if known.joined is None:
            await self._count(room, known)
        if self._direct is None:
            self.mark_direct(await self._find(path_of("user", user.id, "account_data", _DIRECT)))
        is_direct = room in (self._direct or ()) or known.joined == 2
        if isinstance(sender, str) and sender and sender not in known.names:
            member = await self._find(path_of("rooms", room, "state", _MEMBER, sender))
            known.rename(sender, member.get("displayname"))
        name = known.names.get(sender, "") if isinstance(sender, str) else ""
        return MatrixPlace(room, is_direct, known.title, name)

    async def is_encrypted(self, room: str) -> bool:
        """Whether nothing may be sent to a room as plain text. Raises as `place`."""
        if room in self.encrypted:
            return True
        if room not in self._plain:
            if await self._find(path_of("rooms", room, "state", ENCRYPTION)):
                self.encrypted.add(room)
                return True
            self._plain.add(room)
        return False

    def mark_direct(self, content: object) -> None:
        """Take the content of `m.direct`: the rooms with one person, by the person."""
        lists = content.values() if isinstance(content, Mapping) else ()
        self._direct = frozenset(room for rooms in lists if isinstance(rooms, list) for room in map(str, rooms))

    def title(self, room: str) -> str:
        """The title of a room with its id, or the id alone."""
        known = self._rooms.get(room)
        return f"{known.title} ({room})" if known is not None and known.title else room

    def take(self, room: str, told: Mapping[str, object], state: Iterable[Event], timeline: Iterable[Event]) -> None:
        """Take what a sync says of a room: its state, what happened since, and the count of its members."""
        known = self._known(room)
        for event in state:
            self._take_event(room, known, event)
        for event in timeline:
            self._take_event(room, known, event)
            if event.get("type") == _MEMBER:
                known.joined = None
        summary = told.get("summary")
        counted = summary.get("m.joined_member_count") if isinstance(summary, Mapping) else None
        if isinstance(counted, int) and not isinstance(counted, bool):
            known.joined = counted

    def leave(self, room: str) -> None:
        """The account is not in a room any more."""
        self._rooms.pop(room, None)
        self.encrypted.discard(room)
        self._plain.discard(room)

    def _take_event(self, room: str, known: MatrixRoom, event: Event) -> None:
        kind, content, key = event.get("type"), event.get("content"), event.get("state_key")
        told = content if isinstance(content, Mapping) else {}
        if kind == ENCRYPTED_EVENT or (kind == ENCRYPTION and key == ""):
            self.encrypted.add(room)
            self._plain.discard(room)
        for title, field in _TITLES:
            if kind == title and key == "":
                self._entitle(known, title, field, told)
        if kind == _MEMBER and isinstance(key, str):
            known.rename(key, told.get("displayname"))

    def forget_counts(self) -> None:
        """Look up again who is in each room: events may have been missed."""
        for known in self._rooms.values():
            known.joined = None

    async def related(self, room: str, number: str) -> RelatedEvent | None:
        """The event that a later one refers to; None where the server does not show it. Raises as `place`."""
        if number not in self._events:
            found = await self._find(path_of("rooms", room, "event", number))
            self._keep(number, {**found, "event_id": number})
        return self._events.get(number)

    def note(self, event: Event) -> None:
        """Remember an event of a room, as a later one may refer to it: the newest 4,000.

        One that was deleted before it was read is remembered without its type, so that its deletion is ignored.
        """
        number = event.get("event_id")
        if isinstance(number, str) and number not in self._events:
            self._keep(number, event if event.get("content") else {**event, "type": ""})

    def _keep(self, number: str, event: Event) -> None:
        if self._reads_encrypted and event.get("type") == ENCRYPTED_EVENT:
            event = {**event, "type": MESSAGE}
        try:
            self._events[number] = related_event(event)
        except InputError:
            return
        if len(self._events) > _EVENTS_MAX:
            self._events.popitem(last=False)

    async def _count(self, room: str, known: MatrixRoom) -> None:
        """Look up the members of a room; one with too many for an answer is not direct."""
        try:
            found = await self._find(path_of("rooms", room, "joined_members"))
        except MatrixUnreachable as error:
            if not error.is_too_long:
                raise
            known.joined = _NAMES_MAX
            return
        joined = found.get("joined")
        members = joined if isinstance(joined, Mapping) else {}
        known.joined = len(members)
        for member, profile in members.items() if len(members) <= _NAMES_MAX else ():
            known.rename(member, profile.get("display_name") if isinstance(profile, Mapping) else None)

    def _entitle(self, known: MatrixRoom, kind: str, field: str, content: Mapping[str, object]) -> None:
        told = content.get(field)
        known.titles[kind] = cut(told, _TITLE_CHARS_MAX) if isinstance(told, str) else ""

    async def _find(self, path: str) -> Answer:
        """What is at a path; nothing where there is none, or the account may not read it."""
        try:
            return await self._api.call("GET", path)
        except MatrixRefused as error:
            if error.passes:
                raise
            return {}

    def _known(self, room: str) -> MatrixRoom:
        known = self._rooms.setdefault(room, MatrixRoom())
        self._rooms.move_to_end(room)
        if len(self._rooms) > _ROOMS_MAX:
            self._rooms.popitem(last=False)
        return known
