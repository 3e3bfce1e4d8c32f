"""Memory for agents of pydantic-ai: `Agent(model, capabilities=[Memory(ks.agent("ann"))])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic_ai.capabilities import AbstractCapability, WrapModelRequestHandler
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextContent, TextPart, UserPromptPart
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.run import AgentRunResult
from pydantic_ai.tools import RunContext

from keepsaid.frameworks.bridge import BUDGET_S, MemoryBridge, MemoryCalls, run_key


class MemoryCapability(AbstractCapability[Any]):
    """Shows the model what memory brings to mind, and records what was said, once a run.

    `conversation` names the conversation of all runs; without it, each is in that of its `conversation_id`. What is
    shown is in the request alone: neither in `new_messages()` nor in a store. Where memory fails or takes more than
    `budget_s` seconds, the run goes on without, and `degraded` says why.
    """

    def __init__(
        self, memory: MemoryCalls, conversation: str = "", *, tokens: int = 1_500, budget_s: float = BUDGET_S
    ) -> None:
        self.bridge = MemoryBridge(memory, tokens=tokens, budget_s=budget_s)
        self.conversation = conversation

    @property
    def degraded(self) -> str:
        """Why the latest call of memory got nothing; empty if it got all."""
        return self.bridge.degraded

    async def for_run(self, ctx: RunContext[Any]) -> AbstractCapability[Any]:
        """The memory of one run: parallel runs share nothing."""
        return _RunMemory(self.bridge, self.conversation or ctx.conversation_id or "pydantic-ai")


Memory = MemoryCapability
"""The name that programs write."""


@dataclass
class _RunMemory(AbstractCapability[Any]):
    bridge: MemoryBridge
    conversation: str
    block: str | None = None
    said: str = ""
    key: str = field(default="")

    async def wrap_model_request(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, handler: WrapModelRequestHandler
    ) -> ModelResponse:
        """Add the memories in front of the user's message, to this request only."""
        messages = request_context.messages
        at = max((n for n, one in enumerate(messages) if _said_in(one)), default=None)
        if at is None:
            return await handler(request_context)
        if self.block is None:
            self.said = _said_in(messages[at])
            self.key = _key_of(ctx, messages[:at], self.said)
            self.block = await self.bridge.block(self.conversation, self.said)
        if self.block:
            shown = ModelRequest(parts=[UserPromptPart(self.block)])
            request_context = replace(request_context, messages=[*messages[:at], shown, *messages[at:]])
        return await handler(request_context)

    async def after_run(
        self,
        ctx: RunContext[Any],  # noqa: ARG002 - the framework's signature
        *,
        result: AgentRunResult[Any],
    ) -> AgentRunResult[Any]:
        """Record what the user said and what the agent answered."""
        if self.said:
            answer = result.output if isinstance(result.output, str) else _answer_in(result.new_messages())
            await self.bridge.record(self.conversation, self.key, ("user", self.said), ("assistant", answer))
        return result


def _said_in(message: ModelMessage) -> str:
    """What the user says in a message, as text."""
    if not isinstance(message, ModelRequest):
        return ""
    return "\n".join(filter(None, (_text_of(one.content) for one in message.parts if isinstance(one, UserPromptPart))))


def _text_of(content: str | Sequence[Any]) -> str:
    if isinstance(content, str):
        return content
    texts = (one if isinstance(one, str) else one.content for one in content if isinstance(one, str | TextContent))
    return "\n".join(texts)


def _answer_in(messages: Sequence[ModelMessage]) -> str:
    """What the agent says in its last response that says anything, for a run whose output is not text."""
    for message in reversed(messages):
        parts = message.parts if isinstance(message, ModelResponse) else ()
        if said := "".join(one.content for one in parts if isinstance(one, TextPart)):
            return said
    return ""


def _key_of(ctx: RunContext[Any], before: Sequence[ModelMessage], said: str) -> str:
    """The key of a run: of the history that it was given, so that a retry has it too; without one, of its id."""
    history = [_said_in(one) or _answer_in([one]) for one in before]
    return run_key(*history, said) if any(history) else run_key(str(ctx.run_id), said)
