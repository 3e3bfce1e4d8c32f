"""Routes for memory: imports, forgetting, search, revisions, people, and receipts of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.responses import Response

from keepsaid.app.instance import Instance
from keepsaid.domain import bundle, bundle_lines, ids, views
from keepsaid.domain.memory import Memory
from keepsaid.domain.principal import Scope
from keepsaid.errors import InputError
from keepsaid.interfaces import agent_shapes, shapes
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.responses import BadRequest, read_flag, read_limit, render_in_thread
from keepsaid.interfaces.schema import FLAG, NUMBER, OBJECT, TEXT, TIME, WHOLE, gives, many, named, perhaps, ref, takes
from keepsaid.interfaces.shapes import Shape, forget_request, forgetting_shape, memory_shape, preview_shape
from keepsaid.services import explaining, importing, memories

_WAIT_S_MAX = 60.0
_SEARCH_ROWS = 10
_LIST_ROWS = 20
_PEOPLE_ROWS = 100


async def take_records(instance: Instance, call: OwnerCall) -> Shape:
    """Preview an import (`look`), import records (`take`), or learn from them (`learn`).

    `key` tells which key the tombstones are made with, and takes one over where there is none.
    """
    fields = call.fields
    here, do = importing.LocalMemory(instance.memories, instance.clock, instance.recorder.facts), fields.get("do")
    if do == "key":
        key = _hex(fields.get("key", ""), "key")
        return {"adopted": bool(key) and await here.adopt_key(key), "key_print": await here.key_print()}
    records = _records(fields.get("records"))
    if do == "look":
        return _verdicts_shape(await here.look(records))
    if do == "take":
        contested = fields.get("contested", [])
        if not isinstance(contested, list):
            raise BadRequest("contested must be a list of texts in hexadecimal")
        return _verdicts_shape(await here.take(records, [_hex(one, "contested") for one in contested]))
    if do == "learn":
        return _verdicts_shape(await here.learn([one for one in records if isinstance(one, bundle.BundleEntry)]))
    raise BadRequest("do must be look, take, learn or key")


def _records(given: Any) -> list[bundle.Record]:
    if not isinstance(given, list) or len(given) > bundle.RECORDS_MAX:
        raise BadRequest(f"records must be a list of at most {bundle.RECORDS_MAX}")
    records = []
    for n, one in enumerate(given):
        try:
            records.append(bundle_lines.record_in(one))
        except bundle_lines.BundleLineError as error:
            raise BadRequest(f"record {n}: {error}") from error
    return records


def _hex(given: Any, name: str) -> bytes:
    try:
        return bytes.fromhex(given)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{name} must be text in hexadecimal") from error


def _verdicts_shape(verdicts: Sequence[bundle.ImportVerdict]) -> Shape:
    return {"verdicts": [shapes.fields_of(one, "outcome", "why", "beside", "like") for one in verdicts]}


async def forget(instance: Instance, call: OwnerCall) -> Shape:
    """Count what would go; with `yes` forget it: no read returns it when this is answered."""
    yes, service = call.flag("yes"), instance.services.forgetting
    request = forget_request(call.fields)
    if yes:
        done = await service.forget(request)
        shape = forgetting_shape(done.request, done.backups)
    else:
        shape = preview_shape(await service.preview(request), instance.clock.now_ms())
    return {**shape, "stopping": instance.halt.is_set}


async def wait_settled(instance: Instance, call: OwnerCall) -> Shape:
    """Wait until nothing is left to be forgotten, `wait_s` seconds at most; say whether."""
    wait_s = call.fields.get("wait_s", _WAIT_S_MAX)
    if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 <= wait_s <= _WAIT_S_MAX:
        raise BadRequest(f"wait_s must be a number of at most {_WAIT_S_MAX:.0f}")
    return {"settled": await instance.forgetter.settled(wait_s * 1_000)}


async def undo(instance: Instance, call: OwnerCall) -> Shape:
    """Put back what a request took, while it can be undone."""
    [name] = call.texts("id", otherwise="id must name a request to forget: fgt_...")
    return forgetting_shape(await instance.services.forgetting.undo(name))


_FILTERS = ("query", "conversation", "kind", "person", "since", "until", "as_of", "archived", "limit")


async def search(instance: Instance, call: OwnerCall) -> Response:
    """The best memories for `query`, best first; without a query the newest. Filters narrow a search."""
    query = call.request.query_params
    service, at = instance.services.search, instance.clock.now_ms()
    if "query" not in query:
        kinds, limit = memories.filters_of({"kind": query.get("kind", "")}).kind, read_limit(call.request, _LIST_ROWS)
        found = await service.newest(() if kinds is None else (kinds,), limit, call.who.listener())
        return await render_in_thread(lambda: {"memories": [memory_shape(one, at) for one in found]})
    archived = read_flag(call.request, "archived")
    limit = read_limit(call.request, _SEARCH_ROWS)
    asked = memories.SearchRequest(query["query"], limit, memories.filters_of(query), archived)
    recalled = await instance.services.assistant.recall(call.who, asked, query.get("conversation", ""))
    return await render_in_thread(lambda: shapes.recalled_shape(recalled, at))


async def get_memory(instance: Instance, call: OwnerCall) -> Shape:
    """One memory, and what was known before and after of the same."""
    name = call.request.path_params["id"]
    if ids.read("memory", name) is None:
        raise no_such("memory")
    conversation = call.request.query_params.get("conversation", "")
    try:
        [story] = await instance.services.assistant.get(call.who, [name], conversation)
    except InputError as error:
        raise no_such("memory") from error
    return agent_shapes.story_shape(story, instance.clock.now_ms())


async def edit(instance: Instance, call: OwnerCall) -> Shape:
    """Put a memory right; answers with the one that took its place."""
    memory_id, text, value = call.id_of("memory"), call.fields.get("text"), call.fields.get("value") or ""
    if not isinstance(text, str) or not isinstance(value, str):
        raise BadRequest("say the new text, and its value, as text")
    if call.who.everything:
        done = await instance.services.memories.edit(memory_id, text, value)
    else:
        name, conversation = call.request.path_params["id"], call.text("conversation")
        done = await instance.services.assistant.correct(call.who, name, text, value, conversation)
    return {"id": ids.show("memory", done.memory_id), "how": str(done.how)}


async def pin(instance: Instance, call: OwnerCall) -> Shape:
    """Pin a current memory, or unpin it."""
    memory_id, pinned = call.id_of("memory"), call.flag("pinned", default=True)
    await instance.services.memories.pin(memory_id, pinned=pinned)
    return {"id": ids.show("memory", memory_id), "pinned": pinned}


async def archive(instance: Instance, call: OwnerCall) -> Shape:
    """Archive current memories, or restore archived ones."""
    back = call.flag("back")
    done = await instance.services.memories.archive(call.ids("ids", "memory", least=1), back=back)
    return {"ids": [ids.show("memory", one) for one in done], "back": back}


async def merge(instance: Instance, call: OwnerCall) -> Shape:
    """Move the sources of duplicates to one memory."""
    memory_id, others = call.id_of("memory"), call.ids("others", "memory", least=1)
    await instance.services.memories.merge(memory_id, others, anyway=call.flag("anyway"))
    return {"id": ids.show("memory", memory_id), "merged": [ids.show("memory", one) for one in others]}


async def list_people(instance: Instance, call: OwnerCall) -> Shape:
    """Persons that were joined, and identities that something is remembered from."""
    return shapes.people_shape(await instance.services.people.list(read_limit(call.request, _PEOPLE_ROWS)))


async def join_people(instance: Instance, call: OwnerCall) -> Shape:
    """Make one person of several identities."""
    names = call.fields.get("names")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadRequest("names must be a list of texts: CHANNEL:ACCOUNT:SENDER, or owner")
    return {"person": shapes.person_shape(await instance.services.people.join(names))}


async def split_person(instance: Instance, call: OwnerCall) -> Shape:
    """Separate one identity from the person it is linked to."""
    [name] = call.texts("name", otherwise="name must be text: CHANNEL:ACCOUNT:SENDER, or owner")
    return {"split": await instance.services.people.split(name)}


async def share_memory(instance: Instance, call: OwnerCall) -> Shape:
    """Share a memory: widen its scope."""
    memory_id, otherwise = call.id_of("memory"), "say how far as `to` and why as `reason`, both as text"
    to, reason = call.texts("to", "reason", otherwise=otherwise)
    done = await instance.services.people.share(memory_id, to, reason)
    return {"memory": ids.show("memory", memory_id), "widened": shapes.widened_shape(done)}


async def get_turn(instance: Instance, call: OwnerCall) -> Response:
    """One turn with its context, steps and receipts; of a key, one of its own conversations."""
    story = await _turn(instance, call)
    if not call.who.owns(story.batch.lane):
        raise no_such("turn")
    return await render_in_thread(lambda: {"turn": shapes.turn_shape(story)})


async def explain_absence(instance: Instance, call: OwnerCall) -> Shape:
    """Why a turn was not shown a memory."""
    story, memory = await _turn(instance, call), await _memory(instance, call.request.path_params["memory"])
    heard = await instance.memories.get(explaining.listened(story), memory.id) is not None
    absence = explaining.absence(story, memory, heard=heard)
    return shapes.absent_shape(story, memory, instance.clock.now_ms(), absence)


async def list_uses(instance: Instance, call: OwnerCall) -> Shape:
    """The turns a memory was shown to, opened in or left out of, and what was said of that."""
    memory = await _memory(instance, call.request.path_params["id"])
    uses = await instance.operations.uses(memory.id, shapes.USES_MAX)
    feedback = await instance.operations.feedback(memory.id)
    return shapes.came_up_shape(memory, instance.clock.now_ms(), uses, feedback)


async def _turn(instance: Instance, call: OwnerCall) -> views.TurnStory:
    if (story := await instance.operations.turn(call.id_of("turn"))) is None:
        raise no_such("turn")
    return story


async def _memory(instance: Instance, name: str) -> Memory:
    memory_id = ids.read("memory", name)
    memory = None if memory_id is None else await instance.memories.get(memories.OWNER_HEARS, memory_id)
    if memory is None:
        raise no_such("memory")
    return memory


async def flag_memory(instance: Instance, call: OwnerCall) -> Shape:
    """Flag a memory as wrong for a turn, or withdraw the flag."""
    memory_id, turn, undone = call.id_of("memory"), call.fields.get("turn"), call.fields.get("undo", False)
    turn_id = ids.read("turn", turn) if isinstance(turn, str) else None
    if turn_id is None or not isinstance(undone, bool):
        raise BadRequest("say the turn that was shown the memory as text, and undo as true or false")
    done = await instance.services.memories.record_feedback(memory_id, turn_id, undo=undone)
    return {"memory": ids.show("memory", memory_id), "turn": ids.show("turn", turn_id), "done": done}


async def list_entities(instance: Instance, call: OwnerCall) -> Shape:
    """Entities that memories mention, the most mentioned first; `kind` narrows them."""
    kind = call.request.query_params.get("kind", "")
    limit = read_limit(call.request, _PEOPLE_ROWS)
    return {"entities": [shapes.entity_shape(one) for one in await instance.services.entities.list(kind, limit)]}


async def get_entity(instance: Instance, call: OwnerCall) -> Response:
    """The page of each entity that has a name or key."""
    pages = await instance.services.entities.pages(call.request.query_params.get("name", ""))
    at = instance.clock.now_ms()
    return await render_in_thread(lambda: {"pages": [shapes.entity_page_shape(one, at) for one in pages]})


async def merge_entities(instance: Instance, call: OwnerCall) -> Shape:
    """Make one entity of two."""
    into, other = call.texts("into", "other", otherwise="into and other must be names or keys of entities, as text")
    entity, moved = await instance.services.entities.merge(into, other)
    return {"entity": shapes.entity_shape(entity), "moved": moved}


_IDS = many(TEXT)
_ENTITY = gives(key=TEXT, kind=TEXT, names=many(TEXT), memories=WHOLE, last_at=perhaps(TIME))
_PERSON = gives(id=TEXT, identities=many(gives(name=TEXT, joined_at=perhaps(TIME), joined_by=TEXT)))
_SEEN = gives(name=TEXT, called=TEXT, memories=WHOLE, last_at=perhaps(TIME))
_PAGE = gives(
    entity=_ENTITY,
    **named(many(ref("Memory")), "facts", "past", "messages"),
    together=many(gives(entity=TEXT, name=TEXT, memories=WHOLE)),
)
_SHARED = gives(**named(TEXT, "before", "after", "by", "reason"), at=perhaps(TIME))
_FOUND = {"anyOf": [ref("Recalled"), gives(memories=many(ref("Memory")))]}
_IMPORT = takes("do", do=TEXT, key=TEXT, records=many(OBJECT, bundle.RECORDS_MAX), contested=_IDS)
_FLAGGED = gives(memory=TEXT, turn=TEXT, done=FLAG)
_EDIT = takes("text", **named(TEXT, "text", "value", "conversation"))
_MERGE = takes("others", others=_IDS, anyway=FLAG)
_FORGET = takes(ids=_IDS, **named(TEXT, "person", "conversation", "filter", "undo_for"), yes=FLAG)

ENTITY_ROUTES = (
    OwnerRoute("GET", "/v1/entities", list_entities, query=("kind", "limit"), gives=gives(entities=many(_ENTITY))),
    OwnerRoute("GET", "/v1/entities/page", get_entity, query=("name",), gives=gives(pages=many(_PAGE))),
    OwnerRoute(
        "POST",
        "/v1/entities/merge",
        merge_entities,
        100_000,
        takes=takes("into", "other", into=TEXT, other=TEXT),
        gives=gives(entity=_ENTITY, moved=WHOLE),
    ),
)

ROUTES = (
    OwnerRoute("GET", "/v1/memories", search, scopes=(Scope.READ,), query=_FILTERS, gives=_FOUND),
    OwnerRoute(
        "GET", "/v1/memories/{id}", get_memory, scopes=(Scope.READ,), query=("conversation",), gives=ref("MemoryStory")
    ),
    OwnerRoute(
        "GET",
        "/v1/memories/{id}/turns",
        list_uses,
        gives=gives(memory=ref("Memory"), **named(many(OBJECT), "uses", "feedback")),
    ),
    OwnerRoute(
        "POST",
        "/v1/memories/archive",
        archive,
        100_000,
        takes=takes("ids", ids=_IDS, back=FLAG),
        gives=gives(ids=_IDS, back=FLAG),
    ),
    OwnerRoute("POST", "/v1/memories/import", take_records, 64_000_000, takes=_IMPORT),
    OwnerRoute(
        "POST",
        "/v1/memories/{id}/wrong",
        flag_memory,
        10_000,
        takes=takes("turn", turn=TEXT, undo=FLAG),
        gives=_FLAGGED,
    ),
    OwnerRoute(
        "POST",
        "/v1/memories/{id}/widen",
        share_memory,
        100_000,
        takes=takes("to", "reason", to=TEXT, reason=TEXT),
        gives=gives(memory=TEXT, widened=_SHARED),
    ),
    OwnerRoute(
        "POST",
        "/v1/memories/{id}/edit",
        edit,
        100_000,
        scopes=(Scope.WRITE,),
        takes=_EDIT,
        gives=gives(id=TEXT, how=TEXT),
    ),
    OwnerRoute(
        "POST", "/v1/memories/{id}/pin", pin, 100_000, takes=takes(pinned=FLAG), gives=gives(id=TEXT, pinned=FLAG)
    ),
    OwnerRoute("POST", "/v1/memories/{id}/merge", merge, 100_000, takes=_MERGE, gives=gives(id=TEXT, merged=_IDS)),
    OwnerRoute("POST", "/v1/forget", forget, 1_000_000, long=True, takes=_FORGET),
    OwnerRoute(
        "POST", "/v1/forget/undo", undo, 1_000_000, long=True, takes=takes("id", id=TEXT), gives=ref("Forgetting")
    ),
    OwnerRoute(
        "POST",
        "/v1/forget/settled",
        wait_settled,
        1_000_000,
        long=True,
        takes=takes(wait_s=NUMBER),
        gives=gives(settled=FLAG),
    ),
    OwnerRoute("GET", "/v1/people", list_people, query=("limit",), gives=gives(people=many(_PERSON), seen=many(_SEEN))),
    OwnerRoute(
        "POST",
        "/v1/people/join",
        join_people,
        100_000,
        takes=takes("names", names=many(TEXT)),
        gives=gives(person=_PERSON),
    ),
    OwnerRoute(
        "POST", "/v1/people/split", split_person, 100_000, takes=takes("name", name=TEXT), gives=gives(split=TEXT)
    ),
    OwnerRoute("GET", "/v1/turns/{id}", get_turn, scopes=(Scope.READ,), gives=ref("Explanation")),
    OwnerRoute(
        "GET",
        "/v1/turns/{id}/without/{memory}",
        explain_absence,
        gives=gives(turn=TEXT, memory=ref("Memory"), absence=OBJECT),
    ),
)
