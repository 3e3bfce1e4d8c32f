"""An agent of pydantic-ai with its FunctionModel."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

from pydantic_ai import Agent
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCalls, FunctionModel
from tests.frameworks.rigs import Ran, Way, noted

from keepsaid.frameworks.bridge import MemoryCalls
from keepsaid.frameworks.pydantic_ai import Memory


class PydanticAiRig:
    """Runs with the history of the runs before, as programs do."""

    def __init__(self, memory: MemoryCalls, conversation: str) -> None:
        self._memory = Memory(memory, conversation)
        self._shown: list[Sequence[ModelMessage]] = []
        model = FunctionModel(self._answer, stream_function=self._stream)
        self._agent = Agent(model, capabilities=[self._memory])
        self._agent.tool_plain(clock)
        self._before: list[ModelMessage] = []
        self._after: list[ModelMessage] = []
        self._calls_tool = False
        self._fails = False

    @property
    def degraded(self) -> str:
        return self._memory.degraded

    async def run(self, said: str, way: Way = Way.PLAIN, *, again: bool = False) -> Ran:
        if not again:
            self._before = self._after
        self._calls_tool = way is Way.TOOL
        if way is Way.STREAM:
            async with self._agent.run_stream(said, message_history=self._before) as streamed:
                answer = await streamed.get_output()
                self._after = streamed.all_messages()
        else:
            result = await self._agent.run(said, message_history=self._before)
            answer, self._after = result.output, result.all_messages()
        return Ran(answer, _json(self._shown[-1]), _json(self._after))

    async def fail(self, said: str) -> None:
        self._fails = True
        with contextlib.suppress(ModelHTTPError):
            await self._agent.run(said, message_history=self._after)
        self._fails = False

    def _answer(self, messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
        if self._fails:
            raise ModelHTTPError(400, "scripted")
        self._shown.append(messages)
        if self._calls_tool and not _has_time(messages):
            return ModelResponse(parts=[ToolCallPart("clock", {})])
        return ModelResponse(parts=[TextPart(noted(_last_said(messages)))])

    async def _stream(self, messages: list[ModelMessage], _info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
        self._shown.append(messages)
        for piece in noted(_last_said(messages)).partition(" "):
            yield piece


def clock() -> str:
    return "noon"


def _json(messages: Sequence[ModelMessage]) -> str:
    return ModelMessagesTypeAdapter.dump_json(list(messages)).decode()


def _has_time(messages: Sequence[ModelMessage]) -> bool:
    last = messages[-1]
    return isinstance(last, ModelRequest) and any(isinstance(part, ToolReturnPart) for part in last.parts)


def _last_said(messages: Sequence[ModelMessage]) -> str:
    prompts = [part for one in messages for part in one.parts if isinstance(part, UserPromptPart)]
    return str(prompts[-1].content)
