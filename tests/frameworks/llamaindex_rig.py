"""An agent of LlamaIndex with its mock of a model that calls functions."""

from __future__ import annotations

import json
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from typing import Any

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool
from tests.frameworks.rigs import Ran, Way, noted

from keepsaid.frameworks.bridge import MemoryCalls
from keepsaid.frameworks.llamaindex import Block


class RefusedByLlm(Exception):
    """The model of the script does not answer."""


class LlamaindexRig:
    """Runs with a chat memory of the framework, which keeps its messages in a database of its own."""

    def __init__(self, memory: MemoryCalls, conversation: str) -> None:
        self.block = Block(memory)
        folder = tempfile.mkdtemp()
        weakref.finalize(self, shutil.rmtree, folder)
        # the framework's own engine leaves its connections open
        engine = create_async_engine(f"sqlite+aiosqlite:///{folder}/chat.db", poolclass=NullPool)
        self.memory = Memory.from_defaults(session_id=conversation, memory_blocks=[self.block], async_engine=engine)
        self._shown: list[Sequence[ChatMessage]] = []
        self._way, self._fails = Way.PLAIN, False
        self._before: list[ChatMessage] = []

    @property
    def degraded(self) -> str:
        return self.block.degraded

    async def run(self, said: str, way: Way = Way.PLAIN, *, again: bool = False) -> Ran:
        if again:
            await self.memory.aset(self._before)
        self._before = list(await self.memory.aget_all())
        self._way = way
        running = self._agent(streaming=way is Way.STREAM).run(said, memory=self.memory)
        if way is Way.STREAM:
            async for _ in running.stream_events():
                pass
        result: Any = await running
        after = await self.memory.aget_all()
        return Ran(str(result), _json(self._shown[-1]), _json([*after, result.response]))

    async def fail(self, said: str) -> None:
        self._before = list(await self.memory.aget_all())
        self._fails = True
        try:
            await self._agent(streaming=False).run(said, memory=self.memory)
        except RefusedByLlm:
            self._fails = False
        await self.memory.aset(self._before)

    def _agent(self, *, streaming: bool) -> FunctionAgent:
        model = MockFunctionCallingLLM(response_generator=self._answer)
        return FunctionAgent(llm=model, tools=[clock], streaming=streaming)

    def _answer(self, messages: Sequence[ChatMessage], **_more: Any) -> ChatMessage:
        self._shown.append(messages)
        if self._fails:
            raise RefusedByLlm
        if self._way is Way.TOOL and messages[-1].role != "tool":
            return ChatMessage(role="assistant", blocks=[ToolCallBlock(tool_name="clock", tool_kwargs={})])
        said = [one.content for one in messages if one.role == "user"]
        return ChatMessage(role="assistant", content=noted(str(said[-1])))


def _json(messages: Sequence[ChatMessage]) -> str:
    return json.dumps([one.model_dump(mode="json") for one in messages])


def clock() -> str:
    """The time."""
    return "noon"
