"""An agent of LlamaIndex that remembers across sessions: a block of its memory is keepsaid."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.memory import Memory

from keepsaid import Keepsaid
from keepsaid.frameworks.llamaindex import Block


def answer(messages: list[ChatMessage], **_more: object) -> ChatMessage:
    """In place of a model: it knows what it is shown."""
    return ChatMessage(role="assistant", content="Miso!" if "called Miso" in str(messages) else "I do not know.")


async def main() -> None:
    async with Keepsaid.open(settings={"models": {"chat": "none"}}) as ks:
        agent = FunctionAgent(llm=MockFunctionCallingLLM(response_generator=answer), streaming=False)
        for session, said in (("monday", "My cat is called Miso."), ("tuesday", "What is my cat called?")):
            memory = Memory.from_defaults(session_id=session, memory_blocks=[Block(ks.agent("ann"))])
            result = await agent.run(said, memory=memory)
        print(result)
        assert str(result) == "Miso!"
        assert "called Miso" not in str(await memory.aget_all())


asyncio.run(main())
