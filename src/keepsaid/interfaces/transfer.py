"""Forgetting, exports, imports and events as JSON, the same by command, over HTTP and in the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from keepsaid.domain import bundle, forgetting, prompt
from keepsaid.domain.event import DeliveryLine, Event, SubscriberLine
from keepsaid.domain.ids import PREFIXES, read, show, when
from keepsaid.errors import InputError
from keepsaid.events import catalog, schema
from keepsaid.interfaces.shapes import Shape, fields_of, times_of
from keepsaid.memory.importing import TYPES, ImportReport
from keepsaid.services import bundles, importing
from keepsaid.services.forgetting import ForgetPreview, ForgetRequest
from keepsaid.text.normal import cut

_TEXT_CHARS = 200
_SAFE = "Nothing was changed."
_HINT = "keepsaid memory forget --help"


def forget_request(fields: Mapping[str, Any]) -> ForgetRequest:
    """What a request body asks for; raises InputError."""
    names = ("person", "conversation", "filter", "undo_for")
    ids, rest = fields.get("ids") or [], [fields.get(name) or "" for name in names]
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in (*ids, *rest)):
        raise InputError(f"ids must be a list of texts; {', '.join(names)} texts", safe=_SAFE, hint=_HINT)
    return ForgetRequest(tuple(ids), *rest)


def preview_shape(preview: ForgetPreview) -> Shape:
    """What would go, counted, with the first memories of it."""
    shown = [
        {"id": show("memory", one.id), "kind": str(one.new.kind), "text": cut(one.text, _TEXT_CHARS)}
        for one in preview.memories
    ]
    return {"dry_run": True, "counts": dict(preview.counts), "memories": shown}


def forgetting_shape(one: forgetting.Forgetting, backups: Sequence[str] = ()) -> Shape:
    """A request to forget, how far it is, and what went, by place."""
    return {
        "id": show("forgetting", one.id),
        **fields_of(one, "state", "how", "by"),
        **times_of(one, "requested_at", "changed_at", "undo_until"),
        "counts": dict(one.counts),
        "backups": list(backups),
    }


def import_shape(report: ImportReport, asked: importing.ImportRequest, *, dry_run: bool) -> Shape:
    """What became of all lines, counted, and those that were not taken over one by one."""
    names = [*TYPES.values(), *(["lines"] if any(what == "lines" for what, _ in report.counts) else [])]
    counts = {what: {str(how): report.counts[what, how] for how in bundle.ImportOutcome} for what in names}
    told = [
        {"line": number, "type": what, "outcome": str(verdict.outcome), "why": verdict.why}
        for number, what, verdict in report.told
    ]
    about = {"dry_run": dry_run, "file": str(asked.file), "from": asked.source, "trust": str(asked.trust)}
    return {**about, "counts": counts, "secrets": report.secrets, "told": told, "not_told": report.left_out}


def export_shape(done: bundles.Export) -> Shape:
    about = {"file": str(done.file), "format": done.format, "made_at": done.made_at, "persons": list(done.persons)}
    return {**about, "counts": dict(done.counts), "bytes": done.bytes}


_SOURCE = "/keepsaid"


def cloud_event(event: Event) -> dict[str, Any]:
    shape: dict[str, Any] = {"specversion": "1.0", "id": str(event.id), "source": _SOURCE, "type": event.topic}
    if event.correlation_id:
        shape["subject"] = _subject(event)
    fields = catalog.CORE[event.topic].fields if event.topic in catalog.CORE else {}
    data = {name: _shown(fields.get(name), value) for name, value in event.payload.items()}
    return {**shape, "time": when(event.at), "datacontenttype": "application/json", "data": data}


def _subject(event: Event) -> str:
    """What it is about; the core's own are mostly about a thing whose id is a number."""
    noun = catalog.CORE[event.topic].about if event.topic in catalog.CORE else ""
    number = event.correlation_id
    return show(noun, int(number)) if noun in PREFIXES and number.isascii() and number.isdigit() else number


def subject_in(topic: str, about: str) -> str:
    """What an event is stored under that is about something, as events name it: `fgt_...` is a number there."""
    noun = catalog.CORE[topic].about if topic in catalog.CORE else ""
    number = read(noun, about) if noun in PREFIXES else None
    return about if number is None else str(number)


def _shown(field: schema.Field | None, value: prompt.Json) -> prompt.Json:
    if field is not None and field.of in PREFIXES:
        if field.holds is schema.FieldType.ID and isinstance(value, int):
            return show(field.of, value)
        if field.holds is schema.FieldType.IDS and isinstance(value, list):
            return [show(field.of, one) if isinstance(one, int) else one for one in value]
    return value


def subscriber_shape(line: SubscriberLine) -> dict[str, Any]:
    """A subscriber, and how far it has been told."""
    counts = fields_of(line, "behind", "pending", "processing", "dead")
    return {"name": line.name, "topics": list(line.topics), **counts}


def delivery_shape(line: DeliveryLine) -> dict[str, Any]:
    """A delivery, and where it stands."""
    told = {"subscriber": line.subscriber, "event": str(line.event_id), "topic": line.topic, "state": line.state}
    stands = {"attempts": line.attempts, "due_at": when(line.due_at), "error": line.error or None}
    return {"id": show("delivery", line.id), **told, **stands}
