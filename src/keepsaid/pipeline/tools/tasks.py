"""Task tools: the agent makes, lists, shows and ends tasks; and the chat commands on tasks.

Tasks are made and ended by the commit of the turn or of the branch. Results of tasks are data.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from keepsaid.domain.command import REFUSED, CommandResult
from keepsaid.domain.effects import Effect, JudgeTask, MakeTask, RelayTask, StopTask
from keepsaid.domain.ids import read, show
from keepsaid.domain.memory import OWNER
from keepsaid.domain.message import StoredMessage, Trust, Trusted
from keepsaid.domain.prompt import Json, Record, answered_calls, object_schema
from keepsaid.domain.route import TaskKind
from keepsaid.domain.task import CALL_REFUSED, ENDED, Task, TaskFilter, trust_of_task
from keepsaid.domain.trust import UNKEYED, Fence
from keepsaid.domain.turn import ClaimedBatch, Step, ToolClass
from keepsaid.domain.visibility import least
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool
from keepsaid.ports.runtime import Ids
from keepsaid.ports.store_views import TaskView
from keepsaid.text.normal import cut, normalise

CREATE, LIST, SHOW, CANCEL = "task_create", "task_list", "task_show", "task_cancel"
BRANCH = "branch"
TEXT_CHARS_MAX = 20_000
_AFTER_MAX = 20
_TOOLS_MAX = 50
_OPEN_MAX = 20
"""Tasks of one lane that have not ended, after which its turns make no more."""

_LISTED = 20
_LINE_CHARS = 120
_RESULT_CHARS = 8_000
_CREATE = object_schema(
    {
        "task": {"type": "string", "description": "what is to be done, with all that a worker has to know"},
        "key": {"type": "string", "description": "a short name; {{task:NAME.result}} in a later task refers to it"},
        "after": {"type": "array", "items": {"type": "string"}, "description": "tasks that come first: tsk_..."},
        "tools": {
            "type": "array",
            "items": {"type": "string"},
            "description": "the only tools it may use",
        },
    },
    "task",
)
_ABOUT: Json = {"type": "string", "description": "what to think about, and what the conclusion is for"}
_BRANCH = object_schema({"about": _ABOUT}, "about")
_NAMED = object_schema({"id": {"type": "string", "description": "a task: tsk_..."}}, "id")
_NOTHING = object_schema({})


class TaskTools:
    """Tools of one turn, or of a branch that a turn began. The owner's direct chats see all tasks, others those of
    their lane.

    `steps` are the recorded steps: tasks that they made are known, though they are not stored yet. `names` returns the
    tools that a worker may be given.
    """

    def __init__(
        self,
        claimed: ClaimedBatch,
        view: TaskView,
        ids: Ids,
        steps: Sequence[Step] = (),
        fence: Fence = UNKEYED,
        names: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._claimed = claimed
        self._view = view
        self._ids = ids
        self._fence = fence
        self._names = names
        origins = [message.inbound.origin for message in claimed.messages]
        self._lane = None if all(one.trust is Trust.OWNER and one.direct for one in origins) else claimed.batch.lane
        made = (read("task", str(step.output).partition(" ")[0]) for step in steps if step.subject in (CREATE, BRANCH))
        self._made = {number for number in made if number is not None}

    def making(self) -> tuple[Tool, ...]:
        """Make and branch: all that a branch has."""
        return (
            _own(CREATE, "Have a worker do something beside this conversation.", _CREATE, self._create),
            _own(BRANCH, "Think something over aside, with all that was said here.", _BRANCH, self._branch),
        )

    def tools(self) -> tuple[Tool, ...]:
        ends = _own(CANCEL, "End a task that has not ended.", _NAMED, self._cancel)
        return (
            *self.making(),
            Tool(LIST, "List the latest tasks, newest first.", _NOTHING, self._list),
            Tool(SHOW, "Show one task: what its worker did, and its result.", _NAMED, self._show),
            replace(ends, serves=Trust.OWNER) if self._lane is None else ends,
        )

    async def _create(self, arguments: dict[str, Json]) -> str:
        self._check(arguments, "task")
        if not isinstance(arguments.get("key", ""), str):
            raise ToolError("key must be a text")
        known = self._names()
        if unknown := [name for name in _tools_in(arguments) or () if name not in known]:
            there = ", ".join(sorted(known)) or "none"
            raise ToolError(f"there is no tool {unknown[0]!r} that a worker may use; there are: {there}")
        for number in (one for one in _after(arguments) if one not in self._made):
            task = await self._seen(number)
            if task.state in ("failed", "cancelled"):
                raise ToolError(f"{show('task', number)} is {task.state}")
        return f"{await self._new()} is written down; a worker begins once you have answered."

    async def _branch(self, arguments: dict[str, Json]) -> str:
        self._check(arguments, "about")
        return f"{await self._new()} is thought over once you have answered."

    def _check(self, arguments: Mapping[str, Json], name: str) -> None:
        text = arguments.get(name)
        if not isinstance(text, str) or not text.strip() or len(text) > TEXT_CHARS_MAX:
            raise ToolError(f"{name} must be a text of at most {TEXT_CHARS_MAX} characters that is not empty")

    async def _new(self) -> str:
        """The name of one more task, where the lane has not too many."""
        latest = await self._view.find(TaskFilter(lane=self._claimed.batch.lane, limit=2 * _OPEN_MAX))
        if len({task.id for task in latest if task.state not in ENDED} | self._made) >= _OPEN_MAX:
            raise ToolError(f"{_OPEN_MAX} tasks of this conversation have not ended yet")
        number = self._ids.next()
        self._made.add(number)
        return show("task", number)

    async def _list(self, _arguments: dict[str, Json]) -> str:
        found = await self._view.find(TaskFilter(lane=self._lane, limit=_LISTED))
        return Trusted(listed(found, self._fence), least([Trust.OWNER, *map(trust_of_task, found)]))

    async def _show(self, arguments: dict[str, Json]) -> str:
        task = await self._seen(_named(arguments))
        lines = [_line(task), *self._fence.data("what it is about", cut(task.description, _RESULT_CHARS))]
        lines += self._fence.data("what its worker said of it", task.status) if task.status else ()
        lines += self._fence.data("its result", cut(task.result, _RESULT_CHARS)) if task.result else ()
        text = "\n".join((*lines, *(("Why: " + task.reason,) if task.reason else ())))
        return Trusted(text, Trust.EXTERNAL if task.result or task.reason else trust_of_task(task))

    async def _cancel(self, arguments: dict[str, Json]) -> str:
        task = await self._seen(_named(arguments))
        if task.state in ENDED:
            raise ToolError(f"{show('task', task.id)} is {task.state}")
        return f"{show('task', task.id)} ends with this turn."

    async def _seen(self, number: int) -> Task:
        story = await self._view.task(number)
        if story is None or self._lane not in (None, story.task.lane):
            raise ToolError(f"there is no task {show('task', number)} here")
        return story.task


def tasks_in(records: Sequence[Record], claimed: ClaimedBatch) -> tuple[Effect, ...]:
    """What a turn's records ask for: each call that was not refused, in order."""
    outside = any(one.inbound.origin.trust is not Trust.OWNER for one in claimed.all_messages)
    return tuple(_requested_effects(records, outside=outside))


def made_in(records: Sequence[Record], *, outside: bool) -> tuple[MakeTask, ...]:
    """The work that a branch's records ask for, in order."""
    return tuple(one for one in _requested_effects(records, outside=outside) if isinstance(one, MakeTask))


def _requested_effects(records: Sequence[Record], *, outside: bool) -> Iterator[MakeTask | StopTask | RelayTask]:
    for answered in answered_calls(records, CREATE, BRANCH, SHOW, CANCEL):
        call, text, trust = answered
        arguments, number = answered.arguments, read("task", text.partition(" ")[0])
        strange = outside if trust is None else trust is not Trust.OWNER
        if number is None:
            continue
        if call.name == CANCEL:
            yield StopTask(number, "the agent ended it")
        elif call.name == SHOW:
            if text.split(" ", 2)[1].rstrip(":") in ENDED:
                yield RelayTask(number)
        elif call.name == BRANCH:
            yield MakeTask(number, normalise(str(arguments["about"])), outside=strange, kind=TaskKind.BRANCH)
        else:
            task, key = normalise(str(arguments["task"])), normalise(str(arguments.get("key", "")))
            yield MakeTask(number, task, key, _after(arguments), strange, tools=_tools_in(arguments))


def _own(name: str, says: str, schema: Mapping[str, Json], run: Callable[[dict[str, Json]], Awaitable[str]]) -> Tool:
    """A tool that has an effect among tasks: it serves people who are known, and strangers never."""
    return Tool(name, says, schema, run, ToolClass.IDEMPOTENT, serves=Trust.KNOWN, output=Trust.OWNER)


def _after(arguments: Mapping[str, Json]) -> tuple[int, ...]:
    given = arguments.get("after") or []
    known = [read("task", str(one)) for one in given] if isinstance(given, list) else [None]
    numbers = tuple(one for one in known if one is not None)
    if len(numbers) != len(known) or len(known) > _AFTER_MAX:
        raise ToolError(f"after must be a list of at most {_AFTER_MAX} tasks: tsk_...")
    return numbers


def _tools_in(arguments: Mapping[str, Json]) -> tuple[str, ...] | None:
    """The tools that a worker may use; None where the call does not say."""
    given = arguments.get("tools")
    if given is None:
        return None
    if not isinstance(given, list) or len(given) > _TOOLS_MAX or not all(isinstance(one, str) for one in given):
        raise ToolError(f"tools must be a list of at most {_TOOLS_MAX} names")
    return tuple(normalise(str(one)) for one in given)


def _named(arguments: Mapping[str, Json]) -> int:
    if (number := read("task", str(arguments.get("id", "")))) is None:
        raise ToolError("id must name a task: tsk_...")
    return number


def listed(tasks: Sequence[Task], fence: Fence) -> str:
    """Tasks, a line each, as data."""
    return "\n".join(fence.data("tasks, newest first", "\n".join(map(_line, tasks)))) if tasks else "There is no task."


def _line(task: Task) -> str:
    said = " ".join((task.status or task.description).split())
    return f"{show('task', task.id)} {task.state}: {cut(said, _LINE_CHARS)}"


async def show_tasks(view: TaskView, message: StoredMessage) -> CommandResult:
    """`/tasks`: the latest tasks, and those that wait for the owner's word; in a chat between the two of us."""
    if not _owns(message):
        return CommandResult(_WHO, REFUSED)
    parked = await view.find(TaskFilter(state="needs_review", limit=_LISTED))
    found = await view.find(TaskFilter(limit=_LISTED))
    lines = [f"{_line(task)} ({task.reason})" for task in parked]
    lines += [_line(task) for task in found if task.state != "needs_review"]
    return CommandResult("\n".join(lines) or "There is no task.")


async def judge_task(view: TaskView, message: StoredMessage, arguments: str, *, approved: bool) -> CommandResult:
    """`/approve ID`: a task that waits goes on, and its unfinished call is made again. `/reject ID`: it fails."""
    if not _owns(message):
        return CommandResult(_WHO, REFUSED)
    number = read("task", arguments)
    story = None if number is None else await view.task(number)
    if story is None or story.task.state != "needs_review":
        return CommandResult("Say which: a task that needs review. /tasks lists them.", REFUSED)
    effect = JudgeTask(story.task.id, approved, CALL_REFUSED)
    done = "goes on; its unfinished call is made again"
    if story.task.kind is TaskKind.CALL and not story.task.fence:
        done = "is approved: the call is made now, once, as it was shown"
    if not approved:
        done = "has failed"
    return CommandResult(f"{show('task', story.task.id)} {done}.", effects=(effect,))


_WHO = f"Only the {OWNER} may say that, in a chat between the two of us."


def _owns(message: StoredMessage) -> bool:
    origin = message.inbound.origin
    return origin.trust is Trust.OWNER and origin.direct
