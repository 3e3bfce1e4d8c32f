"""Messages that may have arrived at Matrix: found by the key of their part, which only the account itself writes."""

from __future__ import annotations

import json
from collections.abc import Mapping

from keepsaid.adapters.channels.matrix.api import MatrixApi, path_of
from keepsaid.adapters.channels.matrix.events import MESSAGE
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_EVENT

KEY = "org.keepsaid.part"
"""The field of a message that has the key of its part."""

_EARLIER_MS = 60_000
"""How far before the first try is looked: the clocks of the homeserver and of this machine differ."""

_PAGE, _PAGES_MAX = 100, 10


async def find_sent(api: MatrixApi, room: str, user: str, key: str, since_ms: int) -> str | None:
    """The id of the message that `user` sent to a room with a key; None where none of the newest 1,000 is.

    It is looked for back to `since_ms` (milliseconds UTC) less a minute. Raises MatrixRefused and MatrixUnreachable.
    """
    start = ""
    for _ in range(_PAGES_MAX):
        query: dict[str, str | int] = {
            "dir": "b",
            "limit": _PAGE,
            "filter": json.dumps({"types": [MESSAGE, ENCRYPTED_EVENT]}),
        }
        if start:
            query["from"] = start
        page = await api.call("GET", path_of("rooms", room, "messages"), query=query)
        chunk, end = page.get("chunk"), page.get("end")
        events = [one for one in chunk if isinstance(one, Mapping)] if isinstance(chunk, list) else []
        for event in events:
            content, number = event.get("content"), event.get("event_id")
            is_own = event.get("sender") == user and isinstance(content, Mapping) and content.get(KEY) == key
            if is_own and isinstance(number, str):
                return number
        if not isinstance(end, str) or end == start or (events and all(_is_before(one, since_ms) for one in events)):
            break
        start = end
    return None


def _is_before(event: Mapping[str, object], since_ms: int) -> bool:
    at = event.get("origin_server_ts")
    return isinstance(at, int) and at < since_ms - _EARLIER_MS
