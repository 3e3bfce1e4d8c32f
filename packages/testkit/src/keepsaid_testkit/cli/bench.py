"""`keepsaid bench`: how well and how fast memory recalls, measured on data sets with known answers."""

from __future__ import annotations

import asyncio
import os
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.errors import EmbedderError, InputError
from keepsaid.interfaces.cli.console import Table, say, session, show
from keepsaid.interfaces.cli.progress_bar import Tell, progress

if TYPE_CHECKING:
    from keepsaid_testkit.recall_data import Corpus
    from keepsaid_testkit.recall_score import Means


_QUESTIONS, _SAVED = 200, 1_000


def latency(
    n: Annotated[int, typer.Option("--n", min=1, help="How many memories.")] = 100_000,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the store in this folder, or continue with the one there.")
    ] = None,
    questions: Annotated[int, typer.Option(min=20, help="How many questions.")] = _QUESTIONS,
    saved: Annotated[int, typer.Option(min=20, help="How many memories to save one at a time.")] = _SAVED,
) -> None:
    """Measure how fast recall answers from a store of generated talk, on one core.

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
            shape = asyncio.run(_latency_measured(place / "memory.db", n, (questions, saved), tell))
    shape["query_embedding"] = _embedding()
    _show_latency(shape)


async def _latency_measured(path: Path, n: int, counts: tuple[int, int], tell: Tell) -> dict[str, Any]:
    from keepsaid_testkit import latency as measure  # noqa: PLC0415 - imports numpy
    from keepsaid_testkit.made_talk import MadeTalk  # noqa: PLC0415 - imports numpy

    asked = list(MadeTalk().questions(counts[0]))
    async with measure.recalling(path, asked) as (store, _):
        await measure.fill(store, n, tell)
    # reopened: the file contains the last write
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
    from keepsaid.app.embedders import try_embedder  # noqa: PLC0415

    try:
        name, milliseconds = asyncio.run(try_embedder(session().home, session().config()))
    except EmbedderError as error:
        return {"missing": f"{error.what} ({error.hint})"}
    return {"model": name, "p50_ms": round(milliseconds, 1)}


def _show_latency(shape: dict[str, Any]) -> None:
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


app = typer.Typer(help="Measure the quality and speed of recall.", rich_markup_mode=None)
_HALF = 5
"""Corpora after the fifth are counted apart, so that luck with a few of them shows."""


@app.callback()
def bench() -> None:
    """Measure the quality and speed of recall."""


@app.command("recall")
def recall(
    data: Annotated[
        str, typer.Option(metavar="KIND=FILE", help="locomo=FILE or jsonl=FILE: texts, and questions with evidence.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="Only the first N corpora; 0 takes all.")] = 0,
    words: Annotated[bool, typer.Option("--words", help="Full-text search only, without the embedder.")] = False,
) -> None:
    """Measure how often recall finds the evidence of a data set; no model is called.

    Each corpus gets a home of its own in a temporary directory; yours is not touched. R@10 is the share of the
    evidence among the first 10, R in 1000 tokens that among the best that fit; corpora 1-5 and the others also
    have rows of their own.
    """
    corpora = list(_corpora(data))[: limit or None]
    if not any(corpus.questions for corpus in corpora):
        told = f"{data.partition('=')[2]} asks nothing: it has no question with evidence"
        raise InputError(told, safe="Nothing was changed.", hint="keepsaid bench recall --help")
    with progress(sum(len(corpus.questions) for corpus in corpora), "questions") as tell:
        means = asyncio.run(_measured(corpora, {} if words else _embedder(), tell))
    _show(data.partition("=")[0], means)


app.command("latency")(latency)


def _embedder() -> Mapping[str, str]:
    """The settings by which a home of the benchmark has the embedder of this one."""
    memory = session().config().memory
    given = {"embedder": memory.embedder, "models": str(session().home.store(memory.models))}
    given |= {"embedder_url": memory.embedder_url, "embedder_model": memory.embedder_model}
    if memory.embedder_key is not None:
        given["embedder_key"] = memory.embedder_key.get_secret_value()
    return given


def _corpora(data: str) -> Iterator[Corpus]:
    from keepsaid_testkit.recall_data import LOADERS  # noqa: PLC0415

    kind, _, file = data.partition("=")
    if kind not in LOADERS or not file:
        raise typer.BadParameter(f"{data!r} is none of: {', '.join(f'{one}=FILE' for one in LOADERS)}")
    try:
        yield from LOADERS[kind](Path(file))
    except OSError as error:
        told = f"{file} cannot be read ({error.strerror})"
        raise InputError(told, safe="Nothing was changed.", hint="keepsaid bench recall --help") from error
    except (ValueError, KeyError, TypeError) as error:
        why = str(error) if type(error) is ValueError else f"{type(error).__name__}: {error}"
        wrong = f"{file} is no {kind} data set ({why})"
        raise InputError(wrong, safe="Nothing was changed.", hint="keepsaid bench recall --help") from error


async def _measured(corpora: Sequence[Corpus], embedder: Mapping[str, str], tell: Tell) -> Means:
    from keepsaid_testkit.recall_score import Means  # noqa: PLC0415

    means, total, done = Means(), sum(len(corpus.questions) for corpus in corpora), 0
    for n, corpus in enumerate(corpora, start=1):
        with tempfile.TemporaryDirectory(prefix="keepsaid-bench-") as folder:
            part = f"corpora 1-{_HALF}" if n <= _HALF else f"corpora {_HALF + 1} on"
            await _ask(corpus, (Path(folder), embedder), ("all", part), means)
        done += len(corpus.questions)
        tell(done, total, corpus.id)
    return means


async def _ask(corpus: Corpus, home: tuple[Path, Mapping[str, str]], groups: Sequence[str], means: Means) -> None:
    from keepsaid import Episode, Keepsaid  # noqa: PLC0415
    from keepsaid_testkit.recall_score import measure  # noqa: PLC0415

    said = [Episode(text.text, text.speaker, corpus.id, text.at, external_id=text.id) for text in corpus.texts]
    async with Keepsaid.open(home[0], settings={"memory": dict(home[1])}) as keepsaid:
        await keepsaid.memory.record(said)
        await keepsaid.memory.embed()

        async def search(question: str, limit: int) -> list[str]:
            return [one.external_id for one in await keepsaid.memory.recall(question, limit, corpus.id)]

        await measure(corpus, groups, search, means)


def _show(kind: str, means: Means) -> None:
    from keepsaid_testkit.recall_score import AT, TOKENS  # noqa: PLC0415

    shape = means.shape()
    times = statistics.quantiles(means.times, n=100) if len(means.times) > 1 else [0.0] * 99
    took = {"p50_ms": round(times[49] * 1000, 2), "p95_ms": round(times[94] * 1000, 2)}
    names = [*(f"R@{k}" for k in AT), *(f"R in {count} tokens" for count in TOKENS), "MRR"]
    rows = tuple(
        (group, str(int(figures["questions"])), *(f"{figures[name]:.3f}" for name in names))
        for group, figures in shape.items()
    )
    answer: dict[str, Any] = {"data": kind, "groups": shape, "took": took}
    show(answer, Table(("GROUP", "QUESTIONS", *names), rows))
    if not session().json:
        say(f"a question took {took['p50_ms']} ms (p95 {took['p95_ms']} ms)")
