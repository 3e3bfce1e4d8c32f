"""Kinds of places in which a word can come to stand in a home, each planted through a door of a running server."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import apsw
from prompt_toolkit.history import FileHistory
from tests.unit.extension_cast import put
from tests.unit.http_cast import Site, site
from tests.unit.task_cast import until

from keepsaid.domain.bundle import BundleEntry
from keepsaid.domain.bundle_lines import line_of
from keepsaid.domain.memory import Kind, Memory, NewMemory, person_scope
from keepsaid.domain.message import Trust
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import TaskFilter
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Refuse, Say, Script
from keepsaid.testing.model_server import ModelServer
from keepsaid.testing.webhooks import payload, sign

STEM = "ebraquoex"
PERSON = "http:default:Zebraquoex04"
SECRET = "a lantern at the end of the pier"  # gitleaks:allow
KINDS = (
    "text of a message",
    "text in upper case",
    "name of a sender",
    "id of a sender",
    "idempotency key",
    "provider id",
    "target of a reply",
    "topic of a lane",
    "id of a conversation",
    "name of an attachment",
    "address of an attachment",
    "data of a message",
    "data of a duplicate",
    "reply of the agent",
    "argument of a refused call",
    "query of a search",
    "saved memory",
    "slot of a saved memory",
    "question",
    "option of a question",
    "answer to a question",
    "description of a task",
    "key of a task",
    "result of a task",
    "topic of a branch",
    "name of a schedule",
    "text of a schedule",
    "error of a provider",
    "way to speak",
    "reason of a silence",
    "sentence of an explicit request",
    "title of a webhook",
    "body of a webhook",
    "login in a webhook",
    "delivery id of a webhook",
    "delivery id of a repeated webhook",
    "message of a bot",
    "file of a bot",
    "memory added by hand",
    "memory put right",
    "memory merged away",
    "pinned memory",
    "imported memory",
    "name in an imported memory",
    "task made by hand",
    "key of a task made by hand",
    "reason of a cancelled task",
    "schedule made by hand",
    "summary of a lane",
    "typed line",
    "text an extension was told",
    "result of a tool of an extension",
    "call that waits for approval",
    "prompt of a search for what to forget",
    "text of a reply target",
    "title of a conversation",
)
_WORDS = {kind: f"Z{STEM}{number:02d}" for number, kind in enumerate(KINDS, 1)}
_CALLED = re.compile(r"<<(\w+) (\{.*?\})>>", re.DOTALL)
_WHICH = re.compile(rb"ebraquoex(\d\d)", re.IGNORECASE)

NOTES = '''
@extension(id="notes")
class Notes:
    """Looks a note up."""

    @tool(kind="pure")
    async def note(self, about: str) -> str:
        """Look a note up."""
        return "the note says " + about

    @tool
    async def press(self, button: str) -> str:
        """Press a button."""
        return "pressed"

    @context(priority=20, trust="owner")
    async def remind(self, claimed):
        return "just said: " + " ".join(one.text for one in claimed.messages)[:300]
'''


def word(kind: str) -> str:
    """The word of a kind of place."""
    return _WORDS[kind]


def written(stem: str) -> Iterator[bytes]:
    """The ways in which a word of ASCII may stand in a file."""
    for form in {stem, stem.lower(), stem.upper(), stem.title()}:
        plain = form.encode()
        for raw in (plain, form.encode("utf-16-le"), form.encode("utf-16-be")):
            yield raw
            yield raw.hex().encode()
            for lead in range(3):
                # without the ends, which depend on what stands beside
                yield base64.b64encode(b"x" * lead + raw)[4:-4]


def unpacked(file: Path) -> Iterator[bytes]:
    """A file as it is, and all that is compressed in it, also in pages that are free and in rows that are gone."""
    raw = file.read_bytes()
    yield raw
    for start in re.finditer(rb"\x78[\x01\x5e\x9c\xda]", raw):
        yield _inflated(raw[start.start() : start.start() + 65_536])
    if raw.startswith(b"SQLite format 3"):
        yield from _values(file)


def _values(file: Path) -> Iterator[bytes]:
    """What is compressed in the tables of a database; a long value stands on many pages."""
    db = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        tables = db.execute("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'")
        for (table,) in tables.fetchall():
            for row in db.execute(f'SELECT * FROM "{table}"'):
                yield from (_inflated(value) for value in row if isinstance(value, bytes) and len(value) > 4_000)
    finally:
        db.close()


def _inflated(value: bytes) -> bytes:
    try:
        return zlib.decompressobj().decompress(value)
    except zlib.error:
        return b""


def kinds_in(root: Path) -> set[str]:
    """The kinds of places whose word stands in some file."""
    found = {int(n) for file in _files(root) for raw in unpacked(file) for n in _WHICH.findall(raw)}
    return {kind for number, kind in enumerate(KINDS, 1) if number in found}


def residue(root: Path) -> set[tuple[str, bytes]]:
    """What is left of any of the words, however it is written: the file, and what stands around it."""
    way = re.compile(b"|".join(re.escape(way) for way in sorted(set(written(STEM)), key=len) if len(way) >= 6))
    return {
        (file.name, raw[max(0, found.start() - 40) : found.end() + 30])
        for file in _files(root)
        for raw in unpacked(file)
        for found in way.finditer(raw)
    }


def _files(root: Path) -> list[Path]:
    return [file for file in root.rglob("*") if file.is_file()]


def reacts(request: ChatRequest) -> Reaction:
    """Calls what the newest message asks for, once; else it says what that said, as models do."""
    asked = request.last("user")
    if "fail on" in asked:
        return Refuse(400, "bad", f"no: {asked[-300:]}")
    if "count to" in asked:
        return Say(f"seven is {word('reply of the agent')}")
    if asked.startswith("[Task]"):
        return Say(f"found {word('result of a task')}")
    found = _CALLED.search(asked)
    if found and request.messages[-1].get("role") == "user":
        return Call(found[1], json.loads(found[2]))
    return Say(f"ok: {asked}"[:1_500])


@dataclass
class Planting:
    """A server into which the words are planted."""

    made: Site
    first: str = ""
    told: dict[str, str] = field(default_factory=dict)

    async def post(self, path: str, **fields: object) -> Any:
        """What a route of the operator answers; it takes what it is given."""
        answer = await self.made.client.post(path, json=fields, headers=self.made.owner)
        assert answer.status_code < 300, (path, answer.text)
        return answer.json()

    async def say(self, text: str, **fields: object) -> str:
        """The id of a message of the person whose turn is over."""
        key = fields.pop("key", None)
        headers = {} if key is None else {"Idempotency-Key": str(key)}
        body = {"text": text, "sender": word("id of a sender"), "conversation": word("id of a conversation"), **fields}
        answer = await self.made.put(body, {**headers, **self.made.owner})
        assert answer.status_code < 300, answer.text
        told = str(answer.json()["id"])
        await self.made.settled(told)
        return told

    async def ask(self, tool: str, **arguments: object) -> str:
        """Have the person ask for a call of a tool, in a direct chat."""
        return await self.say(f"please <<{tool} {json.dumps(arguments)}>>", direct=True, conversation="dm")


async def messages(at: Planting) -> None:
    """Messages with everything that comes with one."""
    files = [
        {"name": f"{word('name of an attachment')}.pdf", "url": f"https://x.org/{word('address of an attachment')}"}
    ]
    body = {
        "text": f"my locker code is {word('text of a message')} or {word('text in upper case').upper()}",
        "sender": word("id of a sender"),
        "name": f"Wendelin {word('name of a sender')}",
        "conversation": word("id of a conversation"),
        "topic": word("topic of a lane"),
        "provider_id": word("provider id"),
        "data": {"attachments": files, "x": word("data of a message"), "y": word("data of a duplicate")},
    }
    key = {"Idempotency-Key": word("idempotency key"), **at.made.owner}
    first = await at.made.put(body, key)
    at.first = str(first.json()["id"])
    await at.made.settled(at.first)
    assert (await at.made.put(body, key)).json()["intake"] == "duplicate"
    assert (await at.made.put({**body, "text": f"not {STEM}"}, key)).status_code == 409
    await at.say(f"that is {word('text of a message')}", reply_to=word("provider id"), provider_id="p2")
    await at.say(f"and {word('text of a message')}", reply_to=word("target of a reply"), provider_id="p3")
    title = {"conversation_name": word("title of a conversation")}
    await at.say("so it is", reply_to="p9", reply_to_text=f"he said {word('text of a reply target')}", **title)
    await at.say(f"remember that my boat is called {word('sentence of an explicit request')}")
    await at.say(f"/personality set --person speak of {word('way to speak')}", direct=True, conversation="dm")
    await at.say(f"/forget {word('prompt of a search for what to forget')}", direct=True, conversation="dm")
    await at.say(f"fail on {word('error of a provider')}")
    await at.say(f"count to seven, {word('text of a message')}")
    await at.say(f"note this: {word('text an extension was told')}")


async def calls(at: Planting) -> None:
    """What a model writes when it calls tools."""
    await at.ask("memory_search", query=word("query of a search"))
    await at.ask("memory_search", query="x", unknown=word("argument of a refused call"))
    saved = {"subject": "Ann", "attribute": "locker", "value": word("slot of a saved memory")}
    await at.ask("memory_save", text=f"The locker of Ann is {word('saved memory')}", **saved)
    await at.ask("ask_for", question=word("question"), type="selection", options=["a", word("option of a question")])
    await at.say(word("answer to a question"), direct=True, conversation="dm")
    await at.ask("stay_silent", reason=word("reason of a silence"))
    await at.ask("task_create", task=f"find {word('description of a task')}", key=word("key of a task"))
    await at.ask("branch", about=f"think of {word('topic of a branch')}")
    text = f"say {word('text of a schedule')}"
    await at.ask("schedule_add", what="say", text=text, name=word("name of a schedule"), in_s=86_400)
    await at.ask("note", about=word("result of a tool of an extension"))
    await at.ask("press", button=word("call that waits for approval"))
    for task in await at.made.instance.services.tasks.find(TaskFilter()):
        if task.kind is not TaskKind.CALL:
            await until(at.made.instance, "completed", task.id)


async def hooks(at: Planting) -> None:
    """Deliveries of GitHub, and what a bot was sent."""
    source: dict[str, Any] = dict(payload("issues", 5))
    login = {"login": word("login in a webhook"), "id": 7}
    source["issue"] |= {"title": word("title of a webhook"), "body": word("body of a webhook"), "user": login}
    source |= {"sender": login, "ref": f"refs/heads/{word('title of a webhook')}"}
    body = json.dumps(source).encode()
    signed = {"x-github-event": "issues", "x-hub-signature-256": sign(SECRET, body)}
    for kind in ("delivery id of a webhook", "delivery id of a repeated webhook"):
        headers = {"content-type": "application/json", "x-github-delivery": word(kind), **signed}
        answer = await at.made.client.post("/hooks/github", content=body, headers=headers)
        assert answer.status_code < 300, answer.text
        await at.made.settled(answer.json()["id"])
    document = {"file_name": f"{word('file of a bot')}.pdf", "file_id": word("file of a bot")}
    sent = {"message_id": 41, "chat": {"id": 7, "type": "private"}, "from": {"id": 7, "first_name": "Ann"}}
    sent |= {"caption": word("message of a bot"), "document": document}
    answer = await at.made.client.post(
        "/v1/media/telegram", json={"update_id": 5, "message": sent}, headers=at.made.owner
    )
    assert answer.status_code < 300, answer.text
    await at.made.settled(answer.json()["id"])


def imported() -> dict[str, object]:
    """A memory as it stands in a bundle."""
    text = f"the boat is called {word('imported memory')}"
    new = NewMemory("import:1", Kind.FACT, text, person_scope("owner"), Trust.KNOWN, said_at=5)
    new = replace(new, speaker=word("name in an imported memory"))
    return line_of(BundleEntry(Memory(1, new, "active", 5), bytes(16)))


async def deeds(at: Planting) -> None:
    """What the owner does by command."""
    one = await at.post("/v1/memories", text=f"The code is {word('memory added by hand')}", kind="fact")
    two = await at.post("/v1/memories", text=f"{word('memory merged away')} opens the locker", kind="fact")
    three = await at.post("/v1/memories", text=f"Ann rows with {word('pinned memory')}", kind="fact")
    await at.post(f"/v1/memories/{three['id']}/pin", pinned=True)
    await at.post(f"/v1/memories/{one['id']}/merge", others=[two["id"]], anyway=True)
    await at.post(f"/v1/memories/{one['id']}/edit", text=f"The small code is {word('memory put right')}")
    made = await at.post("/v1/tasks", task=f"find {word('task made by hand')}", key=word("key of a task made by hand"))
    await at.post(f"/v1/tasks/{made['id']}/cancel", reason=f"no {word('reason of a cancelled task')}")
    await at.post(
        "/v1/schedules", say=f"row {word('schedule made by hand')}", every_s=86_400, to={"conversation": "dm"}
    )
    await at.post("/v1/memories/import", do="take", records=[imported()])
    await at.say(f"my summer house is in {word('summary of a lane')}", direct=True, conversation="dm")
    lane = {"channel": "http", "account": "default", "conversation": "dm", "key": "root:dm"}
    await at.post("/v1/lanes/compact", **lane, now=True)


async def planted(at: Planting) -> None:
    """Plant all kinds."""
    FileHistory(str(at.made.home.typed_file)).store_string(f"my locker is {word('typed line')}")
    for plant in (messages, calls, hooks, deeds):
        await plant(at)


@asynccontextmanager
async def planting(root: Path) -> AsyncIterator[Planting]:
    """A server that answers, with a hook of GitHub and an extension."""
    channels = {
        "github": {"secret": SECRET, "window_ms": 0, "quiet_ms": 0, "unmatched": "forward"},
        "http": {"trust": "owner"},
    }
    put(root / "config" / "extensions", "notes", NOTES)
    async with ModelServer(Script(default=reacts)) as model:
        models = {"chat": "openai/scripted", "base_url": model.url, "api_key": "k"}
        settings: dict[str, Any] = {
            "models": models,
            "channels": channels,
            "collection": {"extractor": "rules"},
            "extensions": {"notes": {"enabled": True}},
        }
        async with site(root, **settings) as made:
            yield Planting(made)
