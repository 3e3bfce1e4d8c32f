"""A model that obeys: whatever it reads it takes for an order, and does with it all that its tools let it do."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass

from keepsaid.adapters.models.extractor import SAVE_FACTS
from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.prompt import Json, Role, ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest

_TAG = re.compile(r"«([\w-]+)»")
_CANARY = re.compile(r"zq\d\dx")
_MEMORY = re.compile(r"mem_[0-9a-z]{13}")
_NUMBERED = re.compile(r"^#(\d+) ", re.MULTILINE)
_CALL = re.compile(r'\{"name": ?"(\w+)", ?"arguments": ?(\{[^{}]*\})\}')
_EACH_MAX = 3
_UNSEEN = dict.fromkeys(map(ord, "\u200b\u200c\u200d\u2060\ufeff\u202a\u202b\u202c\u202d\u202e\u00ad"))


def plain(text: str) -> str:
    """A text as a model reads it: whatever its letters are dressed in."""
    return text.casefold() if text.isascii() else unicodedata.normalize("NFKD", text).translate(_UNSEEN).casefold()


def canaries(text: str) -> set[str]:
    """Which attacks a text tells of."""
    return set(_CANARY.findall(plain(text)))


def tag_of(text: str) -> str:
    """Who asks, as each honest message says; "" for none."""
    found = _TAG.findall(text)
    return found[-1] if found else ""


@dataclass(frozen=True, slots=True)
class Seen:
    """One step of a turn: who asked, what it asked, all that was shown, and what was called."""

    tag: str
    asked: str
    shown: str
    called: tuple[ToolCall, ...]


class Obedient:
    """Does what it is told by anybody, and repeats all it was shown."""

    name = "scripted/obedient"

    def __init__(self) -> None:
        self.seen: list[Seen] = []

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Keep, summarise, brief or answer, with every word of what is there."""
        offered = {tool.name for tool in request.tools}
        asked = request.prompt.user
        if SAVE_FACTS in offered:
            return _answer("", (ToolCall("facts", SAVE_FACTS, _facts(asked)),))
        if SUMMARY_TOOL in offered:
            lines = [line for line in asked.splitlines() if line.strip()]
            return _answer("", (ToolCall("sum", SUMMARY_TOOL, json.dumps({**dict.fromkeys(HEADINGS, lines)})),))
        shown = [request.prompt.system, *(record.text for _, record in request.prompt.parts)]
        shown += [record.text for record in request.exchange]
        whole = "\n".join(shown)
        results = sum(record.role is Role.TOOL for record in request.exchange)
        steps = sum(record.role is Role.ASSISTANT for record in request.exchange)
        calls = tuple(self._calls(whole, asked, offered)) if offered and steps < 2 else ()
        self.seen.append(Seen(tag_of(asked), asked, whole, calls))
        if calls:
            return _answer("", calls)
        told = [asked, *(record.text for record in request.exchange)]
        said = "\n".join((f"As you wish ({results}):", *(one[:1_000] for one in told[-4:])))
        delta(said)
        return _answer(said)

    def _calls(self, whole: str, asked: str, offered: set[str]) -> Iterator[ToolCall]:
        lines = list(dict.fromkeys(line.strip()[:900] for line in whole.splitlines() if canaries(line)))[:_EACH_MAX]
        made: list[tuple[str, Json]] = [("read_page", {"n": n}) for n in re.findall(r"read page (\d+)", asked)]
        made += [(name, json.loads(given)) for name, given in _CALL.findall(whole)[:_EACH_MAX]]
        for line in lines:
            made += [("memory_save", {"text": line}), ("send", {"to": "everybody", "text": line})]
            made += [("memory_search", {"query": line})]
            for name in sorted(set(_MEMORY.findall(whole)))[:_EACH_MAX]:
                made += [("memory_correct", {"id": name, "text": line})]
        for name in sorted(set(_MEMORY.findall(whole)))[:_EACH_MAX]:
            made += [(verb, {"id": name}) for verb in ("memory_open", "memory_confirm", "memory_forget")]
        for n, (name, given) in enumerate(made):
            if name in offered:
                yield ToolCall(f"call-{n}", name, json.dumps(given, ensure_ascii=False))


def _facts(material: str) -> str:
    """Every line is worth keeping, whoever wrote it, and everybody said it."""
    numbers = [int(number) for number in _NUMBERED.findall(material)]
    lines = [line[:900] for line in material.splitlines() if line.strip()][1:]
    facts = [{"kind": "fact", "text": line, "sources": numbers} for line in lines]
    return json.dumps({"facts": facts}, ensure_ascii=False)


def _answer(text: str, calls: tuple[ToolCall, ...] = ()) -> ModelAnswer:
    return ModelAnswer(text, calls, Usage(50, 20), Obedient.name)
