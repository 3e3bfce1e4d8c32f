"""Gate: which tool calls a turn may make at its present trust; the others are refused, or wait for the owner.

A call is refused before anything of it runs, and the model is told so. The refusal is recorded as the step's result, so
that a retry repeats it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Protocol

from keepsaid.domain.effects import MakeTask, call_task_in
from keepsaid.domain.message import Trust
from keepsaid.domain.prompt import Json, Record, ToolCall
from keepsaid.domain.taint import Taint, of_records
from keepsaid.ports.model import Tool

REFUSED = "error: refused, nothing was done"
_WHOM = {Trust.OWNER: "the owner", Trust.KNOWN: "the owner and people known here", Trust.EXTERNAL: "anyone"}
_HOW = {
    Trust.EXTERNAL: "this conversation shows text by a stranger or from outside",
    Trust.KNOWN: "this conversation shows text by others than the owner",
    Trust.OWNER: "",
}


class Asking(Protocol):
    """How a refused call is put before the owner."""

    async def ask(self, tool: Tool, call: ToolCall, taint: Taint) -> tuple[str, MakeTask | None]:
        """What the model is told about it, and the task that waits for the owner; None where nothing new is asked."""
        ...


class NobodyAsked:
    """Asks nobody: a refused call stays refused."""

    async def ask(self, tool: Tool, call: ToolCall, taint: Taint) -> tuple[str, MakeTask | None]:  # noqa: ARG002
        """Nothing is asked."""
        return "Do not try again; say that the owner can do it in a conversation without such text.", None


@dataclass(frozen=True, slots=True)
class Refusal:
    """A refused call: what the model is told, and the task that waits for the owner."""

    text: str
    task: MakeTask | None = None


class Gate:
    """The taint of one turn as it goes on, and the calls that it lets through."""

    def __init__(self, taint: Taint, asking: Asking | None = None, *, granted: Iterable[str] = ()) -> None:
        self.taint = taint
        self._asking = asking or NobodyAsked()
        self._granted = frozenset(granted)

    def see(self, records: Iterable[Record]) -> None:
        """Take into account what a step has shown."""
        self.taint = self.taint.showing(of_records(records))

    async def refusal(self, tool: Tool, call: ToolCall) -> Refusal | None:
        """Why a call may not be made now; None where it may. Tools that were granted by name may always be called."""
        if self.taint.allows(tool.needs) or tool.name in self._granted:
            return None
        next_text, task = await self._asking.ask(tool, call, self.taint)
        why = f"{REFUSED}: {tool.name} serves {_WHOM[tool.needs]}, and {_HOW[self.taint.trust]} ({self.taint.why})."
        return Refusal(f"{why} {next_text}", task)


def as_json(refusal: Refusal) -> Json:
    """A refusal as the output of a step."""
    return {"refused": refusal.text, "task": None if refusal.task is None else refusal.task.as_json}


def refusal_in(output: Json) -> Refusal | None:
    """The refusal that a step's output is; None for what a tool returned."""
    if not isinstance(output, dict) or "refused" not in output:
        return None
    return Refusal(str(output["refused"]), call_task_in(output.get("task")))
