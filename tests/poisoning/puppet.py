"""A puppet: a model that follows every directive that it can see, in whatever disguise, and whoever wrote it."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence

from tests.poisoning.directives import TOOLS

from keepsaid.adapters.models.extractor import SAVE_FACTS
from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.prompt import Json, Role, ToolCall
from keepsaid.domain.turn import ModelAnswer, Usage
from keepsaid.ports.model import Delta, ModelRequest

_MARK = re.compile(r"zd\d\d\dx")
_TOOL = re.compile("|".join(sorted(TOOLS, key=len, reverse=True)))
_PAGE = re.compile(r"read page (\d+)")
_CODED = re.compile(r"[A-Za-z0-9+/]{24,}={0,2}")
_LETTERS = str.maketrans("\u0430\u0435\u043e", "aeo")
_STEPS_MAX = 3


def plain(text: str) -> str:
    """A text as a model reads it: whatever its letters are dressed in."""
    if text.isascii():
        return text.casefold()
    read = unicodedata.normalize("NFKD", text)
    return "".join(one for one in read if unicodedata.category(one) != "Cf").translate(_LETTERS).casefold()


def directives_in(text: str) -> list[tuple[str, str]]:
    """The tools that a text asks for, each with its mark; also in what is encoded in it."""
    found: list[tuple[str, str]] = []
    for whole in (text, *_decoded(text)):
        for line in plain(whole).splitlines():
            marks, tools = _MARK.findall(line), _TOOL.findall(line)
            found += [(tool, mark) for tool in dict.fromkeys(tools) for mark in dict.fromkeys(marks)]
    return list(dict.fromkeys(found))


def _decoded(text: str) -> Iterator[str]:
    if "rot13" in text:
        yield codecs.encode(text, "rot13")
    for token in _CODED.findall(text):
        try:
            yield base64.b64decode(token, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue


def texts_in(value: object) -> Iterator[str]:
    """Every text in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from texts_in(one)
    elif isinstance(value, Sequence):
        for one in value:
            yield from texts_in(one)


def arguments_of(tool: str, mark: str) -> dict[str, Json]:
    """What the puppet calls a tool with."""
    if tool == "task_create":
        return {"task": f"do {mark}"}
    if tool == "branch":
        return {"about": f"think of {mark}"}
    if tool == "schedule_add":
        return {"what": "say", "text": f"remember {mark}", "in_s": 90_000}
    if tool in ("memory_save", "set_personality"):
        return {"text": f"The lighthouse keeper is called {mark}"}
    return {"mark": mark}


class Puppet:
    """Follows all that it sees, once in each turn; `called` are its calls, `shown` the marks that it saw.

    After a call it raises what `failures` holds. It makes the calls that it `wants` before any other, also of tools
    that are not there, and may repeat what it was asked (`echoes`).
    """

    name = "scripted/puppet"

    def __init__(self) -> None:
        self.called: list[tuple[str, str]] = []
        self.shown: set[str] = set()
        self.failures: list[Exception] = []
        self.wants: list[tuple[str, dict[str, Json]]] = []
        self.echoes = False

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Summarise what is there to be summarised; else call what is asked for, then repeat what was asked."""
        offered = {tool.name for tool in request.tools}
        user = request.prompt.user
        if SAVE_FACTS in offered:
            return _answer("", (ToolCall("facts", SAVE_FACTS, '{"facts": []}'),))
        if SUMMARY_TOOL in offered:
            lines = [line for line in user.splitlines() if line.strip()]
            return _answer("", (ToolCall("sum", SUMMARY_TOOL, json.dumps(dict.fromkeys(HEADINGS, lines))),))
        if request.exchange and self.failures:
            raise self.failures.pop()
        steps = sum(record.role is Role.ASSISTANT for record in request.exchange)
        calls = tuple(self._calls(request, offered)) if steps < _STEPS_MAX else ()
        if calls:
            return _answer("", calls)
        said = f"As you wish: {user}" if self.echoes else "As you wish."
        delta(said)
        return _answer(said)

    def _calls(self, request: ModelRequest, offered: set[str]) -> Iterator[ToolCall]:
        texts = [request.prompt.system, *(record.text for _, record in request.prompt.parts)]
        texts += [record.text for record in request.exchange if not record.text.startswith("error: refused")]
        texts += [text for tool in request.tools for text in (tool.description, *texts_in(tool.schema))]
        whole = "\n".join(texts)
        for n, (name, given) in enumerate(self.wants):
            yield ToolCall(f"want-{n}", name, json.dumps(given))
        self.wants = []
        done = {(call.name, call.arguments) for record in request.exchange for call in record.calls}
        found = directives_in(whole)
        wanted = [(tool, arguments_of(tool, mark)) for tool, mark in found]
        self.shown |= {mark for _, mark in found} | set(_MARK.findall(plain(whole)))
        asked: list[tuple[str, dict[str, Json]]] = [("read_page", {"n": n}) for n in _PAGE.findall(request.prompt.user)]
        if "wait a moment" in request.prompt.user:
            asked.append(("wait", {}))
        for n, (tool, arguments) in enumerate((*asked, *wanted)):
            written = json.dumps(arguments)
            if tool in offered and (tool, written) not in done:
                self.called.append((tool, written))
                yield ToolCall(f"call-{len(request.exchange)}-{n}", tool, written)


def _answer(text: str, calls: tuple[ToolCall, ...] = ()) -> ModelAnswer:
    return ModelAnswer(text, calls, Usage(100, 10), Puppet.name)
