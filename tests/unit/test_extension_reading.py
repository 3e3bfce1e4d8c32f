"""Extensions read messages and memory within what their manifests declare, and nothing else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from tests.unit.extension_cast import put
from tests.unit.task_cast import answered, owner_says, pull, settings

from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Home
from keepsaid.domain.ids import show
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.route import TaskKind, WorkTerms
from keepsaid.domain.task import NewTask
from keepsaid.errors import ExtensionError, InputError
from keepsaid.ports.extension import ReadScope
from keepsaid.services.reading import ReadingService
from keepsaid.testing.model_script import Script
from keepsaid.testing.model_server import ModelServer

DIRECT, ROOM, FORWARDED = "the key is under the mat", "we meet at noon", "a stranger wrote this"


def _says(text: str, room: str, *, direct: bool = False, trust: Trust = Trust.KNOWN) -> Inbound:
    origin = Origin("http", "default", room, "ann", direct=direct, trust=trust)
    return Inbound(origin, Content(text.encode(), text), ProviderMarks(), 10)


@asynccontextmanager
async def _talking(folder: Path) -> AsyncIterator[tuple[Instance, ReadingService, dict[str, int]]]:
    """A runtime in which the owner, a person and a stranger said something each, and the messages by their place."""
    said = {
        "owner": owner_says(DIRECT),
        "ann": _says("my cat is called Tom", "ann", direct=True),
        "room": _says(ROOM, "room"),
        "stranger": pull(text=FORWARDED),
    }
    async with ModelServer(Script()) as model:
        config = settings(models={"chat": "openai/scripted", "base_url": model.url, "api_key": "k"})
        async with opened(Home.at(folder), config) as instance:
            await instance.start()
            received = {name: await instance.receive(one) for name, one in said.items()}
            for one in received.values():
                await answered(instance, one)
            reading = ReadingService(instance.operations, instance.search)
            yield instance, reading, {name: one.id for name, one in received.items()}


@pytest.mark.parametrize(
    ("extension", "reads", "readable"),
    [
        ("desk", (), set()),
        ("desk", ("own",), set()),
        ("http", ("own",), {"owner", "ann", "room", "stranger"}),
        ("desk", ("owner",), {"owner"}),
        ("desk", ("http:room",), {"room"}),
        ("desk", ("http:room", "http:ann"), {"room", "ann"}),
        ("desk", ("slack:room",), set()),
    ],
)
async def test_a_message_is_read_where_the_manifest_allows_it(
    tmp_path: Path, extension: str, reads: tuple[str, ...], readable: set[str]
) -> None:
    async with _talking(tmp_path) as (_, reading, ids):
        scope, found = ReadScope(extension, reads), dict[str, str]()
        for name, number in ids.items():
            try:
                found[name] = str(await reading.read(scope, show("message", number)))
            except ExtensionError:
                continue
        with pytest.raises(ExtensionError, match="there is no message msg_0000000000001 that"):
            await reading.read(scope, 1)
    assert set(found) == readable
    assert found.get("owner", DIRECT) == DIRECT


async def test_what_the_owner_says_in_incognito_stays_in_its_chat(tmp_path: Path) -> None:
    async with _talking(tmp_path) as (instance, reading, _):
        await answered(instance, await instance.receive(owner_says("/incognito", "home")))
        received = await instance.receive(owner_says("nobody may know", "home"))
        await answered(instance, received)
        with pytest.raises(ExtensionError):
            await reading.read(ReadScope("desk", ("owner",)), received.id)
        assert await reading.read(ReadScope("desk", ("http:home",)), received.id) == "nobody may know"


async def test_recall_returns_what_the_audience_of_a_message_may_read(tmp_path: Path) -> None:
    async with _talking(tmp_path) as (instance, reading, ids):
        await instance.recorder.catch_up()
        owner, room, none = ReadScope("desk", ("owner",)), ReadScope("desk", ("http:room",)), ReadScope("desk")

        async def texts(scope: ReadScope, about: int | None = None) -> set[str]:
            query = "key mat, cat Tom, meet at noon, stranger"
            return {one.text for one in await reading.recall(scope, query, 50, about) if one.speaker != "assistant"}

        assert await texts(owner) == {DIRECT}
        assert await texts(room, ids["room"]) == {ROOM}
        with pytest.raises(ExtensionError, match=r"reads: \[owner\]"):
            await texts(none)
        with pytest.raises(ExtensionError, match="there is no message"):
            await texts(room, ids["ann"])
        with pytest.raises(InputError, match="from 1 to 50"):
            await reading.recall(owner, "key", 0, None)


async def test_the_result_of_a_task_is_read_by_its_own_extension(tmp_path: Path) -> None:
    async with _talking(tmp_path) as (instance, reading, _):
        terms = WorkTerms(agent="desk")
        number = await instance.services.tasks.create(NewTask(0, "count", kind=TaskKind.AGENT, terms=terms))
        assert (await reading.read(ReadScope("desk"), show("task", number))).trust is Trust.EXTERNAL
        with pytest.raises(ExtensionError):
            await reading.read(ReadScope("other", ("owner", "own")), number)


async def test_a_context_reads_in_the_name_of_its_extension(tmp_path: Path) -> None:
    source = """
    @extension(id="reader", reads=["http:home"])
    class Reader:
        async def initialize(self, context):
            self.context = context
    """
    put(Home.at(tmp_path).extensions, "reader", source)
    async with _talking(tmp_path) as (instance, _, ids):
        context = instance.extending.lifecycle.guests["reader"].context
        assert context is not None
        assert await context.read(ids["owner"]) == DIRECT
        await instance.recorder.catch_up()
        assert DIRECT in {one.text for one in await context.recall("key mat", about=ids["owner"])}
        with pytest.raises(ExtensionError):
            await context.read(ids["room"])
