"""Recall of 100,000 made-up memories by keepsaid, by LanceDB hybrid, and by sqlite-vec beside plain FTS5.

All hold the same texts and vectors, are asked the same questions one after another on one core, and give ten. Only
keepsaid filters by who listens, walks a graph and scores what stands around a match; it is one number that is compared.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import apsw
import numpy as np

from bench.contender import Absent, needed
from keepsaid_testkit import latency
from keepsaid_testkit.made_talk import DIMENSION, MadeQuestion, MadeTalk

_MEMORIES, _QUESTIONS, _WARM_UP = 100_000, 100, 10
_EACH = 10_000
_LIMIT, _DEPTH, _RANK = 10, 50, 60
"""Of each leg of a peer the 50 best are joined by 1 / (60 + rank), as is usual."""

Ask = Callable[[MadeQuestion], Sequence[object]]


def measure(folder: Path, scale: float) -> dict[str, object]:
    """Milliseconds a question takes everyone, and how many times as long as keepsaid the others take."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    count = max(1_000, int(_MEMORIES * scale))
    asked = list(MadeTalk().questions(_QUESTIONS))
    told: dict[str, object] = {"memories": count, "questions": len(asked)}
    ours = told["keepsaid"] = asyncio.run(_ours(folder / "memory.db", count, asked)).shape()
    for name, opened in (("lancedb_hybrid", _lancedb), ("sqlite_vec_and_fts5", _sqlite_vec)):
        try:
            theirs = _taken(opened(folder, count), asked).shape()
        except Absent as reason:
            told[name] = {"skipped": str(reason)}
        else:
            told[name] = {**theirs, "times_ours": {key: round(theirs[key] / ours[key], 2) for key in ours}}
    return told


async def _ours(path: Path, count: int, asked: Sequence[MadeQuestion]) -> latency.Times:
    async with latency.recalling(path, asked) as (store, recall):
        await latency.fill(store, count, lambda _done, _total, _what: None)
        return await latency.ask(recall, asked)


def _taken(ask: Ask, asked: Sequence[MadeQuestion]) -> latency.Times:
    wall, cpu = [], []
    for one in (*asked[:_WARM_UP], *asked):
        began, spent = time.perf_counter(), time.process_time()
        found = ask(one)
        wall.append((time.perf_counter() - began) * 1_000)
        cpu.append((time.process_time() - spent) * 1_000)
        if len(found) != _LIMIT:
            raise RuntimeError(f"{len(found)} were found, not {_LIMIT}")
    return latency.Times(wall[_WARM_UP:], cpu[_WARM_UP:])


def _lancedb(folder: Path, count: int) -> Ask:
    """LanceDB with its own full text and an HNSW index of vectors, joined by its own reciprocal rank."""
    arrow = needed("pyarrow")
    talk, table = MadeTalk(), None
    db = needed("lancedb").connect(folder / "lance")
    for first in range(0, count, _EACH):
        size = min(_EACH, count - first)
        flat = arrow.array(talk.vectors(first, size).ravel())
        vectors = arrow.FixedSizeListArray.from_arrays(flat, DIMENSION)
        rows = arrow.table({"id": list(range(first, first + size)), "text": talk.texts(first, size), "vector": vectors})
        table = db.create_table("memory", rows) if table is None else table
        if first:
            table.add(rows)
    assert table is not None, "there are texts"
    table.create_fts_index("text")
    table.create_index(metric="cosine", index_type="IVF_HNSW_SQ", num_partitions=1)
    table.optimize()

    def ask(one: MadeQuestion) -> Sequence[object]:
        hybrid = table.search(query_type="hybrid").vector(np.frombuffer(one.vector, np.float32)).text(one.text)
        found: list[object] = hybrid.limit(_LIMIT).to_list()
        return found

    return ask


def _sqlite_vec(folder: Path, count: int) -> Ask:
    """sqlite-vec's exact search and FTS5 with every word of the question."""
    extension = needed("sqlite_vec").loadable_path()
    db = apsw.Connection(str(folder / "peer.db"))
    db.enable_load_extension(True)
    db.load_extension(extension)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("CREATE TABLE memory (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    db.execute("CREATE VIRTUAL TABLE words USING fts5(text, content='memory', content_rowid='id', tokenize='porter')")
    db.execute(f"CREATE VIRTUAL TABLE vectors USING vec0(vector float[{DIMENSION}] distance_metric=cosine)")
    talk = MadeTalk()
    for first in range(0, count, _EACH):
        size = min(_EACH, count - first)
        numbered = list(enumerate(talk.texts(first, size), first + 1))
        vectors: Any = zip(range(first + 1, first + 1 + size), talk.vectors(first, size), strict=True)
        with db:
            db.executemany("INSERT INTO memory VALUES (?, ?)", numbered)
            db.executemany("INSERT INTO words (rowid, text) VALUES (?, ?)", numbered)
            db.executemany("INSERT INTO vectors (rowid, vector) VALUES (?, ?)", ((i, v.tobytes()) for i, v in vectors))

    def ask(one: MadeQuestion) -> Sequence[object]:
        words = " OR ".join(f'"{word}"' for word in one.text.split())
        by_words = db.execute("SELECT rowid FROM words WHERE words MATCH ? ORDER BY rank LIMIT ?", (words, _DEPTH))
        by_meaning = db.execute("SELECT rowid FROM vectors WHERE vector MATCH ? AND k = ?", (one.vector, _DEPTH))
        joined: dict[int, float] = {}
        for leg in (by_words.fetchall(), by_meaning.fetchall()):
            for rank, row in enumerate(leg):
                joined[int(str(row[0]))] = joined.get(int(str(row[0])), 0.0) + 1 / (_RANK + rank)
        best = sorted(joined, key=lambda id_: joined[id_], reverse=True)[:_LIMIT]
        return [db.execute("SELECT text FROM memory WHERE id = ?", (id_,)).fetchall() for id_ in best]

    return ask
