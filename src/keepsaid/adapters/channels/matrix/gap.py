"""Messages that a sync left out: read back to the last sync that was stored, within the bounds of spec channels C19."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, path_of
from keepsaid.adapters.channels.matrix.events import MESSAGE, POLLS, REACTED, REDACTION, STICKER
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_EVENT, ENCRYPTION, Event

_log = logging.getLogger("keepsaid.matrix")
DAY_MS = 86_400_000
ROOM_MAX, ALL_MAX = 100, 500
_PAGE, _PAGES_MAX = 100, 10
_MEMBER = "m.room.member"

STATE_TYPES = (_MEMBER, "m.room.name", "m.room.canonical_alias", ENCRYPTION)
TIMELINE_TYPES = (MESSAGE, STICKER, *POLLS, REACTED, REDACTION, ENCRYPTED_EVENT, *STATE_TYPES)
"""The events that are read; the server leaves out all others."""

_FILTER = json.dumps({"types": TIMELINE_TYPES})


async def missed_events(
    api: MatrixApi, room: str, timeline: Mapping[str, object], since: str, user: str
) -> list[object]:
    """The events of a room that are before a timeline and after the sync `since`, oldest first; 1,000 at most.

    Those before `user` was invited to the room, or joined it, are left out. Raises MatrixRefused for what passes, and
    MatrixUnreachable.
    """
    start = timeline.get("prev_batch")
    found: list[object] = []
    for _ in range(_PAGES_MAX):
        if not isinstance(start, str):
            break
        query: dict[str, str | int] = {"dir": "b", "from": start, "limit": _PAGE, "filter": _FILTER}
        if since:
            query["to"] = since
        try:
            page = await api.call("GET", path_of("rooms", room, "messages"), query=query)
        except MatrixRefused as error:
            if error.passes:
                raise
            _log.warning("older messages of %s cannot be read: %s", room, error)
            break
        chunk, end = page.get("chunk"), page.get("end")
        events = chunk if isinstance(chunk, list) else []
        found += events
        if end == start or not isinstance(end, str) or any(_begins(event, user) for event in events):
            break
        start = end
    else:
        _log.warning("only the newest messages of %s are read, and not those before", room)
    return since_joined(found[::-1], user)


def since_joined(events: Sequence[object], user: str) -> list[object]:
    """Of events, oldest first, those since the account was invited to the room, or else since it joined it.

    All of them if it did neither meanwhile: what was said before was not said to it.
    """
    begins = [n for n, event in enumerate(events) if _begins(event, user)]
    if not begins:
        return list(events)
    last = begins[-1]
    is_invited = len(begins) > 1 and _membership(events[begins[-2]]) == "invite"
    return list(events[begins[-2] if is_invited else last :])


def is_recent(event: Event, now_ms: int) -> bool:
    """Whether an event is not older than a day; one without a time is recent."""
    at = event.get("origin_server_ts")
    return isinstance(at, bool) or not isinstance(at, int | float) or at >= now_ms - DAY_MS


def _begins(event: object, user: str) -> bool:
    """Whether an event invites the account to a room, or lets it in."""
    if not isinstance(event, Mapping) or event.get("type") != _MEMBER or event.get("state_key") != user:
        return False
    unsigned = event.get("unsigned")
    before = unsigned.get("prev_content") if isinstance(unsigned, Mapping) else None
    was_in = isinstance(before, Mapping) and before.get("membership") == "join"
    return _membership(event) in ("invite", "join") and not was_in


def _membership(event: object) -> object:
    content = event.get("content") if isinstance(event, Mapping) else None
    return content.get("membership") if isinstance(content, Mapping) else None
