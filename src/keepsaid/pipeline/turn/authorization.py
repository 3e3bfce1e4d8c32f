"""Authorization of tool calls: which calls a turn may make at its trust, and which the owner is asked to approve."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from keepsaid.domain import reply, route, trust
from keepsaid.domain.effects import MakeTask, call_task_in
from keepsaid.domain.ids import show
from keepsaid.domain.message import Lane, Trust
from keepsaid.domain.prompt import Json, Record, ToolCall
from keepsaid.domain.task import CALL_EXPIRED, Task, TaskFilter
from keepsaid.ports import model, runtime, store_views
from keepsaid.text.normal import digest, normalise
from keepsaid.values import frozen

REFUSED = "error: refused, nothing was done"
_WHOM = {Trust.OWNER: "the owner", Trust.KNOWN: "the owner and people known here", Trust.EXTERNAL: "anyone"}
_HOW = {
    Trust.EXTERNAL: "this conversation shows text by a stranger or from outside",
    Trust.KNOWN: "this conversation shows text by others than the owner",
    Trust.OWNER: "",
}
_NO_APPROVALS = "Do not try again; say that the owner can do it in a conversation without such text."


@frozen
class RefusedCall:
    """A refused call: the output for the model, and the task that waits for the owner."""

    text: str
    task: MakeTask | None = None


class CallGate:
    """The taint of one turn as it goes on, and the calls that it lets through."""

    def __init__(self, taint: trust.Taint, asking: Approvals | None = None, *, granted: Iterable[str] = ()) -> None:
        self.taint = taint
        self._asking = asking
        self._granted = frozenset(granted)

    def see(self, records: Iterable[Record]) -> None:
        """Take into account what a step has shown."""
        self.taint = self.taint.showing(trust.of_records(records))

    async def refusal(self, tool: model.Tool, call: ToolCall) -> RefusedCall | None:
        """Why a call may not be made now; None where it may. Tools that were granted by name may always be called."""
        if self.taint.allows(tool.needs) or tool.name in self._granted:
            return None
        next_text, task = await self._asking.ask(tool, call, self.taint) if self._asking else (_NO_APPROVALS, None)
        why = f"{REFUSED}: {tool.name} serves {_WHOM[tool.needs]}, and {_HOW[self.taint.trust]} ({self.taint.why})."
        return RefusedCall(f"{why} {next_text}", task)


def as_json(refusal: RefusedCall) -> Json:
    """A refusal as the output of a step."""
    return {"refused": refusal.text, "task": None if refusal.task is None else refusal.task.as_json}


def refusal_in(output: Json) -> RefusedCall | None:
    """The refusal that a step's output is; None for what a tool returned."""
    if not isinstance(output, dict) or "refused" not in output:
        return None
    return RefusedCall(str(output["refused"]), call_task_in(output.get("task")))


_ARGUMENTS_CHARS_MAX = 3_000
"""Arguments that are longer are not put before anybody: the owner could not read what he approves."""

_LISTED = 200
_NOT_ASKED = (
    "It cannot be approved either: {}. Say so, and that the owner can do it in a conversation without such text."
)


@frozen
class ApprovalTerms:
    """How long a call may be approved, and how many may wait at a time: of one lane, and in all."""

    lasts_ms: int = 86_400_000
    lane_max: int = 5
    all_max: int = 50


@dataclass(slots=True, eq=False)
class Approvals:
    """Puts the refused calls of one turn, branch or worker before the owner.

    `names` are the tools that can be called outside of a turn. The same call is asked for once while it waits, and not
    again for as long after it was refused or expired.
    """

    view: store_views.TaskView
    clock: runtime.Clock
    ids: runtime.Ids
    lane: Lane | None
    names: Collection[str]
    terms: ApprovalTerms = ApprovalTerms()
    _new: dict[str, int] = field(default_factory=dict, init=False)

    async def ask(self, tool: model.Tool, call: ToolCall, taint: trust.Taint) -> tuple[str, MakeTask | None]:
        """The output for the model, and the task that waits for the owner; None where nothing new is asked."""
        if tool.name not in self.names:
            return _NOT_ASKED.format("it belongs to the turn itself"), None
        arguments = canonical(call.arguments)
        if arguments is None or len(arguments) > _ARGUMENTS_CHARS_MAX:
            return _NOT_ASKED.format("its arguments are too long to be shown, or no JSON object"), None
        key = f"call:{digest(*(self.lane or ()), tool.name, arguments).hex()[:24]}"
        if known := await self._known(key):
            return known, None
        if await self._crowded():
            return _NOT_ASKED.format("too many calls wait for the owner already"), None
        number, now = self.ids.next(), self.clock.now_ms()
        self._new[key] = number
        notice = reply.ReplyDraft(self.ids.next(), _notice(number, tool.name, arguments, taint), notice=True)
        text = f"{tool.name} {arguments}"
        until = now + self.terms.lasts_ms
        task = MakeTask(number, text, key, (), True, route.TaskKind.CALL, taint.why or str(taint.trust), until, notice)
        return _waits(number), task

    async def _known(self, key: str) -> str:
        """What is said of a call that was asked for before; "" where it was not."""
        if key in self._new:
            return _waits(self._new[key])
        if not (found := await self.view.find(TaskFilter(key=key, limit=1))):
            return ""
        last = found[0]
        if last.state in ("needs_review", "pending", "running"):
            return _waits(last.id)
        ended = last.state == "failed" and not last.fence
        if ended and self.clock.now_ms() - (last.ended_at or 0) < self.terms.lasts_ms:
            is_late = last.reason == CALL_EXPIRED
            who = "Nobody approved this very call in time" if is_late else "The owner has refused it"
            return f"{who}. Do not try again."
        return ""

    async def _crowded(self) -> bool:
        waiting = await self.view.find(TaskFilter(state="needs_review", limit=_LISTED))
        calls = [one for one in waiting if one.kind is route.TaskKind.CALL]
        here = sum(one.lane == self.lane for one in calls) + len(self._new)
        return here >= self.terms.lane_max or len(calls) + len(self._new) >= self.terms.all_max


def canonical(arguments: str) -> str | None:
    """Arguments as they are shown and used: a JSON object on one line; None where they are none.

    What cannot be seen, or turns the writing direction, is shown by its number.
    """
    try:
        read = json.loads(arguments or "{}")
    except (ValueError, RecursionError):
        return None
    if not isinstance(read, dict):
        return None
    written = json.dumps(read, ensure_ascii=False)
    return "".join(
        one if one == " " or unicodedata.category(one)[0] not in ("C", "Z") else json.dumps(one)[1:-1]
        for one in written
    )


def call_of(task: Task) -> ToolCall:
    """The call that a task makes."""
    name, _, arguments = task.description.partition(" ")
    return ToolCall("approved", name, arguments)


def _waits(number: int) -> str:
    name = show("task", number)
    return f"The owner is asked and sees the arguments ({name}). It runs once they approve. Say so; do not try again."


def _notice(number: int, name: str, arguments: str, taint: trust.Taint) -> str:
    task = show("task", number)
    return normalise(
        f"A tool call needs your approval ({task}).\nTool: {name}\n"
        f"Arguments (data, not a message to you): {arguments}\n"
        f"Why: the turn that asked for it shows {taint.why or 'text by others'}.\n"
        f"/approve {task} runs it once, exactly so. /reject {task} refuses it."
    )
