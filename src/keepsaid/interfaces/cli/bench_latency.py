"""`keepsaid bench latency`: how fast memory answers when it holds much."""

from __future__ import annotations

import asyncio
import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import typer

from keepsaid.errors import EmbedderError
from keepsaid.interfaces.cli.output import Table, show
from keepsaid.interfaces.cli.progress import Tell, progress
from keepsaid.interfaces.cli.session import say, session

_QUESTIONS, _SAVED = 200, 1_000


def latency(
    n: Annotated[int, typer.Option("--n", min=1, help="So many memories.")] = 100_000,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the store in this folder, or go on with the one that is there.")
    ] = None,
    questions: Annotated[int, typer.Option(min=20, help="So many questions.")] = _QUESTIONS,
    saved: Annotated[int, typer.Option(min=20, help="So many memories saved one at a time.")] = _SAVED,
) -> None:
    """How fast does recall answer? A store of made-up talk in one scope, asked with all legs, on one core.

    Each question is put to words, vectors and graph, joined, and the best are read; embedding it is measured apart,
    with the embedder of your home. 100,000 memories take a few minutes to make and 0.3 GB of disk, 1,000,000 ten times
    as much; they stand in a temporary directory, your home is not touched.
    """
    # numpy starts as many threads as there are cores, unless told before it is imported
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    with ExitStack() as stack:
        place = keep or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="keepsaid-bench-")))
        place.mkdir(parents=True, exist_ok=True)
        with progress(n, "memories") as tell:
            shape = asyncio.run(_measured(place / "memory.db", n, (questions, saved), tell))
    shape["query_embedding"] = _embedding()
    _show(shape)


async def _measured(path: Path, n: int, counts: tuple[int, int], tell: Tell) -> dict[str, Any]:
    from keepsaid.testing import latency as measure  # noqa: PLC0415 - imports numpy
    from keepsaid.testing.made_talk import MadeTalk  # noqa: PLC0415 - imports numpy

    asked = list(MadeTalk().questions(counts[0]))
    async with measure.recalling(path, asked) as (store, _):
        await measure.fill(store, n, tell)
    # opened anew: what was written last stands in the file
    measure.cache(path)
    async with measure.recalling(path, asked) as (store, recall):
        recalled = await measure.ask(recall, asked)
        times, found = await measure.save(store, recall, counts[1])
    return {
        "memories": n,
        "recall": recalled.shape(),
        "text_overlap_at_10": measure.overlap(path, asked),
        "save": {**times.shape(), "saved": counts[1], "found_by_the_next_query": found},
        "start": measure.start(path),
        "file_mb": measure.file_megabytes(path),
    }


def _embedding() -> dict[str, Any]:
    """What a query costs the embedder of this home; why not, where there is none."""
    from keepsaid.app.models import try_embedder  # noqa: PLC0415

    try:
        name, milliseconds = asyncio.run(try_embedder(session().home, session().config()))
    except EmbedderError as error:
        return {"missing": f"{error.what} ({error.hint})"}
    return {"model": name, "p50_ms": round(milliseconds, 1)}


def _show(shape: dict[str, Any]) -> None:
    recall, save, start, embedding = shape["recall"], shape["save"], shape["start"], shape["query_embedding"]
    rows = [
        ("recall", f"{recall['p50_ms']} ms", f"{recall['p95_ms']} ms", f"{recall['cpu_p95_ms']} ms"),
        ("save a memory", f"{save['p50_ms']} ms", f"{save['p95_ms']} ms", f"{save['cpu_p95_ms']} ms"),
    ]
    if "p50_ms" in embedding:
        rows.append((f"embed a query: {embedding['model']}", f"{embedding['p50_ms']} ms", "", ""))
    show(shape, Table((f"{shape['memories']} MEMORIES", "P50", "P95", "P95 OF CPU"), tuple(rows)))
    if session().json:
        return
    say(f"found by the very next query: {save['found_by_the_next_query']} of {save['saved']} saved")
    say(f"of the ten best by all words, {shape['text_overlap_at_10']:.0%} are among the ten by those looked up")
    say(
        f"a new process: first answer after {start['first_answer_s']} s, {start['memory_mb']} MB beyond the interpreter"
    )
    if "missing" in embedding:
        say(f"embedding a query: {embedding['missing']}")
