"""An agent of openai-agents with a model over HTTP, which a script answers."""

from __future__ import annotations

import contextlib
import json

from agents import Agent, OpenAIChatCompletionsModel, RunConfig, Runner, function_tool
from openai import AsyncOpenAI, OpenAIError
from tests.frameworks.rigs import Ran, Way, noted

from keepsaid.frameworks.bridge import MemoryCalls
from keepsaid.frameworks.openai_agents import Session
from keepsaid.testing.model_script import Call, ChatRequest, Reaction, Refuse, Say
from keepsaid.testing.model_server import ModelServer


class OpenAiAgentsRig:
    """The session has the history."""

    def __init__(self, memory: MemoryCalls, conversation: str) -> None:
        self.session = Session(memory, conversation)

    @property
    def degraded(self) -> str:
        return self.session.degraded

    async def run(self, said: str, way: Way = Way.PLAIN, *, again: bool = False) -> Ran:
        assert not again, "the state is in the session"

        def react(request: ChatRequest) -> Reaction:
            if way is Way.TOOL and not request.last("tool"):
                return Call("clock")
            return Say(noted(request.last("user")))

        async with ModelServer(react) as server, AsyncOpenAI(base_url=server.url, api_key="none") as client:
            agent = Agent(name="rig", model=OpenAIChatCompletionsModel("m", client), tools=[function_tool(clock)])
            config = self.session.run_config(RunConfig(tracing_disabled=True))
            if way is Way.STREAM:
                result = Runner.run_streamed(agent, said, session=self.session, run_config=config)
                async for _ in result.stream_events():
                    pass
                answer, items = result.final_output, result.to_input_list()
            else:
                done = await Runner.run(agent, said, session=self.session, run_config=config)
                answer, items = done.final_output, done.to_input_list()
            shown = server.requests[-1].raw.decode()
        return Ran(answer, shown, json.dumps([items, await self.session.get_items()]))

    async def fail(self, said: str) -> None:
        """Run with a model that refuses."""
        async with (
            ModelServer(lambda _: Refuse(400)) as server,
            AsyncOpenAI(base_url=server.url, api_key="none", max_retries=0) as client,
        ):
            agent = Agent(name="rig", model=OpenAIChatCompletionsModel("m", client))
            config = self.session.run_config(RunConfig(tracing_disabled=True))
            with contextlib.suppress(OpenAIError):
                await Runner.run(agent, said, session=self.session, run_config=config)


def clock() -> str:
    """The time."""
    return "noon"
