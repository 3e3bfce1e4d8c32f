"""The gate: small talk brings nothing to mind, questions bring what answers them.

On a small conversation of our own; and on LoCoMo where KEEPSAID_BENCH_DATA names a directory that has its file.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from bench.gate import Weighed, small_talk, weigh

from keepsaid.memory.gates import ENOUGH
from keepsaid_testkit.recall_data import jsonl, locomo

TALK = Path(__file__).parent / "talk.jsonl"
ASSISTANT = Path(__file__).parent / "assistant.jsonl"
WORDS = {"embedder": "none"}
DATA = os.environ.get("KEEPSAID_BENCH_DATA", "")


def test_the_small_talk_is_two_hundred_messages_in_five_languages() -> None:
    lines = (Path(__file__).parent / "phatic.txt").read_text("utf-8").splitlines()
    languages = [line for line in lines if line.startswith("#")]
    assert languages == ["# en", "# de", "# fr", "# es", "# ru"]
    said = Counter(small_talk())
    assert len(said) == 200
    assert set(said.values()) == {1}


async def test_questions_pass_and_small_talk_does_not() -> None:
    weighed = await weigh(list(jsonl(TALK)), WORDS)
    assert weighed.through(ENOUGH) == []
    assert weighed.kept(ENOUGH) == 1.0
    assert sum(len(gold) for _, gold in weighed.asked) >= 10, "what is not found cannot pass"


async def test_few_memories_and_short_questions_as_an_assistant_hears_them() -> None:
    """Thirty things told once, and a question about each: most of them share one word with what answers them."""
    weighed = await weigh(list(jsonl(ASSISTANT)), WORDS)
    assert weighed.through(ENOUGH) == []
    passed = sum(not all_.relevant(ENOUGH).isdisjoint(gold) for all_, gold in weighed.asked)
    assert passed >= 25


async def test_a_greeting_has_nothing_to_say_to_one_who_was_only_greeted() -> None:
    """However few memories there are, one that says no more than the message does not come to mind."""
    (corpus,) = jsonl(TALK)
    greeted = type(corpus)("greeted", (corpus.texts[7],), ())
    weighed = await weigh([greeted], WORDS, ["Good night, sleep well!", "good night"])
    assert weighed.through(ENOUGH) == []


@pytest.mark.skipif(not DATA, reason="KEEPSAID_BENCH_DATA names no directory with locomo/locomo10.json")
@pytest.mark.parametrize("near", [False, True])
async def test_on_long_conversations_too(*, near: bool) -> None:
    models = os.environ.get("KEEPSAID_BENCH_MODELS", "")
    if near and not models:
        pytest.skip("KEEPSAID_BENCH_MODELS names no directory of local models")
    memory = {"embedder": "minilm", "models": models} if near else WORDS
    weighed: Weighed = await weigh(list(locomo(Path(DATA) / "locomo" / "locomo10.json")), memory)
    assert len(weighed.through(ENOUGH)) <= 6
    assert weighed.kept(ENOUGH) >= 0.95
