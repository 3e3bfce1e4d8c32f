"""`keepsaid bench`: how well and how fast memory recalls, on data sets that say where the answers stand."""

from __future__ import annotations

import asyncio
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keepsaid.errors import InputError
from keepsaid.interfaces.cli.bench_latency import latency
from keepsaid.interfaces.cli.output import Table, show
from keepsaid.interfaces.cli.progress import Tell, progress
from keepsaid.interfaces.cli.session import say, session

if TYPE_CHECKING:
    from keepsaid.testing.recall_data import Corpus
    from keepsaid.testing.recall_score import Means

app = typer.Typer(help="Measure memory.", rich_markup_mode=None)
_HALF = 5
"""Corpora after the fifth are counted apart, so that luck with a few of them shows."""


@app.callback()
def bench() -> None:
    """Measure memory."""


@app.command("recall")
def recall(
    data: Annotated[
        str, typer.Option(metavar="KIND=FILE", help="locomo=FILE or jsonl=FILE: texts, and questions with evidence.")
    ],
    limit: Annotated[int, typer.Option(min=0, help="Only so many corpora from the start; 0 takes all.")] = 0,
    words: Annotated[bool, typer.Option("--words", help="By words alone, without the embedder of your home.")] = False,
) -> None:
    """Does recall find the evidence? Texts are recorded, questions recalled, ungated; no model answers.

    Each corpus gets a home of its own in a temporary directory; yours is not touched. R@10 is the share of the
    evidence among the first 10, R in 1000 tokens that among the best that fit so many; corpora 1-5 and the others also
    stand apart.
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
    from keepsaid.testing.recall_data import LOADERS  # noqa: PLC0415

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
    from keepsaid.testing.recall_score import Means  # noqa: PLC0415

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
    from keepsaid.testing.recall_score import measure  # noqa: PLC0415

    said = [Episode(text.text, text.speaker, corpus.id, text.at, external_id=text.id) for text in corpus.texts]
    async with Keepsaid.open(home[0], settings={"memory": dict(home[1])}) as keepsaid:
        await keepsaid.memory.recording(said)
        await keepsaid.memory.indexing()

        async def search(question: str, limit: int) -> list[str]:
            return [one.external_id for one in await keepsaid.memory.recall.recollection(question, limit, corpus.id)]

        await measure(corpus, groups, search, means)


def _show(kind: str, means: Means) -> None:
    from keepsaid.testing.recall_score import AT, TOKENS  # noqa: PLC0415

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
