"""The gate: small talk brings nothing to mind, and a question still brings to mind what answers it.

Small talk is the 200 messages of `tests/recall/phatic.txt`, in five languages, each held against every memory of each
conversation. Questions are those of the data set, by default LoCoMo's file (snap-research/locomo, CC BY-NC 4.0): of the
evidence among the first ten that recall finds, how much does the gate let pass? Meaning is compared where the home has
the local embedder (`keepsaid models pull`).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from keepsaid import Episode
from keepsaid.app.instance import Instance, opened
from keepsaid.config import Config, Home, load
from keepsaid.domain.memory import Listener
from keepsaid.interfaces.sdk.memory import MemoryClient
from keepsaid.memory.gates import ENOUGH, ENOUGH_NEAR, MemoryEvidence, Relevance, enough
from keepsaid_testkit.recall_data import Corpus, locomo

SMALL_TALK = Path(__file__).parent.parent / "tests" / "recall" / "phatic.txt"
LEASTS = (0.0, 6.0, 8.0, 10.0, 12.0, 13.5, 14.5, 15.5, 17.0, 19.0, 21.0, 24.0)
FIRST = 10
_CONSIDERED, _ALL = 20, 10_000
_ANYBODY = Listener(None, everything=True, cross=True)


@dataclass(slots=True)
class Weighed:
    """What spoke for the candidates of every question, with the evidence among the first ten, and of all small talk."""

    asked: list[tuple[list[MemoryEvidence], list[MemoryEvidence]]] = field(default_factory=list)
    talk: dict[str, list[list[MemoryEvidence]]] = field(default_factory=dict)

    def kept(self, least: float) -> float:
        """The share of the evidence found that passes."""
        passed = [one.news and one.total >= enough(all_, least) for all_, gold in self.asked for one in gold]
        return sum(passed) / max(1, len(passed))

    def through(self, least: float) -> list[str]:
        """The small talk that brings something to mind, once for each conversation in which it does."""
        return [
            said
            for said, times in self.talk.items()
            for all_ in times
            if any(one.news and one.total >= enough(all_, least) for one in all_)
        ]


def small_talk(file: Path = SMALL_TALK) -> list[str]:
    """One message a line; a line that starts with `#` names the language of those below it."""
    return [line for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def measure(data: Path) -> dict[str, object]:
    """Both curves: by words alone, and with the embedder of the home, if there is one."""
    corpora = list(locomo(data))
    figures: dict[str, object] = {"by words": shape(asyncio.run(weigh(corpora, {"embedder": "none"})), ENOUGH)}
    models = str(Home.at().store(Config().memory.models))
    near = asyncio.run(weigh(corpora, {"models": models}))
    if any(one.nearer for all_, _ in near.asked for one in all_):
        figures["by words and meaning"] = shape(near, ENOUGH_NEAR)
    return figures


def shape(weighed: Weighed, least: float) -> dict[str, object]:
    """The curve, and where on it the gate stands."""
    curve = [
        {"least": one, "kept": round(weighed.kept(one), 3), "small talk let through": len(weighed.through(one))}
        for one in sorted({*LEASTS, least})
    ]
    held = sum(map(len, weighed.talk.values()))
    return {
        "least": least,
        "kept": round(weighed.kept(least), 3),
        "through": weighed.through(least),
        "held": held,
        "curve": curve,
    }


async def weigh(corpora: Iterable[Corpus], memory: Mapping[str, str], talk: Sequence[str] | None = None) -> Weighed:
    """Every question and all small talk, against each corpus in a home of its own."""
    weighed, talk = Weighed(), small_talk() if talk is None else talk
    for corpus in corpora:
        with tempfile.TemporaryDirectory(prefix="keepsaid-gate-") as folder:
            async with _remembered(corpus, Path(folder), memory) as instance:
                await _weigh(corpus, instance, talk, weighed)
    return weighed


@asynccontextmanager
async def _remembered(corpus: Corpus, folder: Path, memory: Mapping[str, str]) -> AsyncIterator[Instance]:
    """A home that remembers a corpus, as the library records it."""
    home = Home.at(folder)
    async with opened(home, load(home.config_file, {"memory": dict(memory)})[0]) as instance:
        book = MemoryClient(instance)
        await book.record(
            [Episode(text.text, text.speaker, corpus.id, text.at, external_id=text.id) for text in corpus.texts]
        )
        await book.embed()
        yield instance


async def _weigh(corpus: Corpus, instance: Instance, talk: Sequence[str], weighed: Weighed) -> None:
    for question in corpus.questions:
        ids, evidence = await _evidence(instance, question.text, _CONSIDERED)
        gold = [one for id_, one in zip(ids[:FIRST], evidence, strict=False) if id_ in question.gold]
        weighed.asked.append((evidence, gold))
    for said in talk:
        weighed.talk.setdefault(said, []).append((await _evidence(instance, said, _ALL))[1])


async def _evidence(instance: Instance, said: str, limit: int) -> tuple[list[str], list[MemoryEvidence]]:
    """What is recalled for a message, best first, by the names the data set gave it; and what speaks for each."""
    recalled, rarity = await asyncio.gather(
        instance.search.recall(_ANYBODY, said, limit), instance.memories.read_document_frequencies(said)
    )
    relevance = Relevance(said, rarity)
    return [hit.memory.new.sources[0].ref for hit in recalled.hits], [relevance.weigh(hit) for hit in recalled.hits]
