"""Memory for agents of openai-agents: a session that is recorded talk, and a filter that shows memory to the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, cast

from agents import RunConfig
from agents.items import TResponseInputItem
from agents.memory import SessionSettings
from agents.run_config import CallModelData, ModelInputData

from keepsaid.frameworks.bridge import BUDGET_S, MemoryBridge, MemoryCalls
from keepsaid.frameworks.talk import RecordedTalk


class TalkSession:
    """A `Session` whose items are the recorded talk of a conversation: `session_id`.

    Pass `session.run_config()` to the runner as well, so that the model is shown what memory brings to mind. Items are
    what users say and agents answer; calls of tools and their results are not kept from run to run. Talk is recorded
    when the answer is there, in one record. Where memory fails, a run has the history that this object has read before.
    """

    def __init__(
        self, memory: MemoryCalls, session_id: str, *, tokens: int = 1_500, budget_s: float = BUDGET_S
    ) -> None:
        self.session_id = session_id
        self.session_settings: SessionSettings | None = SessionSettings()
        self.bridge = MemoryBridge(memory, tokens=tokens, budget_s=budget_s)
        self._talk = RecordedTalk(self.bridge, session_id)
        self._unanswered: list[tuple[str, str]] = []
        self._block: tuple[str, str] | None = None

    @property
    def degraded(self) -> str:
        """Why the latest call of memory got nothing; empty if it got all."""
        return self.bridge.degraded

    def run_config(self, config: RunConfig | None = None) -> RunConfig:
        """A configuration of runs, or a copy of one, by which the model is shown memory."""
        return replace(config or RunConfig(), call_model_input_filter=self.inject)

    async def inject(self, data: CallModelData[Any]) -> ModelInputData:
        """Add memories in front of the last message of the user, for this call of the model only."""
        items, instructions = data.model_data.input, data.model_data.instructions
        at = max((n for n, one in enumerate(items) if _line_of(one)[0] == "user"), default=None)
        if at is None:
            return data.model_data
        said = _line_of(items[at])[1]
        if self._block is None or self._block[0] != said:
            self._block = (said, await self.bridge.block(self.session_id, said))
        if not self._block[1]:
            return data.model_data
        return ModelInputData([*items[:at], _item("user", self._block[1]), *items[at:]], instructions)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """What was said in this conversation, oldest first; with a `limit`, the last of it. A run begins so."""
        self._block = None
        most = limit if limit is not None or self.session_settings is None else self.session_settings.limit
        items = [_item(one.role, one.text) for one in await self._talk.read()]
        return items if most is None else items[len(items) - most :] if 0 < most < len(items) else items[: most or 0]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Record messages, once the agent answered them; other items are not kept.

        What was said and is not answered yet is taken once: a run that failed is retried with the same words.
        """
        said = [line for line in map(_line_of, items) if line[1].strip()]
        if not said or said == self._unanswered:
            return
        self._unanswered += said
        if said[-1][0] == "assistant":
            lines, self._unanswered = self._unanswered, []
            await self._talk.add(*lines)

    async def pop_item(self) -> TResponseInputItem | None:
        """Withdraw the last message: it is kept, and marked, so that no session returns it; None for none to withdraw.

        None too where memory does not answer; then nothing is withdrawn.
        """
        if self._unanswered:
            return _item(*self._unanswered.pop())
        if not (lines := await self._talk.read()) or not await self._talk.withdraw(lines[-1:]):
            return None
        return _item(lines[-1].role, lines[-1].text)

    async def clear_session(self) -> None:
        """Withdraw all messages. They are kept and can be recalled; `forget` of the memory is what deletes."""
        self._unanswered.clear()
        if lines := await self._talk.read():
            await self._talk.withdraw(lines)


Session = TalkSession
"""The name that programs write."""


def _item(role: str, text: str) -> TResponseInputItem:
    return cast("TResponseInputItem", {"role": role, "content": text})


def _line_of(item: TResponseInputItem) -> tuple[str, str]:
    """The role and the text of a message of the user or the agent; empty texts for any other item."""
    fields = cast("dict[str, Any]", item)
    role, content = fields.get("role"), fields.get("content")
    if role not in ("user", "assistant"):
        return "", ""
    parts: Sequence[Any] = [content] if isinstance(content, str) else content or ()
    texts = [one if isinstance(one, str) else one.get("text", "") for one in parts]
    return role, "\n".join(filter(None, texts))
