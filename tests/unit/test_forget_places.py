"""What is forgotten is in no file of the home, however it is written there: names, keys, lines and audiences too."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import AsyncIterator, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest
from prompt_toolkit.history import FileHistory

from keepsaid.adapters.sqlite.stores import SqliteOperations
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home
from keepsaid.domain.commits import TurnCommit
from keepsaid.domain.effects import KeepTime, MakeTask, MemoryAction, StageMemory
from keepsaid.domain.forgetting import ForgetSelector
from keepsaid.domain.memory import Kind, NewMemory, Source, person_scope
from keepsaid.domain.message import Content, Inbound, Origin, ProviderMarks, Trust
from keepsaid.domain.schedule import NewSchedule, Target, What
from keepsaid.domain.timing import Once
from keepsaid.testing.builders import outcome
from keepsaid_testkit.contracts.store_driver import StoreDriver

_WORD = "Zebraquöx7741"
_PERSON = "http:default:wendel77"


def written(word: str) -> Iterator[bytes]:
    """The ways in which a word may stand in a file."""
    for form in {word, word.lower(), word.upper(), word.casefold()}:
        yield from (form.encode(), form.encode("utf-16-le"), form.encode("utf-16-be"))
        yield json.dumps(form)[1:-1].encode()
        yield quote(form).encode()
        yield form.encode().hex().encode()
        for lead in range(3):
            # without the ends, which depend on what stands beside
            yield base64.b64encode(b"x" * lead + form.encode())[4:-4]


def unpacked(file: Path) -> Iterator[bytes]:
    """A file as it is, and every compressed value of every table in it."""
    raw = file.read_bytes()
    yield raw
    if not raw.startswith(b"SQLite format 3"):
        return
    with closing(apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)) as db:
        tables = db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'"
        ).fetchall()
        values = (value for (table,) in tables for row in db.execute(f'SELECT * FROM "{table}"') for value in row)
        yield from filter(None, map(_inflated, values))


def _inflated(value: object) -> bytes:
    try:
        return zlib.decompress(value) if isinstance(value, bytes) else b""
    except zlib.error:
        return b""


def residue(home: Path, *words: str) -> set[tuple[str, bytes]]:
    """Files that hold one of the words, and how it is written there."""
    ways = {way for word in words for way in written(word) if len(way) >= 6}
    files = [file for file in home.rglob("*") if file.is_file()]
    return {(file.name, way) for file in files for raw in unpacked(file) for way in ways if way in raw}


@pytest.fixture
async def instance(tmp_path: Path) -> AsyncIterator[Instance]:
    """A home that is open; nothing runs in it but what the test does."""
    async with opened(Home.at(tmp_path / "home"), Config()) as made:
        yield made


async def planted(instance: Instance, home: Home) -> None:
    """Put the word wherever a message, its turn and what is made of them can carry it."""
    store, text = instance.operations, f"my locker code is {_WORD}"
    origin = Origin("http", "default", "gym", "wendel77", "Wendelin Quastenflosser", direct=True, trust=Trust.KNOWN)
    marks = ProviderMarks(f"{_WORD}-1", f"{_WORD}-2")
    inbound = Inbound(origin, Content(json.dumps({"text": text}).encode(), text), marks, 10, None, f"http://x/{_WORD}")
    assert isinstance(store, SqliteOperations)
    road = StoreDriver(store, instance.ids.next())
    await road.queue(inbound)
    claimed = await road.claim_one()
    lane = claimed.messages[0].lane
    at_noon = NewSchedule(road.new_id(), "agent", _WORD, Once(90_000), What.SAY, text, Target(lane))
    effects = (
        MakeTask(road.new_id(), f"look for {_WORD}", key=_WORD),
        KeepTime(at_noon, 90_000),
        StageMemory(0, MemoryAction.SAVE, text=text),
    )
    batch, end = claimed.batch, replace(outcome(f"ok: {text}"), effects=effects)
    assert await store.apply(TurnCommit(claimed.turn_id, batch.id, batch.fence, end, None, 7))
    await instance.recorder.catch_up()
    fact = NewMemory(
        "fact",
        Kind.FACT,
        f"The code is {_WORD}",
        person_scope(_PERSON),
        Trust.KNOWN,
        lane=lane,
        speaker="Wendelin Quastenflosser",
        speaker_id=_PERSON,
        sources=(Source("message", str(claimed.messages[0].id)),),
        derived=True,
    )
    await instance.memories.learn([fact], 9)
    await instance.memories.people.join([_PERSON, "test:me:other"], "owner", 9)
    FileHistory(str(home.typed_file)).store_string(text)


async def test_what_is_forgotten_by_a_text_is_in_no_file(instance: Instance) -> None:
    await planted(instance, instance.home)
    root = instance.home.data.parent
    assert {"buffer.db-wal", "memory.db-wal", "history"} <= {name for name, _ in residue(root, _WORD)}
    done = await instance.services.forgetting.forget_selected(ForgetSelector(text=_WORD), "owner")
    assert done is not None
    assert done.state == "done"
    assert residue(root, _WORD) == set()


async def test_a_person_who_is_forgotten_leaves_no_name(instance: Instance) -> None:
    await planted(instance, instance.home)
    root = instance.home.data.parent
    assert {"buffer.db-wal", "memory.db-wal"} <= {name for name, _ in residue(root, "Quastenflosser", "wendel77")}
    done = await instance.services.forgetting.forget_selected(ForgetSelector(person=_PERSON), "owner")
    assert done is not None
    assert done.state == "done"
    assert residue(root, _WORD, "Quastenflosser", "wendel77") == set()


async def test_an_undo_brings_the_names_of_a_person_back(instance: Instance) -> None:
    await planted(instance, instance.home)
    before = await instance.memories.people.everybody()
    done = await instance.services.forgetting.forget_selected(ForgetSelector(person=_PERSON), "owner", 86_400_000)
    assert done is not None
    assert await instance.memories.people.everybody() != before
    assert await instance.forgetter.undo(done.id) is not None
    assert await instance.memories.people.everybody() == before
    assert await instance.memories.people.seen(9)
