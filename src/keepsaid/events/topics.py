"""Topics: what the core tells of, and what others may call theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.prompt import Json
from keepsaid.errors import InputError
from keepsaid.events.schema import Schema
from keepsaid.events.told.extensions import EXTENSIONS
from keepsaid.events.told.lanes import LANES
from keepsaid.events.told.memory import MEMORY
from keepsaid.events.told.road import ROAD
from keepsaid.events.told.schedules import SCHEDULES
from keepsaid.events.told.tasks import TASKS

CORE: Mapping[str, Schema] = MappingProxyType({**ROAD, **LANES, **MEMORY, **TASKS, **SCHEDULES, **EXTENSIONS})
"""What the core tells of, each with the schema of its payload."""

ALIASES: Mapping[str, str] = MappingProxyType({one.alias: topic for topic, one in CORE.items() if one.alias})
"""Other names of topics, as seed 002 has them: `user_message`, `agent_response`."""

USER_MESSAGE = "user.message"
"""What seed 002's channels emit for what somebody said: no fact to tell of, but a message for the buffer."""

_TOPIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_PATTERN = re.compile(r"([a-z][a-z0-9_]*|\*)(\.([a-z0-9_]+|\*))+")
_TOPIC_CHARS_MAX = 200
_PAYLOAD_BYTES_MAX = 64_000
_OURS = frozenset(topic.partition(".")[0] for topic in CORE) | {"batch", "reply", "task", "schedule", "extension"}
_UNTOLD = "Nothing was told."


def topics_of(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, with topics for aliases; raises InputError unless each is a topic, one with `*`, or an alias."""
    patterns = tuple(ALIASES.get(one, one) for one in patterns)
    wrong = [one for one in patterns if len(one) > _TOPIC_CHARS_MAX or not _PATTERN.fullmatch(one)]
    if wrong or not patterns:
        named = ", ".join(map(repr, wrong)) or "nothing"
        raise InputError(
            f"{named} cannot be subscribed to: a topic is words joined by dots, as turn.committed or memory.*",
            safe="Nothing was changed.",
            hint="keepsaid events topics",
        )
    return patterns


def checked(topic: str, payload: Mapping[str, Json]) -> str:
    """The payload as it is kept; raises InputError for a topic of the core, no topic, or too large a payload."""
    if len(topic) > _TOPIC_CHARS_MAX or not _TOPIC.fullmatch(topic):
        raise InputError(f"{topic!r} is no topic: words joined by dots, as deploy.finished", safe=_UNTOLD)
    if topic == USER_MESSAGE:
        raise InputError(f"{topic} is what somebody said: it is handed over as a message, not told", safe=_UNTOLD)
    if topic.partition(".")[0] in _OURS:
        raise InputError(f"{topic}: topics that begin so are the runtime's own", safe=_UNTOLD)
    try:
        kept = json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the payload of {topic} is not JSON: {error}", safe=_UNTOLD) from error
    if len(kept.encode("utf-8", "surrogatepass")) > _PAYLOAD_BYTES_MAX:
        raise InputError(f"the payload of {topic} is over 64 kB", safe=_UNTOLD)
    return kept
