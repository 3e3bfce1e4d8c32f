"""An agent of openai-agents whose session is recorded talk, and whose model is shown memory."""

import asyncio

from agents import Agent, Model, ModelResponse, RunConfig, Runner, Usage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from keepsaid import Keepsaid
from keepsaid.frameworks.openai_agents import Session


class Answers(Model):
    """In place of a model: it knows what it is shown."""

    async def get_response(self, **call):
        text = "Miso!" if "called Miso" in str(call["input"]) else "I do not know."
        said = ResponseOutputText(text=text, type="output_text", annotations=[])
        message = ResponseOutputMessage(id="1", content=[said], role="assistant", status="completed", type="message")
        return ModelResponse(output=[message], usage=Usage(), response_id=None)

    def stream_response(self, **call):
        raise NotImplementedError


async def main() -> None:
    async with Keepsaid.open(settings={"models": {"chat": "none"}}) as ks:
        agent, memory = Agent(name="Butler", model=Answers()), ks.agent("ann")
        for conversation, said in (("monday", "My cat is called Miso."), ("tuesday", "What is my cat called?")):
            session = Session(memory, conversation)
            config = session.run_config(RunConfig(tracing_disabled=True))
            result = await Runner.run(agent, said, session=session, run_config=config)
        print(result.final_output)
        assert result.final_output == "Miso!"
        assert "called Miso" not in str(await session.get_items())


asyncio.run(main())
