"""Recall by words in each language: the fact is as often among the first five results as in English."""

from __future__ import annotations

from pathlib import Path

from tests.recall.test_everyday import ASKED_IN, WORDS, asking

from keepsaid import Episode, Keepsaid

SHARE_OF_ENGLISH, ENGLISH = 0.9, 0.85
FIRST, MENTIONS = 5, 10


async def recalled_first(folder: Path, language: str) -> float:
    """The share of short questions whose fact is among the first five, beside ten other mentions of its subject."""
    corpus = asking(language, MENTIONS)
    found = 0
    async with Keepsaid.open(folder / language, settings={"memory": WORDS}) as ks:
        await ks.memory.record(
            [Episode(one.text, one.speaker, "c", one.at, external_id=one.id) for one in corpus.texts]
        )
        for question in corpus.questions:
            recalled = await ks.memory.recall(question.text, FIRST, "c")
            found += not question.gold.isdisjoint(one.external_id for one in recalled)
    return found / len(corpus.questions)


async def test_each_language_is_recalled_as_well_as_english(tmp_path: Path) -> None:
    shares = {language: await recalled_first(tmp_path, language) for language in ASKED_IN}
    assert min(shares.values()) >= SHARE_OF_ENGLISH * shares["en"], shares
    assert shares["en"] >= ENGLISH
