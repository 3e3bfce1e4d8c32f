"""An agent of pydantic-ai that remembers across runs: each run is a conversation of its own."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from keepsaid import Keepsaid
from keepsaid.frameworks.pydantic_ai import Memory


def answer(messages: list[ModelMessage], _info: AgentInfo) -> ModelResponse:
    """In place of a model: it knows what it is shown."""
    return ModelResponse(parts=[TextPart("Miso!" if "called Miso" in str(messages) else "I do not know.")])


async def main() -> None:
    async with Keepsaid.open(settings={"models": {"chat": "none"}}) as ks:
        agent = Agent(FunctionModel(answer), capabilities=[Memory(ks.agent("ann"))])
        await agent.run("My cat is called Miso.")
        result = await agent.run("What is my cat called?")
        print(result.output)
        assert result.output == "Miso!"
        assert "called Miso" not in str(result.all_messages())


asyncio.run(main())
