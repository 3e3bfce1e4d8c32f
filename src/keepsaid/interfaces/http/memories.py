"""Routes for memory: imports, forgetting, revisions, people, and receipts of turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from keepsaid.app.instance import Instance
from keepsaid.domain.bundle import RECORDS_MAX, BundleEntry, ImportVerdict, Record
from keepsaid.domain.bundle_lines import BundleLineError, record_in
from keepsaid.domain.ids import read, show
from keepsaid.domain.memory import Listener, Memory
from keepsaid.interfaces.http.bodies import fields_of
from keepsaid.interfaces.http.gate import Gate
from keepsaid.interfaces.http.responses import BadRequest, NotFound, read_limit, render_in_thread
from keepsaid.interfaces.shapes import (
    USES_MAX,
    absent_shape,
    came_up_shape,
    memory_shape,
    person_shape,
    recalled_shape,
    turn_shape,
    widened_shape,
)
from keepsaid.interfaces.transfer import forget_request, forgetting_shape, preview_shape
from keepsaid.services.explaining import absence, listened
from keepsaid.services.importing import LocalMemory
from keepsaid.services.searching import SearchRequest, filters_of

_BODY_BYTES_MAX = 64_000_000


async def take_records(instance: Instance, gate: Gate, request: Request) -> Response:
    """Say what becomes of records (`look`), take them over (`take`), or learn what they say (`learn`).

    `key` tells which key the tombstones are made with, and takes one over where there is none.
    """
    gate.operator(request)
    fields = await fields_of(request, _BODY_BYTES_MAX)
    here, do = LocalMemory(instance.memories, instance.clock), fields.get("do")
    if do == "key":
        given = _hex(fields.get("key", ""), "key")
        return JSONResponse(
            {"adopted": bool(given) and await here.adopt_key(given), "key_print": await here.key_print()}
        )
    records = _records(fields.get("records"))
    if do == "look":
        return _render_verdicts(await here.look(records))
    if do == "take":
        contested = fields.get("contested", [])
        if not isinstance(contested, list):
            raise BadRequest("contested must be a list of texts in hexadecimal")
        return _render_verdicts(await here.take(records, [_hex(one, "contested") for one in contested]))
    if do == "learn":
        return _render_verdicts(await here.learn([one for one in records if isinstance(one, BundleEntry)]))
    raise BadRequest("do must be look, take, learn or key")


def _records(given: Any) -> list[Record]:
    if not isinstance(given, list) or len(given) > RECORDS_MAX:
        raise BadRequest(f"records must be a list of at most {RECORDS_MAX}")
    records = []
    for n, one in enumerate(given):
        try:
            records.append(record_in(one))
        except BundleLineError as error:
            raise BadRequest(f"record {n}: {error}") from error
    return records


def _hex(given: Any, name: str) -> bytes:
    try:
        return bytes.fromhex(given)
    except (TypeError, ValueError) as error:
        raise BadRequest(f"{name} must be text in hexadecimal") from error


def _render_verdicts(verdicts: Sequence[ImportVerdict]) -> Response:
    told = [
        {"outcome": str(one.outcome), "why": one.why, "beside": list(one.beside), "like": list(one.like)}
        for one in verdicts
    ]
    return JSONResponse({"verdicts": told})


_FORGETTING_BYTES_MAX = 1_000_000
_WAIT_S_MAX = 60.0


async def forget(instance: Instance, gate: Gate, request: Request) -> Response:
    """Count what would go; with `yes` forget it: nobody is told it when this is answered."""
    gate.operator(request)
    fields = await fields_of(request, _FORGETTING_BYTES_MAX)
    yes = fields.get("yes", False)
    if not isinstance(yes, bool):
        raise BadRequest("yes must be true or false")
    asked, service = forget_request(fields), instance.services.forgetting
    if yes:
        done = await service.forget(asked)
        told = forgetting_shape(done.request, done.backups)
    else:
        told = preview_shape(await service.preview(asked))
    return JSONResponse({**told, "stopping": instance.halt.is_set})


async def settled(instance: Instance, gate: Gate, request: Request) -> Response:
    """Wait until nothing is left to be forgotten, `wait_s` seconds at most; say whether."""
    gate.operator(request)
    wait_s = (await fields_of(request, _FORGETTING_BYTES_MAX)).get("wait_s", _WAIT_S_MAX)
    if isinstance(wait_s, bool) or not isinstance(wait_s, int | float) or not 0 <= wait_s <= _WAIT_S_MAX:
        raise BadRequest(f"wait_s must be a number of at most {_WAIT_S_MAX:.0f}")
    return JSONResponse({"settled": await instance.forgetter.settled(wait_s * 1_000)})


async def undo(instance: Instance, gate: Gate, request: Request) -> Response:
    """Put back what a request took, while it can be undone."""
    gate.operator(request)
    name = (await fields_of(request, _FORGETTING_BYTES_MAX)).get("id")
    if not isinstance(name, str):
        raise BadRequest("id must name a request to forget: fgt_...")
    return JSONResponse(forgetting_shape(await instance.services.forgetting.undo(name)))


_SEARCH_ROWS = 10
_LIST_ROWS = 20


class SearchRoutes:
    """Memory as its owner reads it: by a query and filters, newest first, or one by its id."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._gate = gate
        self._search = instance.services.search

    async def search(self, request: Request) -> Response:
        """The best memories for `query`, best first; without a query the newest. Filters narrow a search."""
        self._gate.operator(request)
        query = request.query_params
        if "query" not in query:
            kinds, limit = filters_of({"kind": query.get("kind", "")}).kind, read_limit(request, _LIST_ROWS)
            found = await self._search.newest(() if kinds is None else (kinds,), limit)
            return await render_in_thread(lambda: {"memories": [memory_shape(one) for one in found]})
        archived = query.get("archived", "") in {"1", "true"}
        limit = read_limit(request, _SEARCH_ROWS)
        recalled = await self._search.search(SearchRequest(query["query"], limit, filters_of(query), archived))
        return await render_in_thread(lambda: recalled_shape(recalled))

    async def get(self, request: Request) -> Response:
        """One memory, and what was known before and after of the same."""
        self._gate.operator(request)
        if read("memory", request.path_params["id"]) is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        memory = await self._search.get(request.path_params["id"])
        versions = await self._search.history(request.path_params["id"])
        return JSONResponse({"memory": memory_shape(memory), "history": [memory_shape(one) for one in versions]})


_REVISION_BYTES_MAX = 100_000


class VersionRoutes:
    """The owner's hand on memories."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._gate = gate
        self._memories = instance.services.memories

    async def edit(self, request: Request) -> Response:
        """Put a memory right; answers with the one that took its place."""
        memory_id, fields = await self._read_request(request)
        text, value = fields.get("text"), fields.get("value") or ""
        if not isinstance(text, str) or not isinstance(value, str):
            raise BadRequest("say the new text, and its value, as text")
        done = await self._memories.edit(memory_id, text, value)
        return JSONResponse({"id": show("memory", done.memory_id), "how": str(done.how)})

    async def pin(self, request: Request) -> Response:
        """Pin a memory, or take the pin out."""
        memory_id, fields = await self._read_request(request)
        pinned = fields.get("pinned", True)
        if not isinstance(pinned, bool):
            raise BadRequest("pinned must be true or false")
        await self._memories.pin(memory_id, pinned=pinned)
        return JSONResponse({"id": show("memory", memory_id), "pinned": pinned})

    async def archive(self, request: Request) -> Response:
        """Archive memories, or bring them back."""
        self._gate.operator(request)
        fields = await fields_of(request, _REVISION_BYTES_MAX)
        back = fields.get("back", False)
        if not isinstance(back, bool):
            raise BadRequest("back must be true or false")
        done = await self._memories.archive(_named(fields.get("ids"), "ids"), back=back)
        return JSONResponse({"ids": [show("memory", one) for one in done], "back": back})

    async def merge(self, request: Request) -> Response:
        """Have a memory stand for others that say the same."""
        memory_id, fields = await self._read_request(request)
        known = _named(fields.get("others"), "others")
        await self._memories.merge(memory_id, known)
        return JSONResponse({"id": show("memory", memory_id), "merged": [show("memory", one) for one in known]})

    async def _read_request(self, request: Request) -> tuple[int, dict[str, object]]:
        self._gate.operator(request)
        fields = await fields_of(request, _REVISION_BYTES_MAX)
        memory_id = read("memory", request.path_params["id"])
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        return memory_id, dict(fields)


def _named(given: object, field: str) -> list[int]:
    """The memories that a list names."""
    named = given if isinstance(given, list) else []
    known = [number for one in named if isinstance(one, str) and (number := read("memory", one)) is not None]
    if not known or len(known) < len(named):
        raise BadRequest(f"{field} must be a list of memories: mem_...")
    return known


_PEOPLE_BYTES_MAX = 100_000


class PeopleRoutes:
    """Who is who, and who hears what, by the owner's word."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._gate = gate
        self._people = instance.services.people

    async def join(self, request: Request) -> Response:
        """Make one person of several identities."""
        self._gate.operator(request)
        names = (await fields_of(request, _PEOPLE_BYTES_MAX)).get("names")
        if not isinstance(names, list):
            raise BadRequest("names must be a list of texts: CHANNEL:ACCOUNT:SENDER, or owner")
        told = [name for name in names if isinstance(name, str)]
        if len(told) < len(names):
            raise BadRequest("names must be texts: CHANNEL:ACCOUNT:SENDER, or owner")
        return JSONResponse({"person": person_shape(await self._people.join(told))})

    async def split(self, request: Request) -> Response:
        """Let one identity be a person alone again."""
        self._gate.operator(request)
        name = (await fields_of(request, _PEOPLE_BYTES_MAX)).get("name")
        if not isinstance(name, str):
            raise BadRequest("name must be text: CHANNEL:ACCOUNT:SENDER, or owner")
        return JSONResponse({"split": await self._people.split(name)})

    async def share_memory(self, request: Request) -> Response:
        """Share a memory with more listeners."""
        self._gate.operator(request)
        fields = await fields_of(request, _PEOPLE_BYTES_MAX)
        memory_id, to, reason = read("memory", request.path_params["id"]), fields.get("to"), fields.get("reason")
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        if not isinstance(to, str) or not isinstance(reason, str):
            raise BadRequest("say how far as `to` and why as `reason`, both as text")
        done = await self._people.share(memory_id, to, reason)
        return JSONResponse({"memory": show("memory", memory_id), "widened": widened_shape(done)})


_RECEIPT_BYTES_MAX = 10_000
_OWNER = Listener(None, everything=True)


class ReceiptRoutes:
    """Why a turn was shown what it was shown, and a person's word on that."""

    def __init__(self, instance: Instance, gate: Gate) -> None:
        self._instance = instance
        self._gate = gate
        self._memories = instance.services.memories

    async def turn(self, request: Request) -> Response:
        """One turn with its context, steps and receipts."""
        self._gate.operator(request)
        turn_id = read("turn", request.path_params["id"])
        story = None if turn_id is None else await self._instance.operations.turn(turn_id)
        if story is None:
            raise NotFound("there is no such turn", hint="keepsaid why")
        return await render_in_thread(lambda: {"turn": turn_shape(story)})

    async def absent(self, request: Request) -> Response:
        """Why a turn was not shown a memory."""
        self._gate.operator(request)
        turn_id = read("turn", request.path_params["id"])
        story = None if turn_id is None else await self._instance.operations.turn(turn_id)
        if story is None:
            raise NotFound("there is no such turn", hint="keepsaid why")
        memory = await self._memory(request.path_params["memory"])
        heard = await self._instance.memories.get(listened(story), memory.id) is not None
        return JSONResponse(absent_shape(story, memory, absence(story, memory, heard=heard)))

    async def came_up(self, request: Request) -> Response:
        """The turns a memory was shown to, opened in or left out of, and what was said of that."""
        self._gate.operator(request)
        memory = await self._memory(request.path_params["id"])
        uses = await self._instance.operations.uses(memory.id, USES_MAX)
        return JSONResponse(came_up_shape(memory, uses, await self._instance.operations.feedback(memory.id)))

    async def _memory(self, name: str) -> Memory:
        memory_id = read("memory", name)
        memory = None if memory_id is None else await self._instance.memories.get(_OWNER, memory_id)
        if memory is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        return memory

    async def flag_memory(self, request: Request) -> Response:
        """Flag a memory as wrong for a turn, or withdraw the flag."""
        self._gate.operator(request)
        fields = await fields_of(request, _RECEIPT_BYTES_MAX)
        memory_id, turn, undo = read("memory", request.path_params["id"]), fields.get("turn"), fields.get("undo", False)
        if memory_id is None:
            raise NotFound("there is no such memory", hint="keepsaid memory ls")
        turn_id = read("turn", turn) if isinstance(turn, str) else None
        if turn_id is None or not isinstance(undo, bool):
            raise BadRequest("say the turn that was shown the memory as text, and undo as true or false")
        done = await self._memories.record_feedback(memory_id, turn_id, undo=undo)
        return JSONResponse({"memory": show("memory", memory_id), "turn": show("turn", turn_id), "done": done})
