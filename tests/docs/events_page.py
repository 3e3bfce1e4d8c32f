"""The page of every topic of events, made from their schemas."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.markdown import lines_of, table

from keepsaid.domain.ids import PREFIXES
from keepsaid.events.catalog import CORE
from keepsaid.events.schema import Schema

_HEAD = """\
# Topics

The events that keepsaid publishes, by topic, with their fields. How to subscribe, and what is guaranteed:
[events](../concepts/events.md). `keepsaid ext events topics --json` prints the same as JSON Schema.

Every event is a [CloudEvent 1.0](https://cloudevents.io); the fields below are those of its `data`.
Events with the same `subject` are delivered in order. Ids are texts with a prefix, as everywhere.

Events marked as grouped share one line of the journal. A subscriber gets each of them separately, but
`wait_for` does not find them.
"""


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    family = ""
    for topic, schema in CORE.items():
        if topic.partition(".")[0] != family:
            family = topic.partition(".")[0]
            parts.append(f"## {family}\n")
        parts += _topic(topic, schema)
    return lines_of("\n".join(parts))


def _topic(topic: str, schema: Schema) -> Iterator[str]:
    yield f"### {topic}\n"
    about = f"`{PREFIXES[schema.about]}_…`" if schema.about in PREFIXES else schema.about
    told = [schema.when, f"Subject: {about}." if about else "No subject."]
    told += [f"Also called `{schema.alias}`."] if schema.alias else []
    told += ["Grouped."] if schema.together else []
    yield f"{' '.join(told)}\n"
    rows = [
        [f"`{name}`", f"{one.type}{', or missing' * one.optional}", one.meaning] for name, one in schema.fields.items()
    ]
    yield table(["field", "type", "meaning"], rows)
