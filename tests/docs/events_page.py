"""The page of every topic that the runtime tells of, made from their schemas."""

from __future__ import annotations

from collections.abc import Iterator

from tests.docs.markdown import lines_of, table

from keepsaid.domain.ids import PREFIXES
from keepsaid.events.catalog import CORE
from keepsaid.events.schema import Schema

_HEAD = """\
# Topics

What the runtime tells of, and what an event of each topic holds. How to be told, and what is promised of it:
[events](../concepts/events.md). `keepsaid ext events topics --json` prints the same as JSON Schema.

Every event is a [CloudEvent 1.0](https://cloudevents.io); the fields below are those of its `data`.
Its `subject` is what it is about: events of the same subject come in order. Ids are texts with a
prefix, as everywhere; the journal itself keeps them as numbers.

What is told of many at once stands together in one line of the journal: a subscriber hears of each
by itself, but `wait_for` does not look there.
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
    told += ["Many come together."] if schema.together else []
    yield f"{' '.join(told)}\n"
    rows = [
        [f"`{name}`", f"{one.type}{', or missing' * one.optional}", one.meaning] for name, one in schema.fields.items()
    ]
    yield table(["field", "type", "meaning"], rows)
