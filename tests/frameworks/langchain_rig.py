"""An agent of LangChain with a fake chat model."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, ToolMessage, messages_to_dict
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from tests.frameworks.rigs import Ran, Way, noted

from keepsaid.frameworks.bridge import MemoryCalls
from keepsaid.frameworks.langchain import Middleware


class RefusedByModel(Exception):
    """The model of the script does not answer."""


class NotingModel(BaseChatModel):
    """Answers by the script, whole or in pieces; keeps what it was shown."""

    shown: list[list[BaseMessage]]
    calls_tool: bool = False
    fails: bool = False

    @property
    def _llm_type(self) -> str:
        return "noting"

    def bind_tools(self, tools: Sequence[Any], **_more: Any) -> Any:
        return self

    def _reply(self, messages: list[BaseMessage]) -> AIMessage:
        self.shown.append(messages)
        if self.fails:
            raise RefusedByModel
        if self.calls_tool and not isinstance(messages[-1], ToolMessage):
            return AIMessage("", tool_calls=[{"name": "clock", "args": {}, "id": "1"}])
        said = [one for one in messages if isinstance(one, HumanMessage)]
        return AIMessage(noted(str(said[-1].text)))

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_more: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self._reply(messages))])

    def _stream(self, messages: list[BaseMessage], *_rest: Any, **_more: Any) -> Iterator[ChatGenerationChunk]:
        for piece in str(self._reply(messages).text).partition(" "):
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))


class LangchainRig:
    """Runs with the messages of the runs before, as programs without a checkpointer do."""

    def __init__(self, memory: MemoryCalls, conversation: str) -> None:
        self.middleware = Middleware(memory, conversation)
        self.model = NotingModel(shown=[])
        self.agent: Any = create_agent(self.model, [clock], middleware=[self.middleware])
        self._before: list[BaseMessage] = []
        self._after: list[BaseMessage] = []

    @property
    def degraded(self) -> str:
        return self.middleware.degraded

    async def run(self, said: str, way: Way = Way.PLAIN, *, again: bool = False) -> Ran:
        if not again:
            self._before = self._after
        self.model.calls_tool, given = way is Way.TOOL, {"messages": [*self._before, HumanMessage(said)]}
        if way is Way.STREAM:
            state: dict[str, Any] = {}
            async for kind, one in self.agent.astream(given, stream_mode=["messages", "values"]):
                state = one if kind == "values" else state
        else:
            state = await self.agent.ainvoke(given)
        self._after = state["messages"]
        return Ran(str(self._after[-1].text), _json(self.model.shown[-1]), _json(self._after))

    async def fail(self, said: str) -> None:
        self.model.fails = True
        try:
            await self.agent.ainvoke({"messages": [*self._after, HumanMessage(said)]})
        except RefusedByModel:
            self.model.fails = False


def _json(messages: Sequence[BaseMessage]) -> str:
    return json.dumps(messages_to_dict(messages))


def clock() -> str:
    """The time."""
    return "noon"
