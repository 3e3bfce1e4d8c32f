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
from statistics import median

from keepsaid import Episode
from keepsaid.app.instance import Instance
from keepsaid.app.opening import opened
from keepsaid.config import Config, Home, load
from keepsaid.domain.memory import Hit, Listener
from keepsaid.interfaces.sdk.memory import MemoryClient
from keepsaid.memory.gates import ENOUGH, MemoryEvidence, Relevance, select_relevant
from keepsaid_testkit.recall_data import Corpus, locomo

SMALL_TALK = Path(__file__).parent.parent / "tests" / "recall" / "phatic.txt"
LEASTS = (0.0, 8.0, 9.0, 10.0, 10.5, 11.0, 11.5, 12.0, 13.0, 15.0)
FIRST = 10
_CONSIDERED, _ALL = 20, 10_000
_ANYBODY = Listener(None, everything=True, cross=True)


@dataclass(frozen=True, slots=True)
class Candidates:
    """What recall found for a message, best first, and what speaks for each."""

    hits: Sequence[Hit]
    evidence: Sequence[MemoryEvidence]

    def relevant(self, least: float) -> frozenset[int]:
        """The places of those that come to mind."""
        return select_relevant(self.hits, self.evidence, least)

    @property
    def compares_meaning(self) -> bool:
        """Whether a cosine is known of any."""
        return any(one.nearer for one in self.evidence)


@dataclass(slots=True)
class Weighed:
    """The candidates of every question, with the places of the evidence among the first ten, and of all small talk."""

    asked: list[tuple[Candidates, list[int]]] = field(default_factory=list)
    talk: dict[str, list[Candidates]] = field(default_factory=dict)

    def kept(self, least: float) -> float:
        """The share of the evidence found that passes."""
        passed = [n in all_.relevant(least) for all_, gold in self.asked for n in gold]
        return sum(passed) / max(1, len(passed))

    def lines(self, least: float) -> float:
        """The median number of memories that a question brings to mind."""
        return median(len(all_.relevant(least)) for all_, _ in self.asked) if self.asked else 0.0

    def through(self, least: float) -> list[str]:
        """The small talk that brings something to mind, once for each conversation in which it does."""
        return [said for said, times in self.talk.items() for all_ in times if all_.relevant(least)]


def small_talk(file: Path = SMALL_TALK) -> list[str]:
    """One message a line; a line that starts with `#` names the language of those below it."""
    return [line for line in file.read_text("utf-8").splitlines() if line and not line.startswith("#")]


def measure(data: Path) -> dict[str, object]:
    """Both curves: by words alone, and with the embedder of the home, if there is one."""
    corpora = list(locomo(data))
    figures: dict[str, object] = {"by words": shape(asyncio.run(weigh(corpora, {"embedder": "none"})), ENOUGH)}
    models = str(Home.at().store(Config().memory.models))
    near = asyncio.run(weigh(corpora, {"models": models}))
    if any(all_.compares_meaning for all_, _ in near.asked):
        figures["by words and meaning"] = shape(near, ENOUGH)
    return figures


def shape(weighed: Weighed, least: float) -> dict[str, object]:
    """The curve, and where on it the gate stands."""
    curve = [
        {
            "least": one,
            "kept": round(weighed.kept(one), 3),
            "lines": weighed.lines(one),
            "small talk let through": len(weighed.through(one)),
        }
        for one in sorted({*LEASTS, least})
    ]
    held = sum(map(len, weighed.talk.values()))
    return {
        "least": least,
        "kept": round(weighed.kept(least), 3),
        "lines": weighed.lines(least),
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
        found = await _candidates(instance, question.text, _CONSIDERED)
        names = [hit.memory.new.sources[0].ref for hit in found.hits[:FIRST]]
        weighed.asked.append((found, [n for n, name in enumerate(names) if name in question.gold]))
    for said in talk:
        weighed.talk.setdefault(said, []).append(await _candidates(instance, said, _ALL))


async def _candidates(instance: Instance, said: str, limit: int) -> Candidates:
    """What is recalled for a message, best first, and what speaks for each."""
    recalled, rarity = await asyncio.gather(
        instance.search.recall(_ANYBODY, said, limit), instance.memories.read_document_frequencies(said)
    )
    relevance = Relevance(said, rarity)
    return Candidates(recalled.hits, [relevance.weigh(hit) for hit in recalled.hits])
