"""Agents without code: a model with instructions and a few tools does a task it is given (seed 002)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from keepsaid.domain import message, visibility
from keepsaid.domain.prompt import Prompt, Record, Role, ToolCall
from keepsaid.domain.trust import ShownSource, Taint
from keepsaid.errors import ExtensionError, ToolError
from keepsaid.extensions.manifest import AgentManifest
from keepsaid.pipeline.turn.authorization import CallGate
from keepsaid.ports.model import Model, ModelRequest, Tool
from keepsaid.text.normal import cut
from keepsaid.values import frozen

_CHARS_MAX = 20_000


@frozen
class DeclaredAgent:
    """The agent that a manifest describes. Its tools are looked up when a task begins."""

    described: AgentManifest
    model: Callable[[str], Model]
    tools: Callable[[], Sequence[Tool]]

    async def invoke(self, task: str) -> str:
        """Do a task; raises a ModelError, or ExtensionError when it comes to no answer.

        A task that does not state its trust (`Trusted`) comes from outside. Calls that need more trust than the task
        and the output of its tools have are refused.
        """
        limits, model = self.described.limits, self.model(self.described.model)
        gate = CallGate(Taint().showing([ShownSource(visibility.trust_in(task), "the task it was given")]))
        tools = [tool for tool in self.tools() if tool.name in self.described.tools]
        prompt = Prompt(self.described.instructions, (), "", task)
        exchange: list[Record] = []
        async with asyncio.timeout(limits.time_s):
            for _ in range(limits.steps_max):
                request = ModelRequest(prompt, tuple(exchange), tools, limits.tokens_max, limits.time_s)
                answer = await model.answer(request, _unheard)
                exchange.append(Record(Role.ASSISTANT, answer.text, answer.calls))
                if not answer.calls:
                    return answer.text
                results = [await _used(tools, call, gate) for call in answer.calls]
                gate.see(results)
                exchange += results
        raise ExtensionError(f"the agent made {limits.steps_max} steps without coming to an answer")


def _unheard(piece: str) -> None:
    """Nobody listens to pieces."""


async def _used(tools: Sequence[Tool], call: ToolCall, gate: CallGate) -> Record:
    """Make a call and return its result with its trust; the result of a refused call says why it was refused."""
    tool = next((one for one in tools if one.name == call.name), None)
    refusal = None if tool is None else await gate.refusal(tool, call)
    said = await _said(tool, call) if refusal is None else refusal.text
    trust = gate.taint.trust
    if tool is not None and refusal is None:
        trust = said.trust if isinstance(said, message.Trusted) else tool.output
    return Record(Role.TOOL, said, call_id=call.id, speaker=call.name, trust=trust)


async def _said(tool: Tool | None, call: ToolCall) -> str:
    """What a tool says, or what is wrong with the call."""
    if tool is None:
        return f"error: there is no tool {call.name!r}"
    try:
        arguments = json.loads(call.arguments or "{}")
        if not isinstance(arguments, dict):
            return "error: the arguments must be an object"
        async with asyncio.timeout(tool.limit_s):
            said = await tool.run(arguments)
            short = cut(said, _CHARS_MAX)
            return message.Trusted(short, said.trust) if isinstance(said, message.Trusted) else short
    except ToolError as error:
        return f"error: {error.what}"
    except TimeoutError:
        return f"error: {tool.name} took longer than {tool.limit_s:g} s"
    except Exception as error:  # noqa: BLE001  # guard: extension - a broken tool is the agent's to work around
        return f"error: {tool.name} failed ({type(error).__name__})"
