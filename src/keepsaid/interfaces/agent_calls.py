"""What agents outside may ask, as fields in and JSON out: HTTP, MCP and the library call these functions alike."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType

from keepsaid.app.instance import Instance
from keepsaid.domain.principal import Principal
from keepsaid.interfaces import agent_fields as fields_of_calls
from keepsaid.interfaces import agent_shapes as shapes
from keepsaid.interfaces import owner_calls, worker_calls
from keepsaid.interfaces.fields import bounded_field, known_fields, names_field, number_field, text_field
from keepsaid.interfaces.shapes import Shape, forgetting_shape, recalled_shape, turn_shape
from keepsaid.ports.runtime import Clock
from keepsaid.services.assistant import TRANSCRIPT_MAX, Assistant
from keepsaid.services.memories import SearchRequest, filters_of
from keepsaid.values import frozen

Fields = Mapping[str, object]


@frozen
class CallSite:
    """The instance that is asked."""

    instance: Instance

    @property
    def assistant(self) -> Assistant:
        """What answers calls for memory."""
        return self.instance.services.assistant

    @property
    def clock(self) -> Clock:
        """By which states are shown."""
        return self.instance.clock


async def context(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """What a model should be shown of memory before it answers `text` in `conversation`, in `tokens` at most."""
    conversation, text = (text_field(fields, name) for name in ("conversation", "text"))
    tokens = number_field(fields, "tokens", fields_of_calls.TOKENS)
    return shapes.context_shape(await site.assistant.context(who, conversation, text, tokens))


async def recall(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """The best memories for `query`, best first, `limit` at most; filters narrow them."""
    bounds = 1, fields_of_calls.LIMIT_MAX
    query, limit = text_field(fields, "query"), bounded_field(fields, "limit", bounds, fields_of_calls.LIMIT)
    narrowing = filters_of({name: text_field(fields, name, "") for name in fields_of_calls.FILTERS})
    asked = SearchRequest(query, limit, narrowing)
    found = await site.assistant.recall(who, asked, text_field(fields, "conversation", ""))
    return recalled_shape(found, site.clock.now_ms())


async def get(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """The memories `ids`, whole, each with its history and sources; or what holds now of that saved under `key`."""
    conversation, key = text_field(fields, "conversation", ""), text_field(fields, "key", "")
    if key:
        one = await site.assistant.keyed(who, key, conversation)
        return {"memories": [] if one is None else [shapes.story_shape(one, site.clock.now_ms())]}
    found = await site.assistant.get(who, names_field(fields, "ids"), conversation)
    return {"memories": [shapes.story_shape(one, site.clock.now_ms()) for one in found]}


async def save(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """Remember `text` as the caller's word; `key` names it for who says it again."""
    text, kind = text_field(fields, "text"), text_field(fields, "kind", "fact")
    key, conversation = (text_field(fields, name, "") for name in ("key", "conversation"))
    return shapes.saved_shape(await site.assistant.save(who, text, kind, key=key, conversation=conversation))


async def correct(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """Put the memory `id` right: from now on it says `text`, and `value` is what its slot is."""
    name, text = (text_field(fields, field) for field in ("id", "text"))
    value, conversation = (text_field(fields, field, "") for field in ("value", "conversation"))
    return shapes.corrected_shape(name, await site.assistant.correct(who, name, text, value, conversation))


async def forget(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """Count what forgetting `ids` would take; with the token that this gives as `confirm`, forget it."""
    names, confirm = names_field(fields, "ids"), text_field(fields, "confirm", "")
    conversation = text_field(fields, "conversation", "")
    if not confirm:
        counted = await site.assistant.count(who, names, conversation)
        return shapes.counted_shape(counted, site.clock.now_ms())
    done = await site.assistant.forget(who, names, confirm, conversation)
    # where backups are is the owner's concern
    return forgetting_shape(done.request, done.backups if who.everything else ())


async def record(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """Keep what was said and answered in `conversation`, in order: `messages` with `role` and `text`."""
    conversation, talk = text_field(fields, "conversation"), shapes.talk_of(fields.get("messages"))
    return shapes.receipts_shape(await site.assistant.record(who, conversation, talk))


async def transcript(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """What was said in `conversation` after the position `after`, oldest first, `limit` messages at most."""
    conversation, after = text_field(fields, "conversation"), number_field(fields, "after", 0)
    limit = bounded_field(fields, "limit", (1, TRANSCRIPT_MAX), TRANSCRIPT_MAX)
    return shapes.transcript_shape(await site.assistant.transcript(who, conversation, after=after, limit=limit))


async def explain(site: CallSite, who: Principal, fields: Fields) -> Shape:
    """Why the turn `id` answered as it did: what it was shown of memory, and what not."""
    return {"turn": turn_shape(await site.assistant.explain(who, text_field(fields, "id")))}


Call = Callable[[CallSite, Principal, Fields], Awaitable[Shape]]


def _at_instance(call: Callable[[Instance, Principal, Fields], Awaitable[Shape]]) -> Call:
    """A call that an instance answers."""

    async def ask(site: CallSite, who: Principal, fields: Fields) -> Shape:
        return await call(site.instance, who, fields)

    return ask


def _checked(name: str, call: Call) -> Call:
    """A call that refuses fields which it does not take."""
    known = fields_of_calls.CALL_FIELDS[name].takes["properties"]

    async def ask(site: CallSite, who: Principal, fields: Fields) -> Shape:
        known_fields(fields, known)
        return await call(site, who, fields)

    return ask


_CALLS: Mapping[str, Call] = {
    "context": context, "recall": recall, "get": get, "save": save, "correct": correct, "forget": forget,
    "record": record, "transcript": transcript, "explain": explain,
    **{
        one.__name__: _at_instance(one)
        for one in (
            worker_calls.put, worker_calls.pull, worker_calls.renew, worker_calls.done, worker_calls.fail,
            worker_calls.release,
            owner_calls.tasks, owner_calls.run_task, owner_calls.approve_task, owner_calls.schedules,
            owner_calls.add_schedule, owner_calls.status, owner_calls.identity,
        )
    },
}  # fmt: skip

CALLS: Mapping[str, Call] = MappingProxyType({name: _checked(name, call) for name, call in _CALLS.items()})
"""Every call by its name. Each raises InputError for a field that it does not take."""
