"""A scripted model and its tools: quick, slow, hanging, failing and malformed, by chance."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from keepsaid.adapters.models.extractor import MARK_DONE, SAVE_FACTS
from keepsaid.adapters.models.memory_calls import SUMMARY_TOOL
from keepsaid.domain.context import HEADINGS
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json, Role, ToolCall
from keepsaid.domain.turn import ModelAnswer, ToolClass, Usage
from keepsaid.errors import (
    ModelAuth,
    ModelError,
    ModelMalformed,
    ModelQuota,
    ModelRejected,
    ModelTimeout,
    ModelUnavailable,
    ModelUnreachable,
    ToolError,
)
from keepsaid.pipeline.tools.conversation import ASK_FOR
from keepsaid.pipeline.turn.worker import BRANCH_POLICY, SET_STATUS
from keepsaid.ports.model import Delta, ModelRequest, Tool
from keepsaid_testkit.simulator.ledger import ModelCall, RunRecord
from keepsaid_testkit.simulator.loop import SimulatedLife
from keepsaid_testkit.simulator.making import choose_tool_calls
from keepsaid_testkit.simulator.net import Net

_FAILURES: tuple[Callable[[], ModelError], ...] = (
    lambda: ModelUnavailable("asks for fewer requests", retry_after_s=7),
    lambda: ModelUnavailable("has an outage"),
    lambda: ModelUnreachable("no connection"),
    lambda: ModelMalformed("cannot be read"),
    lambda: ModelTimeout("did not answer"),
    lambda: ModelAuth("refused the key"),
    lambda: ModelQuota("no credit left"),
    lambda: ModelRejected("will not take it"),
)
_LASTING = 5
"""Of the failures, from this one on trying again does not help; they are rare."""

_FOREVER_S = 1e6
_DEPTH_MAX = 3
_ASKS = 0.6


def words_of(text: str) -> list[str]:
    """The words that name messages in a text, in order."""
    return [word for word in text.replace(":", " ").split() if word.startswith("w-")]


def side_caller_of(request: ModelRequest) -> str:
    """The caller of a model call outside turns, `branch` or `worker`; "" for a call of a turn."""
    if request.prompt.system == BRANCH_POLICY:
        return "branch"
    return "worker" if any(tool.name == SET_STATUS for tool in request.tools) else ""


def turn_of(request: ModelRequest) -> str:
    """What a turn is known by: the words it began with, and whether it runs beside others."""
    return " ".join((*words_of(request.prompt.user), *filter(None, (side_caller_of(request),))))


def word_of(message: StoredMessage) -> str:
    """The word that names a message; its text may be a command, without it."""
    return message.inbound.marks.provider_id or ""


class SimModel:
    """The model, as one process reaches it."""

    name = "sim/model"

    def __init__(self, net: Net, seen: RunRecord, life: SimulatedLife) -> None:
        self._net = net
        self._seen = seen
        self._life = life

    async def answer(self, request: ModelRequest, delta: Delta) -> ModelAnswer:
        """Make one call; raises any ModelError."""
        await request.begun()
        if any(tool.name == SUMMARY_TOOL for tool in request.tools):
            return await self._summarise(request)
        if any(tool.name == SAVE_FACTS for tool in request.tools):
            return await self._extract(request)
        words, depth = words_of(request.prompt.user), len(request.exchange)
        asked = ModelCall(
            self._life.name, words[0], depth, self._net.wall.passed_ms(), worker=bool(side_caller_of(request))
        )
        self._note(asked, turn_of(request))
        words += [word for one in request.exchange if one.role is Role.USER for word in words_of(one.text)]
        try:
            async with asyncio.timeout(request.limit_s):
                answer = await self._net.remote(self._react(request, words))
        except TimeoutError:
            raise ModelTimeout(f"no answer in {request.limit_s:g} s") from None
        finally:
            asked.ended = self._net.wall.passed_ms()
        delta(answer.text)
        return answer

    async def _awaited(
        self, request: ModelRequest, nothing: Sequence[str], *, hangs: float = 0.0
    ) -> ModelAnswer | None:
        """Wait a while; then None where all is well, or an answer that says nothing. It may raise, and hang."""
        net, chance = self._net, self._net.chance
        try:
            async with asyncio.timeout(request.limit_s):
                await net.remote(net.pause(0.01, chance.choice((0.2, 1.0, 8.0))))
                if not net.happens(net.weather.model):
                    return None
                if hangs and chance.random() < hangs:
                    await asyncio.sleep(_FOREVER_S)
                if chance.random() < 0.5:
                    failure = _FAILURES[chance.randrange(_LASTING)]
                    raise failure()
                return ModelAnswer(chance.choice(nothing), (), Usage(5, 0), self.name)
        except TimeoutError:
            raise ModelTimeout(f"no answer in {request.limit_s:g} s") from None

    async def _extract(self, request: ModelRequest) -> ModelAnswer:
        """A fact for each message it is shown, after a while; or a failure, or something that is none."""
        self._net.trace.add(f"{self._life.name} asks for facts")
        if (failed := await self._awaited(request, ("", "Nothing.", "{oops"))) is not None:
            return failed
        lines = [line.split() for line in request.prompt.user.splitlines() if line.startswith("#")]
        facts = [{"kind": "fact", "text": f"fact {one[0]} {one[-1]}", "sources": [int(one[0][1:])]} for one in lines]
        name, told = (SAVE_FACTS, {"facts": facts}) if facts else (MARK_DONE, {})
        return ModelAnswer("", (ToolCall("facts", name, json.dumps(told)),), Usage(9, 9), self.name)

    async def _summarise(self, request: ModelRequest) -> ModelAnswer:
        """A summary of what it is shown, after a while; or a failure, or something that is none."""
        self._net.trace.add(f"{self._life.name} asks for a summary")
        if (failed := await self._awaited(request, ("", "No summary.", "{oops"), hangs=0.2)) is not None:
            return failed
        words = sorted(set(words_of(request.prompt.user)))
        told = {name: [f"{name} of {' '.join(words)[:200]}"] for name in HEADINGS}
        return ModelAnswer("", (ToolCall("summary", SUMMARY_TOOL, json.dumps(told)),), Usage(9, 9), self.name)

    def _note(self, asked: ModelCall, turn: str) -> None:
        """A turn is known by the words it began with: one that restarts with more is another."""
        self._seen.asked.append(asked)
        self._net.trace.add(f"{asked.life} asks the model about {asked.word} at {asked.depth}")
        if self._seen.used.get((turn, asked.depth), 0):
            self._seen.resampled.append(asked.word)

    async def _react(self, request: ModelRequest, words: list[str]) -> ModelAnswer:
        net, chance = self._net, self._net.chance
        await net.pause(0.01, chance.choice((0.2, 1.0, 8.0)))
        if net.happens(self._net.weather.model):
            kind = chance.randrange(10)
            if kind == 0:
                await asyncio.sleep(_FOREVER_S)
            if kind == 1:
                return ModelAnswer("", (), Usage(5, 0), self.name)
            if kind == 2:
                return ModelAnswer(
                    "", (ToolCall("c", chance.choice(("look", "none")), "{oops"),), Usage(5, 5), self.name
                )
            last = len(_FAILURES) if chance.random() < 0.1 else _LASTING
            failure = _FAILURES[chance.randrange(last)]
            raise failure()
        calls = () if len(request.exchange) >= _DEPTH_MAX else self._calls(request, words[0])
        calls += choose_tool_calls(net, request, words[0]) if len(request.exchange) < _DEPTH_MAX else ()
        if not calls and not request.exchange and net.weather.commands and chance.random() < _ASKS:
            calls = (self._question(),)
        if calls:
            return ModelAnswer("let me see", calls, Usage(10, 5), self.name)
        return ModelAnswer(f"re: {' '.join(words)} #{chance.randrange(10_000)}", (), Usage(10, 5), self.name)

    def _question(self) -> ToolCall:
        """Ask for something that what people say here answers, or does not."""
        chance = self._net.chance
        told: dict[str, Json] = {"question": "which?", "type": chance.choice(("text", "text", "number", "selection"))}
        told["options"] = ["hello there", "the lantern"]
        return ToolCall(f"call-{chance.randrange(1_000_000)}", ASK_FOR, json.dumps(told))

    def _calls(self, request: ModelRequest, word: str) -> tuple[ToolCall, ...]:
        chance, depth = self._net.chance, len(request.exchange)
        if chance.random() < 0.6:
            return ()
        paid = any(call.name == "pay" for record in request.exchange for call in record.calls)
        known = ("look", "set", "pay", "memory_search")
        names = [name for name in chance.sample(known, 2) if name != "pay" or not paid]
        if side_caller_of(request) == "branch":
            names = [name for name in names if name == "memory_search"]
        if side_caller_of(request) and word.count("-") > 1:
            word += "+"  # what the model had made; the turn that receives it has the same word
        told = json.dumps({"word": word, "depth": depth, "query": word, "turn": turn_of(request)})
        asked = {"memory_search": json.dumps({"query": word})}
        return tuple(ToolCall(f"call-{chance.randrange(1_000_000)}", name, asked.get(name, told)) for name in names)


def tools(net: Net, seen: RunRecord) -> tuple[Tool, ...]:
    """A pure, an idempotent and an unsafe tool whose effects are counted where they happen."""

    def tool(name: str, kind: ToolClass) -> Tool:
        async def effect(word: str, depth: int, turn: str) -> str:
            await net.pause(0.0, 0.3)
            if net.happens(net.weather.calls):
                raise ToolError("not now")
            seen.effects[name, word] += 1
            seen.used[turn, depth] = 1
            net.trace.add(f"{name} happens for {word}")
            await net.pause(0.0, 0.3)
            if net.happens(net.weather.calls):
                if net.chance.random() < 0.3:
                    await asyncio.sleep(_FOREVER_S)
                raise ConnectionResetError("cut off")
            return f"{name} done"

        async def run(arguments: dict[str, Json]) -> str:
            return await net.remote(
                effect(str(arguments["word"]), int(str(arguments["depth"])), str(arguments["turn"]))
            )

        schema: dict[str, Json] = {"type": "object", "properties": {"word": {"type": "string"}}}
        return Tool(name, f"{name} something", schema, run, kind, limit_s=10.0, serves=Trust.EXTERNAL)

    return tool("look", ToolClass.PURE), tool("set", ToolClass.IDEMPOTENT), tool("pay", ToolClass.UNSAFE)
