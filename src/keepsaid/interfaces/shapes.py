"""Stored things as JSON, the same by command, over HTTP and in the library."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from keepsaid.domain import commits, forgetting, learning, receipt, views, visibility
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.entities import Entity, EntityPage
from keepsaid.domain.event import DeliveryLine, Event, SubscriberLine
from keepsaid.domain.ids import PREFIXES, read, show, when
from keepsaid.domain.memory import Memory, Recalled
from keepsaid.domain.message import Lane
from keepsaid.domain.prompt import Json
from keepsaid.domain.reply import StoredReply
from keepsaid.errors import InputError
from keepsaid.events import catalog, schema
from keepsaid.text.normal import cut

if TYPE_CHECKING:
    from keepsaid.app.serving import Reloaded
    from keepsaid.domain.maintenance import Holdings
    from keepsaid.engine.caretakers import PruneProgress
    from keepsaid.memory.maintenance import MaintenanceProgress
    from keepsaid.services.explaining import Absence
    from keepsaid.services.forgetting import ForgetPreview, ForgetRequest
    from keepsaid.services.people import PeopleList

Shape = dict[str, Any]


def fields_of(thing: object, *names: str) -> Shape:
    """Attributes as JSON under their own names."""
    return {name: getattr(thing, name) for name in names}


def times_of(thing: object, *names: str) -> Shape:
    """Attributes in milliseconds UTC as ISO 8601 under their own names; None stays None."""
    return {name: when(getattr(thing, name)) for name in names}


def lane_shape(lane: Lane) -> Shape:
    return fields_of(lane, "channel", "account", "conversation", "key")


USES_MAX = 1_000
"""The newest turns that recalled a memory, at most this number, are listed."""


def receipt_shape(received: commits.Received) -> Shape:
    """The receipt of a message that is on disk."""
    place = {"conversation": received.lane.conversation, "lane": received.lane.key}
    return {"id": show("message", received.id), "intake": str(received.intake), "number": received.number, **place}


def story_shape(story: views.Story) -> Shape:
    """A message and its outcome."""
    message, inbound = story.message, story.message.inbound
    return {
        "id": show("message", message.id),
        "state": story.state,
        **fields_of(inbound.origin, "channel", "account", "conversation"),
        "lane": message.lane.key,
        "lane_reason": story.placed or None,
        "number": message.number,
        **fields_of(inbound.origin, "sender", "name"),
        "trust": str(inbound.origin.trust),
        "event": inbound.content.event,
        "external_id": inbound.marks.external_id,
        **fields_of(message, "text", "damaged"),
        "priority": inbound.priority,
        "received_at": when(message.received_at),
        "batch": batch_shape(story.batch) if story.batch else None,
        "turn": show("turn", story.turn_id) if story.turn_id else None,
        "task": task_shape(story.task) if story.task else None,
        "replies": [reply_shape(reply) for reply in story.replies],
        "remembered": None if story.remembered is None else [remembered_shape(one) for one in story.remembered],
        "silent": story.silent or None,
    }


def remembered_shape(one: learning.RememberedMemory) -> Shape:
    """A memory that a turn stored, and the ids of the memories that it replaced."""
    new = one.memory.new
    told = {"id": show("memory", one.memory.id), "kind": str(new.kind), "text": new.text}
    return {**told, "replaces": [show("memory", id_) for id_ in one.replaces]}


def task_shape(task: views.Spawned) -> Shape:
    """Work that a rule wrote down."""
    return {"id": show("task", task.id), "state": task.state, "description": task.description}


def next_try(batch: StoredBatch) -> int | None:
    """When a batch that went wrong is tried again; None when it is not going to be."""
    return batch.ready_at if batch.state == "queued" and (batch.deferrals or batch.attempts) else None


def batch_shape(batch: StoredBatch) -> Shape:
    """A batch, its verdict, and what it waits for."""
    verdict = batch.verdict
    return {
        "id": show("batch", batch.id),
        "state": batch.state,
        "numbers": [batch.first, batch.last],
        "verdict": str(verdict.action),
        "rule": verdict.rule,
        "rules_version": verdict.version,
        "reason": verdict.reason,
        **fields_of(batch, "attempts", "deferrals", "error"),
        "next_try_at": when(next_try(batch)),
        **times_of(batch, "created_at", "pruned_at"),
    }


def reply_shape(reply: StoredReply) -> Shape:
    """A reply and where it stands."""
    return {
        "id": show("reply", reply.id),
        "state": reply.state,
        **fields_of(reply.draft, "text", "notice"),
        "files": [{"file": one.handle, "name": one.name, "type": one.kind, "bytes": one.size} for one in reply.files],
        "turn": show("turn", reply.turn_id) if reply.turn_id else None,
        **fields_of(reply, "attempts", "detail", "possible_duplicate"),
        "created_at": when(reply.created_at),
    }


def prune_shape(run: PruneProgress, *, stopping: bool = False) -> Shape:
    """What a run of the pruner removed, whether it is over, why it removed nothing, and whether a stop has begun."""
    counts = fields_of(run, "messages", "batches", "keys", "over")
    return {**counts, "refused": run.refusal, "stopping": stopping}


def maintained_shape(done: MaintenanceProgress, *, stopping: bool = False) -> Shape:
    """What a run of maintenance changed, by task, whether it is over, and whether a stop has begun."""
    changed = {str(task): count for task, count in done.changed.items()}
    counts = fields_of(done, "archived", "related", "ruled", "steps")
    timed = {"longest_ms": round(done.longest_ms, 2), "over": done.over, "stopping": stopping}
    return {"changed": changed, **counts, **timed}


def holdings_shape(held: Holdings) -> Shape:
    """What memory holds, and when it was last looked after."""
    ended = [run.ended_at for run in held.runs if run.ended_at is not None]
    over = len(ended) == len(held.runs)
    counts = {name: dict(getattr(held, name)) for name in ("kinds", "states", "scopes", "counts")}
    return {**counts, "maintained_at": when(max(ended)) if ended and over else None}


def recalled_shape(found: Recalled, at: int) -> Shape:
    """The hits of a search in their order, and the legs that could not answer; states are as of `at` (ms UTC)."""
    hits = []
    for hit in found.hits:
        memory = memory_shape(hit.memory, at)
        hits.append({**fields_of(hit, "leg", "rank", "neighbour"), "score": round(hit.score, 4), "memory": memory})
    return {"hits": hits, "missing": list(found.missing), "took_ms": round(found.took_ms, 2)}


def memory_shape(memory: Memory, at: int) -> Shape:
    """A memory, its state at a time (milliseconds UTC), and where it came from."""
    new = memory.new
    return {
        "id": show("memory", memory.id),
        "kind": str(new.kind),
        "state": memory.state_at(at),
        **fields_of(new, "text", "speaker", "speaker_id", "subject", "subject_id", "scope"),
        "trust": str(new.trust),
        **fields_of(new, "importance", "confidence", "attribute", "value"),
        "valid_from": when(memory.holds_from),
        "valid_to": when(memory.valid_to),
        "superseded_by": None if memory.superseded_by is None else show("memory", memory.superseded_by),
        **fields_of(memory, "evidence", "pinned"),
        "said_at": when(new.said_at),
        "recorded_at": when(memory.recorded_at),
        "access_count": memory.access_count,
        "last_access_at": when(memory.last_access_at),
        "sources": [source.name for source in new.sources],
    }


def person_shape(person: visibility.Person) -> Shape:
    joined = [{"name": one.name, "joined_at": when(one.at), "joined_by": one.by} for one in person.identities]
    return {"id": person.id, "identities": joined}


def seen_shape(one: visibility.SeenIdentity) -> Shape:
    """An identity that something is remembered from."""
    return {**fields_of(one, "name", "called", "memories"), "last_at": when(one.last_at)}


def people_shape(found: PeopleList) -> Shape:
    """Persons that were joined, and identities that something is remembered from."""
    return {"people": [person_shape(one) for one in found.people], "seen": [seen_shape(one) for one in found.seen]}


def entity_shape(one: Entity) -> Shape:
    """An entity with its names and how often memories mention it."""
    told = {"key": one.key, "kind": one.kind, "names": [*one.names]}
    return {**told, "memories": one.memories, "last_at": when(one.last_at)}


def entity_page_shape(page: EntityPage, at: int) -> Shape:
    """What is known of an entity, at a time in milliseconds UTC."""
    lists = {"facts": page.facts, "past": page.past, "messages": page.messages}
    memories = {name: [memory_shape(one, at) for one in found] for name, found in lists.items()}
    return {"entity": entity_shape(page.entity), **memories, "together": [one._asdict() for one in page.together]}


def widened_shape(told: visibility.MemoryShared) -> Shape:
    """The scope of a memory before and after it was shared."""
    return {**fields_of(told, "before", "after", "by", "reason"), "at": when(told.at)}


def feedback_shape(said: receipt.Feedback) -> Shape:
    """What a person said of a memory that a turn was shown."""
    told = {"state": str(said.state), "by": said.by, "at": when(said.at)}
    return {"turn": show("turn", said.turn_id), "memory": show("memory", said.memory_id), **told}


def use_shape(use: receipt.Use) -> Shape:
    """A turn that a memory came up in, and what its trace says of it."""
    lane = fields_of(use.lane, "channel", "conversation", "key")
    told = {"at": when(use.at), "how": str(use.how), "found": _candidate(use.found)}
    return {"turn": show("turn", use.turn_id), "lane": lane, **told}


def came_up_shape(memory: Memory, at: int, uses: Sequence[receipt.Use], feedback: Sequence[receipt.Feedback]) -> Shape:
    """A memory, the turns it came up in, and what people said of that."""
    told = {"uses": [use_shape(use) for use in uses], "feedback": [feedback_shape(said) for said in feedback]}
    return {"memory": memory_shape(memory, at), **told}


def absent_shape(turn: views.TurnStory, memory: Memory, at: int, why: Absence) -> Shape:
    """A turn, a memory, and why the one was not shown the other."""
    absence = {"stage": str(why.stage), "why": why.why, "found": _candidate(why.found)}
    return {"turn": show("turn", turn.turn_id), "memory": memory_shape(memory, at), "absence": absence}


def turn_shape(turn: views.TurnStory) -> Shape:
    """A turn with its context, steps and receipts."""
    usage = turn.usage
    return {
        "id": show("turn", turn.turn_id),
        **fields_of(turn, "state", "reason"),
        "lane": fields_of(turn.batch.lane, "conversation", "key"),
        "batch": batch_shape(turn.batch),
        "messages": [
            {"id": show("message", one.id), "text": one.text, "lane_reason": turn.placed.get(one.id)}
            for one in turn.messages
        ],
        "context": _context(turn),
        "steps": [fields_of(step, "n", "kind", "subject", "state") for step in turn.steps],
        "replies": [reply_shape(reply) for reply in turn.replies],
        "feedback": [feedback_shape(said) for said in turn.feedback],
        "tokens": [usage.tokens_in, usage.tokens_out],
        "cost_usd": None if usage.cost_micros is None else usage.cost_micros / 1_000_000,
        **times_of(turn, "started_at", "ended_at"),
    }


def _context(turn: views.TurnStory) -> Json:
    """The trace, with memories named as everywhere else, and what its prompt repeats instead of its marks."""
    trace = turn.trace
    memory = trace.get("memory") if isinstance(trace, dict) else None
    if not isinstance(trace, dict) or not isinstance(memory, dict):
        return trace
    candidates, behind = memory.get("candidates"), memory.get("beyond")
    named = [_candidate(one) for one in candidates] if isinstance(candidates, list) else candidates
    beyond = [_candidate(one) for one in behind] if isinstance(behind, list) else []
    shown = {key: value for key, value in trace.items() if key != "marks"}
    return {**shown, "memory": {**memory, "candidates": named, "beyond": beyond}, "prefix": _prefix(turn)}


def _prefix(turn: views.TurnStory) -> Json:
    from keepsaid.pipeline.prompt.guard import compared  # noqa: PLC0415 - few shapes need it

    if (found := compared(turn.before, turn.trace)) is None:
        return None
    one, why = found
    shares: dict[str, Json] = {"share": round(one.share, 4), "stable_share": round(one.stable_share, 4)}
    return {"bytes": one.bytes, "before": one.whole, "before_status": one.stable, **shares, "broken": why or None}


def _candidate(one: Json) -> Json:
    number = one.get("id") if isinstance(one, dict) else None
    return {**one, "id": show("memory", number)} if isinstance(one, dict) and isinstance(number, int) else one


def reloaded_shape(done: Reloaded) -> dict[str, Any]:
    return {"changed": list(done.changed), "restart": list(done.restart), "warnings": list(done.warnings)}


_TEXT_CHARS = 200
_SAFE = "Nothing was changed."
_HINT = "keepsaid memory forget --help"


def forget_request(fields: Mapping[str, Any]) -> ForgetRequest:
    """What a request body asks for; raises InputError."""
    from keepsaid.services.forgetting import ForgetRequest  # noqa: PLC0415 - few shapes need it

    names = ("person", "conversation", "filter", "undo_for")
    ids, rest = fields.get("ids") or [], [fields.get(name) or "" for name in names]
    if not isinstance(ids, list) or not all(isinstance(one, str) for one in (*ids, *rest)):
        raise InputError(f"ids must be a list of texts; {', '.join(names)} texts", safe=_SAFE, hint=_HINT)
    return ForgetRequest(tuple(ids), *rest)


def preview_shape(preview: ForgetPreview, at: int) -> Shape:
    """What would go, counted as in the receipt, with the first memories of it; states are as of `at` (ms UTC)."""
    shown = [
        {
            "id": show("memory", one.id),
            "kind": str(one.new.kind),
            "state": one.state_at(at),
            "text": cut(one.text, _TEXT_CHARS),
        }
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


def cloud_event(event: Event) -> dict[str, Any]:
    shape: dict[str, Any] = {"specversion": "1.0", "id": str(event.id), "source": "/keepsaid", "type": event.topic}
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


def _shown(field: schema.Field | None, value: Json) -> Json:
    if field is not None and field.of in PREFIXES:
        if field.holds is schema.FieldType.ID and isinstance(value, int):
            return show(field.of, value)
        if field.holds is schema.FieldType.IDS and isinstance(value, list):
            return [show(field.of, one) if isinstance(one, int) else one for one in value]
    return value


def subscriber_shape(line: SubscriberLine) -> dict[str, Any]:
    """A subscriber, and its position in the journal."""
    counts = fields_of(line, "behind", "pending", "processing", "dead")
    return {"name": line.name, "topics": list(line.topics), **counts}


def delivery_shape(line: DeliveryLine) -> dict[str, Any]:
    """A delivery, and where it stands."""
    told = {"subscriber": line.subscriber, "event": str(line.event_id), "topic": line.topic, "state": line.state}
    stands = {"attempts": line.attempts, "due_at": when(line.due_at), "error": line.error or None}
    return {"id": show("delivery", line.id), **told, **stands}
