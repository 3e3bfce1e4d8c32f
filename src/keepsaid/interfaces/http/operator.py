"""Routes for the owner: status, replies, batches, lanes, settings, extraction, tasks, schedules and events."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial

from starlette.responses import JSONResponse, Response, StreamingResponse

from keepsaid.app.instance import Instance
from keepsaid.domain import event, ids, message, schedule
from keepsaid.domain.route import WorkTerms
from keepsaid.domain.task import ENDED, OPEN, NewTask, TaskFilter
from keepsaid.errors import InputError
from keepsaid.events.catalog import topics_of
from keepsaid.interfaces import task_shapes
from keepsaid.interfaces.http.calls import OwnerCall, OwnerRoute, no_such
from keepsaid.interfaces.http.messages import RETRY_MS
from keepsaid.interfaces.http.responses import BadRequest, NotFound, read_flag, read_limit, render_in_thread
from keepsaid.interfaces.schema import FLAG, TEXT, WHOLE, gives, many, named, ref, takes
from keepsaid.interfaces.shapes import Shape, cloud_event, maintained_shape, prune_shape, reloaded_shape, reply_shape
from keepsaid.interfaces.status_shape import status_shape
from keepsaid.services.schedules import find_schedule
from keepsaid.text.normal import normalise

_NAME_CHARS_MAX = 200
_DEFAULT_ROWS = 100
_PRUNE_MS = 5_000
"""How long one request may prune or maintain; what is left is for the next."""

_LANE_PARTS = ("channel", "account", "conversation", "key")


async def read_status(instance: Instance, _call: OwnerCall) -> Shape:
    """What waits, what is remembered and what is beyond its limit."""
    found = await instance.services.status.read()
    return {"sentence": found.describe("Running", works=True), **status_shape(found)}


async def list_replies(instance: Instance, call: OwnerCall) -> Response:
    """The first replies of a channel's conversation that nobody has seen."""
    query = call.request.query_params
    limit = read_limit(call.request, _DEFAULT_ROWS)
    unseen = await instance.operations.unseen(query.get("channel", ""), query.get("conversation", ""), limit)
    return await render_in_thread(lambda: {"replies": [reply_shape(reply) for reply in unseen]})


async def mark_seen(instance: Instance, call: OwnerCall) -> Shape:
    """Record that a person has seen a reply, maybe under a name that its medium gave it."""
    reply_id, name = call.id_of("reply"), call.fields.get("provider_id")
    if name is not None and not (isinstance(name, str) and 0 < len(name) <= _NAME_CHARS_MAX):
        raise BadRequest(f"provider_id must be text of 1 to {_NAME_CHARS_MAX} characters")
    return {"seen": await instance.services.inbox.mark_seen(reply_id, name and normalise(name))}


async def resend(instance: Instance, call: OwnerCall) -> Shape:
    """Send a dead reply again, or accept that it, or one that waits, will not arrive."""
    reply_id, accept = call.id_of("reply", "keepsaid inbox ls --reply dead"), call.flag("accept")
    return {"done": await instance.services.inbox.settle_reply(reply_id, again=not accept)}


async def stop_message(instance: Instance, call: OwnerCall) -> Shape:
    """Cancel the answering of a message, with the turn and the call of the model that is running."""
    return {"stopped": await instance.services.inbox.stop(call.id_of("message", "keepsaid inbox ls"))}


async def prune(instance: Instance, _call: OwnerCall) -> Shape:
    """Remove what was settled long ago, for a few seconds; `over` says whether that was all."""
    return prune_shape(await instance.pruner.run(_PRUNE_MS), stopping=instance.halt.is_set)


async def maintain(instance: Instance, _call: OwnerCall) -> Shape:
    """Run maintenance of memory, for a few seconds; `over` says whether that was all."""
    return maintained_shape(await instance.maintenance.run(_PRUNE_MS), stopping=instance.halt.is_set)


async def reset_lane(instance: Instance, call: OwnerCall) -> Shape:
    """Reset a lane; its messages stay stored."""
    return {"records": await instance.services.inbox.reset_lane(await _lane(instance, call))}


async def compact_lane(instance: Instance, call: OwnerCall) -> Shape:
    """Summarise a lane if it is due; with `now`, all but its newest messages."""
    lane, at_once = await _lane(instance, call), call.fields.get("now") is True
    return {"told": await instance.compactor.compact_on_request(lane, at_once=at_once)}


async def _lane(instance: Instance, call: OwnerCall) -> message.Lane:
    """The lane a call names; raises BadRequest, and NotFound for one nobody spoke in."""
    otherwise = f"a lane is named by {', '.join(_LANE_PARTS)}, each a text"
    names = call.texts(*_LANE_PARTS, otherwise=otherwise)
    if not all(names):
        raise BadRequest(otherwise)
    lane = message.Lane(*names)
    if await instance.operations.line(lane) is None:
        what = f"there is no lane {lane.key} of {lane.conversation} on {lane.channel}, account {lane.account}"
        raise NotFound(what, safe="Nothing was changed.", hint="keepsaid inbox lanes ls")
    return lane


async def run_extraction(instance: Instance, call: OwnerCall) -> Shape:
    """Mark one session, or every one with unread records; the collector reads them next."""
    name = call.fields.get("session")
    marked = await instance.collecting.mark(None if name is None else _session(str(name)))
    return {"marked": marked, "stopping": instance.halt.is_set}


async def requeue_session(instance: Instance, call: OwnerCall) -> Shape:
    """Read a parked session again."""
    return {"requeued": await instance.collecting.requeue(_session(call.request.path_params["id"]))}


def _session(name: str) -> int:
    if (number := ids.read("session", name)) is None:
        raise NotFound(f"there is no session {name}", safe="Nothing was changed.", hint="keepsaid memory extract ls")
    return number


async def reload(instance: Instance, _call: OwnerCall) -> Shape:
    """Read the config again; what is wrong with it is the answer, and nothing was changed then."""
    return reloaded_shape(await instance.reloading.reload())


_DONE = gives(done=FLAG)
_LANE = takes(*_LANE_PARTS, **named(TEXT, *_LANE_PARTS))
_LANE_NOW = takes(*_LANE_PARTS, **named(TEXT, *_LANE_PARTS), now=FLAG)
_TASK = takes("task", task=TEXT, key=TEXT, **named(many(TEXT), "tools", "after"))

ROUTES = (
    OwnerRoute("GET", "/v1/status", read_status, gives=ref("Status")),
    OwnerRoute(
        "GET",
        "/v1/replies",
        list_replies,
        query=("channel", "conversation", "limit"),
        gives=gives(replies=many(ref("Reply"))),
    ),
    OwnerRoute(
        "POST",
        "/v1/replies/{id}/seen",
        mark_seen,
        1_000_000,
        empty=True,
        takes=takes(provider_id=TEXT),
        gives=gives(seen=FLAG),
    ),
    OwnerRoute("POST", "/v1/replies/{id}/resend", resend, 1_000_000, takes=takes(accept=FLAG), gives=_DONE),
    OwnerRoute("POST", "/v1/messages/{id}/stop", stop_message, 1_000_000, empty=True, gives=gives(stopped=FLAG)),
    OwnerRoute("POST", "/v1/lanes/reset", reset_lane, 100_000, takes=_LANE, gives=gives(records=WHOLE)),
    OwnerRoute("POST", "/v1/lanes/compact", compact_lane, 100_000, long=True, takes=_LANE_NOW, gives=gives(told=TEXT)),
    OwnerRoute("POST", "/v1/config/reload", reload, gives=gives(**named(many(TEXT), "changed", "restart", "warnings"))),
    OwnerRoute("POST", "/v1/prune", prune, long=True),
    OwnerRoute("POST", "/v1/memories/maintain", maintain, long=True),
    OwnerRoute(
        "POST",
        "/v1/collection/run",
        run_extraction,
        10_000,
        long=True,
        takes=takes(session=TEXT),
        gives=gives(marked=WHOLE, stopping=FLAG),
    ),
    OwnerRoute("POST", "/v1/collection/{id}/requeue", requeue_session, gives=gives(requeued=FLAG)),
)


_LINES_MAX = 200
_LOOK_MS = 10_000
"""The interval of keep-alive lines to a reader."""
_BATCH = "application/cloudevents-batch+json"


async def list_events(stopping: asyncio.Event, instance: Instance, call: OwnerCall) -> Response:
    """What happened after an event: `?after=ID` or Last-Event-ID, and only `?topics=turn.*,memory.*`.

    For who accepts server-sent events they go on as they happen, until `stopping` is set; without `after`, from now on.
    For others it is one list, oldest first: the next ones, or without `after` the newest.
    """
    request, journal = call.request, instance.telling.journal
    query = request.query_params
    patterns = tuple(one.strip() for one in query.get("topics", "").split(",") if one.strip())
    patterns = topics_of(patterns) if patterns else ()
    said = request.headers.get("last-event-id") or query.get("after")
    if said is not None and not (said.isascii() and said.isdigit() and len(said) <= len(str(1 << 62))):
        raise BadRequest(f"{said!r} is not the id of an event")
    after = None if said is None else int(said)
    if "text/event-stream" in request.headers.get("accept", ""):
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        newest = await journal.latest(1) if after is None else ()
        start = after if after is not None else max((one.id for one in newest), default=0)
        stream = _stream(instance, stopping, start, patterns)
        return StreamingResponse(stream, media_type="text/event-stream", headers=headers)
    found = await (journal.latest(_LINES_MAX) if after is None else journal.events(after, _LINES_MAX))
    return JSONResponse([cloud_event(one) for one in found if _matches_topics(patterns, one)], media_type=_BATCH)


async def _stream(
    instance: Instance, stopping: asyncio.Event, after: int, patterns: tuple[str, ...]
) -> AsyncIterator[str]:
    yield f"retry: {RETRY_MS}\n\n"
    with instance.telling.listening() as happened:
        while not stopping.is_set():
            found = await instance.telling.journal.events(after, _LINES_MAX)
            for one in found:
                if _matches_topics(patterns, one):
                    data = json.dumps(cloud_event(one), ensure_ascii=False)
                    yield f"event: {one.topic}\nid: {one.id}\ndata: {data}\n\n"
            if found:
                after = found[-1].id
                continue
            yield ": still here\n\n"
            await instance.clock.wait(happened, _LOOK_MS)


async def decide_delivery(instance: Instance, call: OwnerCall, *, again: bool) -> Shape:
    """Try a dead delivery again, or dismiss it."""
    name = call.request.path_params["id"]
    if (number := ids.read("delivery", name)) is None:
        raise NotFound(f"there is no delivery {name}", hint="keepsaid ext events dead")
    return {"decided": await instance.telling.decide(number, again=again)}


async def unsubscribe(instance: Instance, call: OwnerCall) -> Shape:
    """Remove a subscriber and its pending deliveries."""
    return {"unsubscribed": await instance.telling.unsubscribe(call.request.path_params["name"])}


def _matches_topics(patterns: tuple[str, ...], one: event.Event) -> bool:
    return not patterns or event.wants(patterns, one.topic)


EVENT_ROUTES = (
    OwnerRoute("POST", "/v1/deliveries/{id}/requeue", partial(decide_delivery, again=True), gives=gives(decided=FLAG)),
    OwnerRoute("POST", "/v1/deliveries/{id}/dismiss", partial(decide_delivery, again=False), gives=gives(decided=FLAG)),
    OwnerRoute("POST", "/v1/subscribers/{name}/unsubscribe", unsubscribe, gives=gives(unsubscribed=FLAG)),
)


_TASK_ROWS = 20
_SCHEDULE_ROWS = 100
_STATES = (*schedule.LIVE, "done", "cancelled")


async def find_tasks(instance: Instance, call: OwnerCall) -> Response:
    """Tasks, newest first."""
    query = call.request.query_params
    state, limit = query.get("state"), read_limit(call.request, _TASK_ROWS)
    if state is not None and state not in (*OPEN, *ENDED):
        raise BadRequest(f"state must be one of {', '.join((*OPEN, *ENDED))}")
    found = await instance.services.tasks.find(TaskFilter(state, query.get("key"), limit=limit))
    return await render_in_thread(lambda: {"tasks": [task_shapes.task_shape(task) for task in found]})


async def get_task(instance: Instance, call: OwnerCall) -> Response:
    """A task with its steps and the tasks that wait for it."""
    if (story := await instance.services.tasks.story(call.id_of("task"))) is None:
        raise no_such("task")
    return await render_in_thread(lambda: task_shapes.task_story_shape(story))


async def create_task(instance: Instance, call: OwnerCall) -> Response:
    """Make a task by the owner's word."""
    text = call.text("task")
    if not text.strip():
        raise BadRequest("say in `task` what is to be done")
    terms = WorkTerms(tools=call.names("tools"))
    new = NewTask(0, text, call.text("key"), terms=terms, outside=False, after=tuple(call.ids("after", "task")))
    return JSONResponse({"id": ids.show("task", await instance.services.tasks.create(new))}, 201)


async def cancel_task(instance: Instance, call: OwnerCall) -> Shape:
    """End a task that has not ended."""
    reason = call.text("reason") or "cancelled by the owner"
    return {"done": await instance.services.tasks.cancel(call.id_of("task"), reason)}


async def run_task(instance: Instance, call: OwnerCall) -> Shape:
    """Make a pending task due at once."""
    return {"done": await instance.services.tasks.run(call.id_of("task"))}


async def approve_task(instance: Instance, call: OwnerCall) -> Shape:
    """Approve a task under review; `result` is the result of its unfinished call, if the owner knows it."""
    result = call.text("result") if call.fields.get("result") is not None else None
    return {"done": await instance.services.tasks.decide(call.id_of("task"), approved=True, result=result)}


async def reject_task(instance: Instance, call: OwnerCall) -> Shape:
    """Let a parked task fail."""
    reason = call.text("reason") or "refused by the owner"
    return {"done": await instance.services.tasks.decide(call.id_of("task"), approved=False, reason=reason)}


async def list_schedules(instance: Instance, call: OwnerCall) -> Response:
    """Those that live, by id; with `?all=1` those that are over as well, with `?after=ID` those that follow."""
    query = call.request.query_params
    states, name = _STATES if read_flag(call.request, "all") else schedule.LIVE, query.get("after")
    after = 0 if name is None else ids.read("schedule", name)
    if after is None:
        raise BadRequest("after must name a schedule: sch_...")
    found = await instance.services.schedules.list(states, read_limit(call.request, _SCHEDULE_ROWS), after)
    return await render_in_thread(lambda: task_shapes.schedules_shape(found))


async def add_schedule(instance: Instance, call: OwnerCall) -> Response:
    """Add a schedule."""
    new = task_shapes.parse_schedule(call.fields, instance.config.schedules.timezone)
    return JSONResponse(task_shapes.schedule_shape(await instance.services.schedules.add(new)), 201)


async def get_schedule(instance: Instance, call: OwnerCall) -> Shape:
    """One schedule, by its id or name, with its last runs."""
    return await task_shapes.schedule_view_shape(instance.services.schedules.view, await _schedule(instance, call))


async def change_schedule(instance: Instance, call: OwnerCall) -> Shape:
    """Run a schedule now, pause, resume or cancel it."""
    verb = call.request.path_params["verb"]
    if verb not in task_shapes.VERBS:
        raise NotFound(f"a schedule cannot {verb}; it can {', '.join(task_shapes.VERBS)}")
    return await task_shapes.change_schedule(instance, await _schedule(instance, call), verb)


async def _schedule(instance: Instance, call: OwnerCall) -> str:
    name = str(call.request.path_params["id"])
    try:
        await find_schedule(instance.services.schedules.view, name, ids.read("schedule", name))
    except InputError as error:
        raise NotFound(error.what, safe=error.safe, hint=error.hint) from None
    return name


TASK_ROUTES = (
    OwnerRoute("GET", "/v1/tasks", find_tasks, query=("state", "key", "limit"), gives=gives(tasks=many(ref("Task")))),
    OwnerRoute("POST", "/v1/tasks", create_task, 200_000, statuses=(201,), takes=_TASK, gives=gives(id=TEXT)),
    OwnerRoute("GET", "/v1/tasks/{id}", get_task, gives=ref("TaskStory")),
    OwnerRoute("POST", "/v1/tasks/{id}/run", run_task, 200_000, gives=_DONE),
    OwnerRoute("POST", "/v1/tasks/{id}/cancel", cancel_task, 200_000, takes=takes(reason=TEXT), gives=_DONE),
    OwnerRoute("POST", "/v1/tasks/{id}/approve", approve_task, 200_000, takes=takes(result=TEXT), gives=_DONE),
    OwnerRoute("POST", "/v1/tasks/{id}/reject", reject_task, 200_000, takes=takes(reason=TEXT), gives=_DONE),
    OwnerRoute(
        "GET",
        "/v1/schedules",
        list_schedules,
        query=("all", "after", "limit"),
        gives=gives(schedules=many(ref("Schedule"))),
    ),
    OwnerRoute(
        "POST",
        "/v1/schedules",
        add_schedule,
        100_000,
        statuses=(201,),
        takes=task_shapes.SCHEDULE_FIELDS,
        gives=ref("Schedule"),
    ),
    OwnerRoute("GET", "/v1/schedules/{id}", get_schedule, gives=ref("ScheduleStory")),
    OwnerRoute("POST", "/v1/schedules/{id}/{verb}", change_schedule, gives=ref("Schedule")),
)
