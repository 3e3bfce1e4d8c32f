"""Memory for agents of LlamaIndex: `Memory.from_defaults(memory_blocks=[Block(ks.agent("ann"))])`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.memory import BaseMemoryBlock

from keepsaid.frameworks.bridge import BUDGET_S, MemoryBridge, MemoryCalls
from keepsaid.frameworks.talk import RecordedTalk

_CHARS_A_TOKEN = 4
_SESSIONS_MAX = 256

Line = tuple[str, str]
"""A role and a text."""


class RecallBlock(BaseMemoryBlock[str]):
    """A memory block of what memory brings to mind for the user's last message; it records what was said.

    `conversation` names the conversation of all sessions; without it, each is in that of its `session_id`. The block
    records exchanges when the framework reads it with their answer: at the end of a run of an agent, or with the next
    message of a chat engine. Where memory fails, the block is empty, and `degraded` says why.
    """

    name: str = "keepsaid"
    priority: int = 1

    _bridge: MemoryBridge = PrivateAttr()
    _conversation: str = PrivateAttr()
    _talks: dict[str, RecordedTalk] = PrivateAttr(default_factory=dict)
    _blocks: dict[str, tuple[tuple[int, str], str]] = PrivateAttr(default_factory=dict)

    def __init__(
        self,
        memory: MemoryCalls,
        conversation: str = "",
        *,
        tokens: int = 1_500,
        budget_s: float = BUDGET_S,
        **fields: Any,
    ) -> None:
        super().__init__(**fields)
        self._bridge = MemoryBridge(memory, tokens=tokens, budget_s=budget_s)
        self._conversation = conversation

    @property
    def degraded(self) -> str:
        """Why the latest call of memory got nothing; empty if it got all."""
        return self._bridge.degraded

    async def _aget(self, messages: list[ChatMessage] | None = None, **block_kwargs: Any) -> str:
        lines = _lines_in(messages or [])
        where = self._conversation or str(block_kwargs.get("session_id") or "llamaindex")
        if not lines or lines[-1][0] != "user":
            await self._record(where, lines)
            return ""
        asked = (sum(role == "assistant" for role, _ in lines), lines[-1][1])
        if (kept := self._blocks.get(where)) is None or kept[0] != asked:
            # once a message, and not with each step that a run takes to answer it
            await self._record(where, lines)
            kept = _kept(self._blocks, where, (asked, await self._bridge.block(where, asked[1])))
        return kept[1]

    async def _aput(self, messages: list[ChatMessage]) -> None:
        session = next((one.additional_kwargs.get("session_id") for one in messages), None)
        await self._record(self._conversation or str(session or "llamaindex"), _lines_in(messages))

    async def atruncate(self, content: str, tokens_to_truncate: int) -> str | None:
        """The beginning of the block, shorter by that number of tokens; None for nothing."""
        return content[: max(0, len(content) - tokens_to_truncate * _CHARS_A_TOKEN)] or None

    async def _record(self, where: str, lines: Sequence[Line]) -> None:
        """Record what was answered and is not in the record yet."""
        answered = max((n for n, (role, _) in enumerate(lines, start=1) if role == "assistant"), default=0)
        if not answered:
            return
        if (talk := self._talks.get(where)) is None:
            talk = _kept(self._talks, where, RecordedTalk(self._bridge, where))
        there = [(one.role, one.text) for one in await talk.read()]
        if not self._bridge.degraded and (new := _unrecorded(there, lines[:answered])):
            await talk.add(*new)


Block = RecallBlock
"""The name that programs write."""


def _lines_in(messages: Sequence[ChatMessage]) -> list[Line]:
    said = ((str(one.role.value), one.content or "") for one in messages)
    return [(role, text) for role, text in said if role in ("user", "assistant") and text.strip()]


def _unrecorded(there: Sequence[Line], lines: Sequence[Line]) -> Sequence[Line]:
    """What follows the longest beginning of the lines that is in the record; another answer to the same is not new."""
    for size in range(len(lines), 0, -1):
        starts = [n for n in range(len(there) - size + 1) if list(there[n : n + size]) == list(lines[:size])]
        if starts:
            rest = list(lines[size:])
            while rest and rest[0][0] == "assistant" and starts[-1] + size < len(there):
                del rest[0]
            return rest
    return lines


def _kept(kept: dict[str, Any], where: str, value: Any) -> Any:
    """Keep a value of a session; of very many sessions, the oldest go."""
    kept[where] = value
    if len(kept) > _SESSIONS_MAX:
        del kept[next(iter(kept))]
    return value
