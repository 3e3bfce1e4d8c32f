"""Topics: what the core tells of, and what others may call theirs."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType

from keepsaid.domain.event import RECEIVED
from keepsaid.domain.prompt import Json
from keepsaid.errors import InputError

CORE: Mapping[str, Mapping[str, str]] = MappingProxyType(
    {
        RECEIVED: {"message": "its id", "channel": "the channel", "number": "its number in its lane"},
        "turn.committed": {
            "turn": "its id",
            "batch": "the batch it answers",
            "replied": "whether there is a reply",
            "steered": "batches that joined it, where some did",
        },
        "command.executed": {
            "name": "the command",
            "outcome": "what became of it",
            "arguments": "characters that followed its name",
        },
        "lane.summarised": {
            "lane": "channel, account, conversation, key",
            "version": "of the summary",
            "first": "the first record that it stands for anew",
            "last": "the last one",
            "made": "how",
        },
        "lane.summary_failed": {
            "lane": "as above",
            "version": "as above",
            "attempts": "so far",
            "error": "what it was",
        },
        "lane.cut": {"lane": "as above", "version": "", "first": "", "last": "", "messages": "how many went"},
        "lane.reset": {"lane": "as above", "version": "", "first": "", "last": "", "messages": "how many went"},
        "session.started": {"session": "its id", "reason": "why", "first": "its first record"},
        "session.woke": {"session": "its id", "reason": "why"},
        "session.sleeping": {"session": "its id", "reason": "why"},
        "session.ended": {"session": "its id", "reason": "why", "first": "its first record", "last": "its last"},
        "memory.session_completed": {"session": "its id", "until": "the last record that was read"},
        "memory.session_parked": {"session": "its id", "error": "why it is not read any more"},
        "buffer.backlog": {
            "what": "which limit: count or age",
            "waiting": "messages",
            "oldest_age_ms": "of the oldest",
            "limit": "the limit",
        },
    }
)
"""What the core tells of: topics, and what the fields of their payloads mean."""

_TOPIC = re.compile(r"[a-z][a-z0-9_]*(\.[a-z0-9_]+)+")
_PATTERN = re.compile(r"([a-z][a-z0-9_]*|\*)(\.([a-z0-9_]+|\*))+")
_TOPIC_CHARS_MAX = 200
_PAYLOAD_BYTES_MAX = 64_000
_OURS = frozenset(topic.partition(".")[0] for topic in CORE) | {"batch", "reply", "task", "schedule", "extension"}
_UNTOLD = "Nothing was told."


def check_patterns(patterns: tuple[str, ...]) -> None:
    """Raise InputError unless each is a topic, or one with `*` for a segment."""
    wrong = [one for one in patterns if len(one) > _TOPIC_CHARS_MAX or not _PATTERN.fullmatch(one)]
    if wrong or not patterns:
        named = ", ".join(map(repr, wrong)) or "nothing"
        raise InputError(
            f"{named} cannot be subscribed to: a topic is words joined by dots, as turn.committed or memory.*",
            safe="Nothing was changed.",
            hint="keepsaid events topics",
        )


def checked(topic: str, payload: Mapping[str, Json]) -> str:
    """The payload as it is kept; raises InputError for a topic of the core, no topic, or too large a payload."""
    if len(topic) > _TOPIC_CHARS_MAX or not _TOPIC.fullmatch(topic):
        raise InputError(f"{topic!r} is no topic: words joined by dots, as deploy.finished", safe=_UNTOLD)
    if topic.partition(".")[0] in _OURS:
        raise InputError(f"{topic}: topics that begin so are the runtime's own", safe=_UNTOLD)
    try:
        kept = json.dumps(dict(payload), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"the payload of {topic} is not JSON: {error}", safe=_UNTOLD) from error
    if len(kept.encode("utf-8", "surrogatepass")) > _PAYLOAD_BYTES_MAX:
        raise InputError(f"the payload of {topic} is over 64 kB", safe=_UNTOLD)
    return kept
