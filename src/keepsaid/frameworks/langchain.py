"""Memory for agents of LangChain: `create_agent(model, middleware=[Middleware(ks.agent("ann"))])`."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langgraph.runtime import Runtime

from keepsaid.frameworks.bridge import BUDGET_S, MemoryBridge, MemoryCalls, run_key

_BLOCKS_MAX = 256


class _Turn(NamedTuple):
    """Where the user spoke last in a run: the place among its messages, what was said, and the key of the run."""

    at: int
    said: str
    key: str


class MemoryMiddleware(AgentMiddleware[Any, Any, Any]):
    """Shows the model what memory brings to mind, and records what was said, once a run.

    `conversation` names the conversation of all runs; without it, each is in that of its `thread_id`, and runs without
    a checkpointer share one. What is shown is in the request alone: neither in the state nor in a checkpoint. It works
    in `invoke` and in `ainvoke`; where memory fails, the run goes on without, and `degraded` says why.
    """

    def __init__(
        self, memory: MemoryCalls, conversation: str = "", *, tokens: int = 1_500, budget_s: float = BUDGET_S
    ) -> None:
        super().__init__()
        self.bridge = MemoryBridge(memory, tokens=tokens, budget_s=budget_s)
        self.conversation = conversation
        self._blocks: OrderedDict[tuple[str, str], str] = OrderedDict()

    @property
    def degraded(self) -> str:
        """Why the latest call of memory got nothing; empty if it got all."""
        return self.bridge.degraded

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Add the memories in front of the user's message, to this request only."""
        if (turn := _turn_in(request.messages)) is None:
            return handler(request)
        where = self._conversation(request.runtime)
        if (block := self._blocks.get((where, turn.key))) is None:
            block = self._keep(where, turn, self.bridge.block_sync(where, turn.said))
        return handler(_shown(request, turn.at, block))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """As `wrap_model_call`."""
        if (turn := _turn_in(request.messages)) is None:
            return await handler(request)
        where = self._conversation(request.runtime)
        if (block := self._blocks.get((where, turn.key))) is None:
            block = self._keep(where, turn, await self.bridge.block(where, turn.said))
        return await handler(_shown(request, turn.at, block))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Record what the user said and what the agent answered."""
        if (turn := _turn_in(state["messages"])) is not None:
            where, answer = self._ended(turn, runtime), _answer_in(state["messages"][turn.at :])
            self.bridge.record_sync(where, turn.key, ("user", turn.said), ("assistant", answer))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """As `after_agent`."""
        if (turn := _turn_in(state["messages"])) is not None:
            where, answer = self._ended(turn, runtime), _answer_in(state["messages"][turn.at :])
            await self.bridge.record(where, turn.key, ("user", turn.said), ("assistant", answer))

    def _conversation(self, runtime: Runtime[Any] | None) -> str:
        info = None if runtime is None else runtime.execution_info
        return self.conversation or (info.thread_id if info is not None else None) or "langchain"

    def _keep(self, where: str, turn: _Turn, block: str) -> str:
        """Keep a block for the further requests of its run; of runs that never end, the oldest go."""
        self._blocks[where, turn.key] = block
        if len(self._blocks) > _BLOCKS_MAX:
            self._blocks.popitem(last=False)
        return block

    def _ended(self, turn: _Turn, runtime: Runtime[Any]) -> str:
        where = self._conversation(runtime)
        self._blocks.pop((where, turn.key), None)
        return where


Middleware = MemoryMiddleware
"""The name that programs write."""


def _turn_in(messages: Sequence[BaseMessage]) -> _Turn | None:
    """The turn of the last message of the user. Its key is of the history; without one, of the message's id."""
    at = max((n for n, one in enumerate(messages) if isinstance(one, HumanMessage)), default=None)
    if at is None or not (said := str(messages[at].text)).strip():
        return None
    history = [str(one.text) for one in messages[:at] if isinstance(one, HumanMessage | AIMessage)]
    return _Turn(at, said, run_key(*(history if any(history) else [str(messages[at].id)]), said))


def _shown(request: ModelRequest[Any], at: int, block: str) -> ModelRequest[Any]:
    messages = request.messages
    return request.override(messages=[*messages[:at], HumanMessage(block), *messages[at:]]) if block else request


def _answer_in(messages: Sequence[BaseMessage]) -> str:
    """What the agent said last."""
    said = (str(one.text) for one in reversed(messages) if isinstance(one, AIMessage))
    return next(filter(None, said), "")
