"""Events as others read them: CloudEvents 1.0, with ids as people see them (https://cloudevents.io, JSON format)."""

from __future__ import annotations

from typing import Any

from keepsaid.domain.event import DeliveryLine, Event, SubscriberLine
from keepsaid.domain.ids import PREFIXES, show, when
from keepsaid.domain.prompt import Json
from keepsaid.events.catalog import CORE
from keepsaid.events.schema import Field, Holds

_SOURCE = "/keepsaid"


def cloud_event(event: Event) -> dict[str, Any]:
    """One event."""
    shape: dict[str, Any] = {"specversion": "1.0", "id": str(event.id), "source": _SOURCE, "type": event.topic}
    if event.correlation_id:
        shape["subject"] = _subject(event)
    fields = CORE[event.topic].fields if event.topic in CORE else {}
    data = {name: _shown(fields.get(name), value) for name, value in event.payload.items()}
    return {**shape, "time": when(event.at), "datacontenttype": "application/json", "data": data}


def _subject(event: Event) -> str:
    """What it is about; the core's own are mostly about a thing whose id is a number."""
    noun = CORE[event.topic].about if event.topic in CORE else ""
    number = event.correlation_id
    return show(noun, int(number)) if noun in PREFIXES and number.isascii() and number.isdigit() else number


def _shown(field: Field | None, value: Json) -> Json:
    if field is not None and field.of in PREFIXES:
        if field.holds is Holds.ID and isinstance(value, int):
            return show(field.of, value)
        if field.holds is Holds.IDS and isinstance(value, list):
            return [show(field.of, one) if isinstance(one, int) else one for one in value]
    return value


def subscriber_shape(line: SubscriberLine) -> dict[str, Any]:
    """A subscriber, and how far it has been told."""
    counts = {"behind": line.behind, "pending": line.pending, "processing": line.processing, "dead": line.dead}
    return {"name": line.name, "topics": list(line.topics), **counts}


def delivery_shape(line: DeliveryLine) -> dict[str, Any]:
    """A delivery, and where it stands."""
    told = {"subscriber": line.subscriber, "event": str(line.event_id), "topic": line.topic, "state": line.state}
    stands = {"attempts": line.attempts, "due_at": when(line.due_at), "error": line.error or None}
    return {"id": show("delivery", line.id), **told, **stands}
