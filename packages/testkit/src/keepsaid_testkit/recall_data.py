"""Data sets that say where the answers stand: texts with ids, and questions with the ids of their evidence.

`locomo` reads the published file of LoCoMo (snap-research/locomo); `jsonl` anything else, a corpus a line:
`{"id", "docs": [{"id", "text", "speaker", "time"}], "queries": [{"id", "text", "gold": [...], "category"}]}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from keepsaid.values import frozen

_CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""The adversarial fifth is left out: its evidence names the wrong speaker."""

_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)")


@frozen
class Text:
    """One thing that was said; `at` is milliseconds UTC, 0 when it is not known."""

    id: str
    text: str
    speaker: str = ""
    at: int = 0

    @property
    def tokens(self) -> int:
        """What it costs to show: about four characters a token, with its speaker."""
        return max(1, (len(self.speaker) + 2 + len(self.text) + 3) // 4)


@frozen
class DataQuestion:
    """A question and the texts that answer it."""

    text: str
    gold: frozenset[str]
    category: str = "all"


@frozen
class Corpus:
    """Texts in the order they were said, and questions about them."""

    id: str
    texts: tuple[Text, ...]
    questions: tuple[DataQuestion, ...]


def locomo(path: Path) -> Iterator[Corpus]:
    """One corpus a conversation, one text a turn, a picture's caption behind its text.

    Evidence is repaired where that is certain ("D8:6; D9:17" is two ids, "D30:05" is D30:5); a question left
    without evidence is left out.
    """
    for sample in json.loads(path.read_text("utf-8")):
        texts = tuple(_turns(sample["conversation"]))
        known = {text.id for text in texts}
        asked = (_read_question(one, known) for one in sample["qa"] if one["category"] in _CATEGORIES)
        yield Corpus(sample["sample_id"], texts, tuple(one for one in asked if one.gold))


def _turns(conversation: Mapping[str, Any]) -> Iterator[Text]:
    found = (_SESSION.fullmatch(key) for key in conversation)
    for _, key in sorted((int(match[1]), match[0]) for match in found if match):
        when = conversation[f"{key}_date_time"].strip().upper().replace(",", "")
        at = int(datetime.strptime(when, "%I:%M %p ON %d %B %Y").replace(tzinfo=UTC).timestamp() * 1000)
        for n, turn in enumerate(conversation[key]):
            caption = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            yield Text(turn["dia_id"], turn["text"] + caption, turn["speaker"], at + n)


def _read_question(one: Mapping[str, Any], known: set[str]) -> DataQuestion:
    places = (match for raw in one.get("evidence") or [] for match in _EVIDENCE.findall(raw))
    gold = frozenset(f"D{int(session)}:{int(turn)}" for session, turn in places) & known
    return DataQuestion(one["question"], gold, _CATEGORIES[one["category"]])


class _Row(BaseModel):
    model_config = ConfigDict(strict=True)


class _Doc(_Row):
    id: str
    text: str
    speaker: str = ""
    time: str = ""


class _Query(_Row):
    text: str
    gold: list[str]
    category: str = "all"


class _Line(_Row):
    id: str
    docs: list[_Doc]
    queries: list[_Query]


def jsonl(path: Path) -> Iterator[Corpus]:
    """One corpus a line; empty lines are skipped, and a question without evidence is left out.

    Raises ValueError, which names the line and what is wrong with it.
    """
    for number, line in enumerate(path.read_text("utf-8").split("\n"), start=1):
        if not line.strip():
            continue
        try:
            corpus = _corpus(_Line.model_validate_json(line))
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, first["loc"]))
            raise ValueError(f"line {number}: {place}{': ' if place else ''}{first['msg']}") from error
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
        yield corpus


def _corpus(row: _Line) -> Corpus:
    texts = tuple(Text(one.id, one.text, one.speaker, _at(one.time) + n) for n, one in enumerate(row.docs))
    known = {text.id for text in texts}
    if len(known) < len(texts):
        raise ValueError("two docs have the same id")
    strange = sorted({gold for one in row.queries for gold in one.gold} - known)
    if strange:
        raise ValueError(f"gold names {strange[0]!r}, and no doc has that id")
    questions = tuple(DataQuestion(one.text, frozenset(one.gold), one.category) for one in row.queries if one.gold)
    return Corpus(row.id, texts, questions)


def _at(time: str) -> int:
    if not time:
        return 0
    when = datetime.fromisoformat(time)
    return int((when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp() * 1000)


LOADERS: Mapping[str, Callable[[Path], Iterator[Corpus]]] = {"locomo": locomo, "jsonl": jsonl}
