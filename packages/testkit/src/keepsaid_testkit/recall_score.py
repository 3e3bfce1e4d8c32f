"""Does recall find the evidence: measured without a model, through the product's own record and recall."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from keepsaid_testkit.recall_data import Corpus, DataQuestion, Text

DEPTH = 200
"""The requested results: enough that the token limit cuts the list, not this number."""

AT = (5, 10, 20)
TOKENS = (500, 1_000, 2_000)

Search = Callable[[str, int], Awaitable[Sequence[str]]]
"""A question and how many are wanted, to the ids of texts, best first."""


@dataclass(slots=True)
class Means:
    """Figures summed up by group; `shape` gives their means."""

    sums: dict[str, dict[str, float]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(float)))
    counts: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    times: list[float] = field(default_factory=list)

    def add(self, groups: Iterable[str], figures: Mapping[str, float]) -> None:
        """Count the figures of one question."""
        for group in groups:
            self.counts[group] += 1
            for name, value in figures.items():
                self.sums[group][name] += value

    def shape(self) -> dict[str, dict[str, float]]:
        """The means of each group, in the order the groups came."""
        return {
            group: {"questions": count, **{name: round(sums / count, 4) for name, sums in self.sums[group].items()}}
            for group, count in self.counts.items()
        }


async def measure(corpus: Corpus, groups: Sequence[str], search: Search, means: Means) -> None:
    """Ask every question of a corpus; each is counted once in the groups, and in that of its category."""
    texts = {text.id: text for text in corpus.texts}
    for question in corpus.questions:
        began = time.perf_counter()
        ranked = await search(question.text, DEPTH)
        means.times.append(time.perf_counter() - began)
        means.add(dict.fromkeys([*groups, question.category]), figures(question, ranked, texts))


def figures(question: DataQuestion, ranked: Sequence[str], texts: Mapping[str, Text]) -> dict[str, float]:
    """The share of the evidence among the first k, and among the best that fit n tokens; 1 / rank of the first."""
    once = list(dict.fromkeys(ranked))
    gold = question.gold
    found = {f"R@{k}": len(gold.intersection(once[:k])) / len(gold) for k in AT}
    for budget in TOKENS:
        found[f"R in {budget} tokens"] = len(gold.intersection(_fitting(once, budget, texts))) / len(gold)
    found["MRR"] = next((1 / place for place, one in enumerate(once, start=1) if one in gold), 0.0)
    return found


def _fitting(ranked: Sequence[str], budget: int, texts: Mapping[str, Text]) -> list[str]:
    spent = 0
    for place, one in enumerate(ranked):
        spent += texts[one].tokens
        if spent > budget:
            return list(ranked[:place])
    return list(ranked)
