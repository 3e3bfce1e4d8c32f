"""Everyday talk in twelve languages: a short question is answered however often its subject is mentioned besides.

And small talk brings nothing to mind of a chat in its own language.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
from bench.gate import Weighed, weigh

from keepsaid.memory.gates import ENOUGH
from keepsaid_testkit.recall_data import Corpus, DataQuestion, Text

EVERYDAY = Path(__file__).parent / "everyday"
WORDS = {"embedder": "none"}
ASKED_IN = ("en", "de", "es", "pt", "fr", "it", "ru", "zh")
_HOUR_MS, _FROM_MS = 3_600_000, 1_750_000_000_000


def lines(name: str) -> list[dict[str, Any]]:
    """The objects of a file of the set."""
    return [json.loads(line) for line in (EVERYDAY / name).read_text("utf-8").splitlines()]


def chat(language: str) -> list[str]:
    """What somebody wrote in a year, in one language."""
    return next(list(map(str, one["messages"])) for one in lines("chats.jsonl") if one["lang"] == language)


def small_talk(name: str) -> dict[str, list[str]]:
    """Small talk and commands by language."""
    found: dict[str, list[str]] = {}
    for line in filter(None, (EVERYDAY / name).read_text("utf-8").splitlines()):
        if line.startswith("# "):
            said = found[line.removeprefix("# ")] = []
        else:
            said.append(line)
    return found


def corpus(language: str, texts: list[tuple[str, str]], questions: tuple[DataQuestion, ...] = ()) -> Corpus:
    """A chat in which these were said too, at any time."""
    said = [*texts, *((f"chat:{n}", text) for n, text in enumerate(chat(language)))]
    Random(2).shuffle(said)
    made = (Text(id_, text, "ann", _FROM_MS + n * _HOUR_MS) for n, (id_, text) in enumerate(said))
    return Corpus(f"everyday-{language}", tuple(made), questions)


def asking(language: str, mentions: int) -> Corpus:
    """The facts of a language, each with a number of other messages about its subject, and the questions for them."""
    facts = [one for one in lines("short_questions.jsonl") if one["lang"] == language]
    texts = [(one["id"], one["fact"]) for one in facts]
    texts += [(f"{one['id']}:{n}", text) for one in facts for n, text in enumerate(one["mentions"][:mentions])]
    return corpus(language, texts, tuple(DataQuestion(one["question"], frozenset({one["id"]})) for one in facts))


def corpora(mentions: int) -> Iterator[Corpus]:
    return (asking(language, mentions) for language in ASKED_IN)


@pytest.mark.parametrize("mentions", [0, 10])
async def test_a_short_question_is_answered_however_often_its_subject_is_mentioned(mentions: int) -> None:
    weighed: Weighed = await weigh(corpora(mentions), WORDS, [])
    assert len(weighed.asked) == 200
    answered = sum(not all_.relevant(ENOUGH).isdisjoint(gold) for all_, gold in weighed.asked)
    assert answered >= 190
    assert weighed.lines(ENOUGH) <= (10 if mentions else 3)


@pytest.mark.parametrize(("name", "most"), [("small_talk.txt", 5), ("small_talk_unseen.txt", 3)])
async def test_small_talk_brings_nothing_to_mind_of_a_chat_in_its_language(name: str, most: int) -> None:
    through = []
    for language, said in small_talk(name).items():
        through += (await weigh([corpus(language, [])], WORDS, said)).through(ENOUGH)
    assert len(through) <= most, through
