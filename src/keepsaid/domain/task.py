"""Tasks: durable work for a worker or a branch, which may wait for other tasks (seeds 000 and 001; design: 3 and 4.4).

The result is saved in the commit that ends the task, before anybody is notified; in the same commit its dependents
continue, or fail with its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from keepsaid.domain import event, ids, message, reply, states, turn
from keepsaid.domain.commits import Commit, StepEnd
from keepsaid.domain.effects import MakeTask, OfBranch, StagedRequests
from keepsaid.domain.prompt import Json
from keepsaid.domain.route import Notify, OnCrash, TaskKind, WorkTerms
from keepsaid.values import frozen

DEPTH_MAX = 3
"""How deep work may make work: that of a turn has depth 1 (design: 4.4)."""

CRASHES_MAX = 3
"""Deaths of the process in a row, without a step done between them, after which a person is asked about a task."""

OPEN = ("blocked", "pending", "running", "needs_review")
ENDED = ("completed", "failed", "cancelled")

CRASHED = "the process died while it was running"
TOO_DEEP = f"work may make work {DEPTH_MAX} deep"
FORGOTTEN = "what it was about was forgotten"
CALL_REFUSED = "refused by the owner"
CALL_EXPIRED = "nobody approved it in time"
CALL_LEFT = "a call that must not be repeated started and has no result"


@frozen
class Task:
    """A stored task. Times are milliseconds UTC.

    Its steps are recorded under its own id: it has one turn, whatever the number of its attempts. `after` are the
    tasks that must be completed first. `lane` is where it came from, `turn_id` the turn that made it, `depth` how deep
    work made work. `outside` says that words of others than the owner stand in its description. `fence` only grows,
    `attempts` counts what was charged to it, `crashes` the deaths of the process in a row while it was running.
    `status` is what its worker last said of it, `reason` why it is not running or not completed. One that waits for a
    person may be approved until `expires_at`, where it has one.
    """

    id: int
    key: str
    state: str
    description: str
    kind: TaskKind = TaskKind.WORKER
    lane: message.Lane | None = None
    turn_id: int | None = None
    depth: int = 0
    rule: str = ""
    terms: WorkTerms = WorkTerms()
    outside: bool = True
    messages: int = 0
    priority: int = 100
    ready_at: int = 0
    fence: int = 0
    attempts: int = 0
    crashes: int = 0
    deferrals: int = 0
    deferred_from: int | None = None
    status: str = ""
    result: str = ""
    reason: str = ""
    usage: turn.Usage = turn.Usage()
    created_at: int = 0
    started_at: int | None = None
    ended_at: int | None = None
    after: tuple[int, ...] = ()
    expires_at: int | None = None

    @property
    def notifies_owner(self) -> bool:
        """Whether the owner is sent a message about its present state."""
        wanted = self.terms.notify
        if self.state == "completed":
            return wanted is Notify.ALWAYS
        return self.state in ("failed", "needs_review") and wanted is not Notify.NONE


@frozen
class NewTask:
    """A task to be made; `after` may name tasks of the same commit. Without a `key` it is known by its id alone.

    With a `review` it waits for a person from the start, until `expires_at`, and the owner gets the `notice`.
    """

    id: int
    description: str
    key: str = ""
    kind: TaskKind = TaskKind.WORKER
    lane: message.Lane | None = None
    turn_id: int | None = None
    depth: int = 0
    terms: WorkTerms = WorkTerms()
    outside: bool = True
    priority: int = 100
    after: tuple[int, ...] = ()
    review: str = ""
    expires_at: int | None = None
    notice: reply.ReplyDraft | None = None


@frozen
class TaskStory:
    """A task with what its worker did so far, and those that wait for it."""

    task: Task
    steps: tuple[turn.Step, ...] = ()
    before: tuple[Task, ...] = ()
    waiting: tuple[int, ...] = ()


@frozen
class TaskFilter:
    """Which tasks to list, newest first; None means any."""

    state: str | None = None
    key: str | None = None
    lane: message.Lane | None = None
    limit: int = 20


def trust_of_task(task: Task) -> message.Trust:
    """The trust of a line about a task: its description, or its status, which its worker wrote."""
    return message.Trust.EXTERNAL if task.outside or task.status else message.Trust.OWNER


class Cycle(Exception):
    """Tasks that wait for one another in a circle; `path` begins and ends with the same."""

    def __init__(self, path: tuple[int, ...]) -> None:
        super().__init__(f"{len(path) - 1} tasks wait for one another")
        self.path = path


def waves(tasks: Sequence[NewTask]) -> tuple[tuple[NewTask, ...], ...]:
    """The tasks in the order in which they can run: those of a wave wait for earlier waves alone. Raises Cycle."""
    left = {task.id: task for task in tasks}
    found: list[tuple[NewTask, ...]] = []
    while left:
        wave = tuple(task for task in left.values() if not any(one in left for one in task.after))
        if not wave:
            path = [min(left)]
            while path.count(path[-1]) == 1:
                path.append(next(one for one in left[path[-1]].after if one in left))
            raise Cycle(tuple(path[path.index(path[-1]) :]))
        found.append(wave)
        for task in wave:
            del left[task.id]
    return tuple(found)


def planned(tasks: Sequence[NewTask]) -> tuple[tuple[NewTask, ...], str]:
    """Tasks in the order in which they can be made, and why they cannot: a circle, or work too deep."""
    try:
        ordered = tuple(task for wave in waves(tasks) for task in wave)
    except Cycle as circle:
        return (), f"they wait for one another: {' -> '.join(ids.show('task', one) for one in circle.path)}"
    return ordered, TOO_DEEP if any(task.depth > DEPTH_MAX for task in ordered) else ""


@frozen
class CreateTasks(Commit[str]):
    """Make tasks, all of them or none; "" when they are made, else why not.

    Refused: a circle, a task to wait for that does not exist, has failed or was cancelled, and work made too deep.
    """

    tasks: tuple[NewTask, ...]
    at: int


@frozen
class ClaimTasks(Commit[tuple[Task, ...]]):
    """Lease up to `limit` tasks of a kind that are due: best priority first, then the oldest.

    One whose key another running task has waits until that ends.
    """

    owner: str
    limit: int
    at: int
    lease_until: int
    kind: TaskKind = TaskKind.WORKER


@frozen
class RenewTask(Commit[bool]):
    """Keep a task; False when it was lost, or cancelled."""

    task_id: int
    fence: int
    lease_until: int


@frozen
class TellStatus(Commit[bool]):
    """What a worker says of its task while it runs; refused (False) with an old fence."""

    task_id: int
    fence: int
    text: str


class TaskEnd(StrEnum):
    """How a run of a task ends: the verb of its move."""

    COMPLETE = "complete"
    FAIL = "fail"
    RETRY = "retry"
    PARK = "park"
    RELEASE = "release"


@frozen
class EndTask(Commit[str]):
    """End a run of a task; returns its new state, "" when the fence is old.

    `text` is the result of a completed task, else why it ended. `retry` charges an attempt and becomes `fail` at the
    last; `release` charges nothing, and counts an outage when it is `deferred`. What is pending again may be tried
    at `ready_at`. `ending` is the end of the model call whose answer is the result. The `notice` goes to the owner,
    where he last wrote in a direct chat, when the task has ended or waits for a person, and its terms say so. The
    `answer` goes to the conversation of a completed task. The `effects` are what a completed branch leaves: work it
    wants done, one level deeper, and deeds of memory.
    """

    task_id: int
    fence: int
    how: TaskEnd
    at: int
    text: str = ""
    ready_at: int = 0
    deferred: bool = False
    usage: turn.Usage = turn.Usage()
    ending: StepEnd | None = None
    notice: reply.ReplyDraft | None = None
    effects: tuple[OfBranch, ...] = ()
    answer: reply.ReplyDraft | None = None


def settled(task: Task, commit: EndTask) -> Task:
    """A running task after the end of a run. Raises IllegalMove."""
    how, attempts = commit.how, task.attempts + (commit.how in (TaskEnd.FAIL, TaskEnd.RETRY))
    if how is TaskEnd.RETRY and attempts >= task.terms.attempts_max:
        how = TaskEnd.FAIL
    state = states.move("task", task.state, how)
    done = how is TaskEnd.COMPLETE
    deferred_from = task.deferred_from
    if commit.deferred and deferred_from is None:
        deferred_from = commit.ready_at
    return replace(
        task,
        state=state,
        attempts=attempts,
        crashes=task.crashes if how is TaskEnd.RELEASE and not commit.deferred else 0,
        deferrals=task.deferrals + commit.deferred,
        deferred_from=deferred_from,
        ready_at=commit.ready_at or task.ready_at,
        result=commit.text if done else "",
        reason="" if done else commit.text,
        usage=task.usage if how is TaskEnd.RELEASE else commit.usage,
        ended_at=commit.at if state in ENDED else None,
    )


def verb_after_crash(task: Task, *, call_left: bool) -> tuple[str, str]:
    """How a task goes on that was running when the process died, and why.

    `call_left` is set if a call that must not be repeated has no result: then a person is asked, whatever its
    terms say. So it is after three deaths in a row without a step done between them.
    """
    if call_left:
        return "park", CALL_LEFT
    if task.terms.on_crash is OnCrash.FAIL:
        return "fail", CRASHED
    if task.terms.on_crash is OnCrash.REVIEW or task.crashes + 1 >= CRASHES_MAX:
        return "park", CRASHED
    return "expire", CRASHED


@frozen
class CancelTask(Commit[bool]):
    """End a task that has not ended, by somebody's word; what waits for it fails. False when it had ended.

    A run that is under way is refused from then on, whatever it still does.
    """

    task_id: int
    at: int
    reason: str


@frozen
class RunTask(Commit[bool]):
    """Make a pending task due at once; False when it is not pending."""

    task_id: int
    at: int


@frozen
class DecideTask(Commit[bool]):
    """A person's word on a task that waits for review; False when it does not.

    Approved it goes on where it stopped: the call without a result is made again, or came to `result` where the person
    says so. Refused it fails with the `reason`, and so does what waits for it.
    """

    task_id: int
    at: int
    approved: bool
    reason: str = ""
    result: str | None = None


@frozen
class ExpireTasks(Commit[int]):
    """Fail the tasks that waited for a person longer than they may; returns how many."""

    at: int


@frozen
class TaskWork:
    """A completed task whose result is not in memory yet, the messages that it was made of, and what it asked for."""

    task: Task
    messages: tuple[int, ...] = ()
    staged_requests: StagedRequests | None = None


@frozen
class ResultsKept(Commit[int]):
    """Clear the work of tasks whose results are in memory, with what they asked for done; returns how many."""

    task_ids: tuple[int, ...]


def happened(what: str, task_id: int, **more: Json) -> event.Fact:
    """The journal event of a task, in ids and numbers: that it was created, started, ended or parked."""
    return event.Fact(f"task.{what}", str(task_id), {"task": task_id, **more})


def made_of(effect: MakeTask, lane: message.Lane | None, turn_id: int | None, depth: int) -> NewTask:
    """The task that a turn makes, or a branch that the turn began: `depth` says how deep.

    The owner receives the result of an approved call; it makes no work, so that no depth is too much for it.
    """
    task = NewTask(effect.id, effect.text, effect.key, effect.kind, lane, turn_id, depth, WorkTerms(tools=effect.tools))
    task = replace(task, outside=effect.outside)
    if effect.kind is TaskKind.CALL:
        task = replace(task, depth=min(depth, DEPTH_MAX), terms=WorkTerms(notify=Notify.ALWAYS))
    review, expires_at, notice = effect.review, effect.expires_at, effect.notice
    return replace(task, after=effect.after, review=review, expires_at=expires_at, notice=notice)
