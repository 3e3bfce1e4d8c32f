"""How fast memory answers: a store of made-up talk, questions asked of it one after another, and what that takes.

`python -m keepsaid_testkit.latency STORE` opens a store that is there, asks once, and tells when the answer came.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from array import array
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

from keepsaid.adapters.sql.search import full_text
from keepsaid.adapters.sql.search.memories import SearchedMemories
from keepsaid.adapters.sqlite.connection import open_reader
from keepsaid.adapters.sqlite.stores import SqliteMemories, open_memories
from keepsaid.adapters.system.machine import SystemClock, SystemIds
from keepsaid.app.stores import PATIENT_MS, recollection
from keepsaid.domain.graph import Association, Mention, Relation
from keepsaid.domain.memory import Kind, Listener, NewMemory, NewVector, VectorSpace, conversation_scope
from keepsaid.domain.message import Lane, Trust
from keepsaid.memory.indexing import Embedding
from keepsaid.memory.recall.recollection import Recollection
from keepsaid.values import frozen
from keepsaid_testkit.made_talk import DIMENSION, SPACE, MadeQuestion, MadeTalk

LANE = Lane("library", "default", "made talk", "root:made talk")
HEARING = Listener(LANE, cross=True)
LIMIT = 10

_EACH = 2_000
_BEGAN = 1_700_000_000_000
_WARM_UP = 10
_READ_BYTES = 1 << 24
_OVERLAPS = 30
_MENTIONS_EVERY, _ENTITIES = 20, 500

_BARE = """
import pathlib, resource, sys
status = pathlib.Path("/proc/self/statm")
if status.exists():
    print(int(status.read_text("ascii").split()[1]) * resource.getpagesize() / 1_048_576)
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1_048_576 if sys.platform == "darwin" else 1_024))
"""
"""What a bare interpreter holds, measured as `megabytes` does."""

Tell = Callable[[int, int, str], None]


class PrecomputedEmbedder:
    """Embedder with precomputed vectors of its questions; the cost of embedding is measured separately."""

    def __init__(self, asked: Sequence[MadeQuestion]) -> None:
        self._vectors = {one.text: one.vector for one in asked}

    async def space(self) -> VectorSpace:
        """The space of made-up talk."""
        return SPACE

    async def query(self, text: str) -> bytes:
        """The vector that was made with the question."""
        return self._vectors.get(text) or next(iter(self._vectors.values()))

    async def texts(self, texts: Sequence[str]) -> Sequence[bytes]:
        """Vectors of texts are kept with them."""
        return [await self.query(text) for text in texts]


@frozen
class Times:
    """What each of many took, in milliseconds: by the clock, and of processor time."""

    wall: list[float]
    cpu: list[float]

    def shape(self) -> dict[str, float]:
        """The median and what 95 of 100 do not exceed."""
        return {f"{name}_ms": figure for name, figure in (*_spread("", self.wall), *_spread("cpu_", self.cpu))}


def _spread(name: str, values: Sequence[float]) -> Iterator[tuple[str, float]]:
    cut = statistics.quantiles(values, n=100)
    yield f"{name}p50", round(cut[49], 2)
    yield f"{name}p95", round(cut[94], 2)


async def fill(store: SearchedMemories, count: int, tell: Tell) -> None:
    """Let a store hold `count` memories of one lane, each with a vector and edges; goes on where an end was."""
    talk = MadeTalk()
    there = sum((await store.counts()).values())
    last = max((one.piece_id for one in await store.spaces()), default=0)
    for first in range(there - there % _EACH, count, _EACH):
        said = talk.texts(first, _EACH)
        made = [_memory(first + n, text) for n, text in enumerate(said[: count - first])]
        ids = await store.keep(made, _BEGAN)
        due = await store.unembedded(SPACE, last, _EACH)
        vectors = talk.vectors(first, _EACH)
        new = [NewVector(one.piece_id, vector.tobytes()) for one, vector in zip(due, vectors, strict=False)]
        last = due[-1].piece_id if due else last
        await store.keep_vectors(SPACE, new, _BEGAN, last)
        await store.graph.relate(*_edges(ids), _BEGAN)
        tell(min(first + _EACH, count), count, "")


def _memory(number: int, text: str) -> NewMemory:
    return NewMemory(
        key=f"made:{number}",
        kind=Kind.EPISODE,
        text=text,
        scope=conversation_scope(LANE),
        trust=Trust.OWNER,
        lane=LANE,
        speaker=MadeTalk.speaker(number),
        said_at=_BEGAN + number * 1_000,
        importance=(number * 7 % 10) / 10,
    )


def _edges(ids: Sequence[int]) -> tuple[list[Association], list[Mention]]:
    """Two associations a memory, and a mention now and then."""
    related = [
        Association(one, ids[(n * 31 + step) % len(ids)], Relation.RELATED_TO, 0.5)
        for n, one in enumerate(ids)
        for step in (7, 77)
        if one != ids[(n * 31 + step) % len(ids)]
    ]
    mentions = [
        Mention(one, f"thing:{n % _ENTITIES}", f"thing {n % _ENTITIES}")
        for n, one in enumerate(ids)
        if n % _MENTIONS_EVERY == 0
    ]
    return related, mentions


@asynccontextmanager
async def recalling(path: Path, asked: Sequence[MadeQuestion]) -> AsyncIterator[tuple[SqliteMemories, Recollection]]:
    """A store, and recall as the product puts it together, with all legs."""
    store = await open_memories(path, SystemIds())
    try:
        yield store, recall_of(store, asked)
    finally:
        await store.close()


def recall_of(store: SearchedMemories, asked: Sequence[MadeQuestion]) -> Recollection:
    """Recall of an open store, wherever it is, with all legs."""
    clock = SystemClock()
    return recollection(store, clock, PATIENT_MS, Embedding(PrecomputedEmbedder(asked), store, clock))


def cache(path: Path) -> None:
    """Read a store once, so that it is in the system's cache as that of a running program is."""
    with path.open("rb") as file:
        while file.read(_READ_BYTES):
            pass


async def ask(recall: Recollection, asked: Sequence[MadeQuestion]) -> Times:
    """Ask one after another; the first ten are not counted."""
    wall, cpu = [], []
    for one in (*asked[:_WARM_UP], *asked):
        began, spent = time.perf_counter(), time.process_time()
        answer = await recall.recall(HEARING, one.text, LIMIT)
        wall.append((time.perf_counter() - began) * 1_000)
        cpu.append((time.process_time() - spent) * 1_000)
        if answer.missing:
            raise RuntimeError(f"a leg did not answer: {answer.missing}")
    return Times(wall[_WARM_UP:], cpu[_WARM_UP:])


async def save(store: SqliteMemories, recall: Recollection, count: int) -> tuple[Times, int]:
    """Save memories one at a time; returns what that took, and how many the very next question found."""
    wall, cpu, found = [], [], 0
    stamp = time.time_ns()
    for n in range(count):
        began, spent = time.perf_counter(), time.process_time()
        new = replace(
            _memory(n, f"what is new {stamp}x{n} is found"), key=f"new:{stamp}:{n}", said_at=stamp // 1_000_000
        )
        [id_] = await store.keep([new], _BEGAN)
        wall.append((time.perf_counter() - began) * 1_000)
        cpu.append((time.process_time() - spent) * 1_000)
        answer = await recall.recall(HEARING, f"{stamp}x{n}", 1)
        found += [hit.memory.id for hit in answer.hits] == [id_]
    return Times(wall, cpu), found


def overlap(path: Path, asked: Sequence[MadeQuestion]) -> float:
    """Which share of the ten best by words, if no word were too common to look up, are among the ten best."""
    shares = []
    with closing(open_reader(path)) as db:
        for one in asked[:_OVERLAPS]:
            best, whole = (
                {found.memory_id for found in full_text.search(db, HEARING, one.text, LIMIT, capped=capped)}
                for capped in (True, False)
            )
            shares.append(len(best & whole) / max(1, len(whole)))
    return round(statistics.mean(shares), 3)


async def first(path: Path) -> Mapping[str, float]:
    """The first answer of this process: when it was there, in seconds of the clock, and the megabytes held by then."""
    asked = [MadeQuestion("rain in the harbour", array("f", [DIMENSION**-0.5] * DIMENSION).tobytes())]
    async with recalling(path, asked) as (_, recall):
        answer = await recall.recall(HEARING, asked[0].text, LIMIT)
        told = {"at": time.time(), "megabytes": megabytes()}
    return {**told, "hits": len(answer.hits)}


def start(path: Path) -> dict[str, float]:
    """A new process with a store that is not in the system's cache: seconds to its first answer, and its memory.

    Of its megabytes those of a bare interpreter are taken off.
    """
    _uncache(path)
    began = time.time()
    told = json.loads(_run("-m", "keepsaid_testkit.latency", str(path)))
    told["bare"] = float(_run("-c", _BARE))
    beyond = told["megabytes"] - told["bare"]
    return {"first_answer_s": round(told["at"] - began, 3), "memory_mb": round(beyond, 1)}


def _run(*words: str) -> str:
    return subprocess.run([sys.executable, *words], check=True, capture_output=True, text=True).stdout  # noqa: S603


def _uncache(path: Path) -> None:
    if hasattr(os, "posix_fadvise"):
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def megabytes() -> float:
    """The memory this process holds: now on Linux, at most so far elsewhere."""
    status = Path("/proc/self/statm")
    if status.exists():
        return int(status.read_text("ascii").split()[1]) * resource.getpagesize() / 1_048_576
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS, kilobytes elsewhere
    return most / (1_048_576 if sys.platform == "darwin" else 1_024)


def file_megabytes(path: Path) -> float:
    """How large a store is."""
    return round(path.stat().st_size / 1_048_576, 1)


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(first(Path(sys.argv[1])))) + "\n")
