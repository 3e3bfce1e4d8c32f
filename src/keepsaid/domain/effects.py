"""Effects: what the tools of a turn leave behind, committed with it or not at all (design: section 2, commit 4).

They follow from what is recorded of the turn, so that a turn told twice leaves the same.
"""

from __future__ import annotations

from keepsaid.domain.prompt import Json
from keepsaid.domain.receipt import JudgeMemory
from keepsaid.domain.reply import ReplyDraft
from keepsaid.domain.schedule import NewSchedule
from keepsaid.domain.slot import EXPIRY_MS, Question
from keepsaid.domain.staged import StageMemory
from keepsaid.domain.work import TaskKind
from keepsaid.values import frozen


@frozen
class OpenSlot:
    """Ask something of a person of the turn's lane; what he was asked there before is cleared."""

    person: str
    question: Question
    lasts_ms: int = EXPIRY_MS


@frozen
class FillSlot:
    """A message answered an open slot; nothing happens when it is not open any more."""

    slot_id: int
    value: str
    message_id: int


@frozen
class ClearSlot:
    """An open slot ends without an answer, by the verb `clear` or `expire`; nothing happens when it is not open."""

    slot_id: int
    reason: str
    verb: str = "clear"


@frozen
class SetPersonality:
    """Speak so from now on, where `scope` says; an empty `text` takes back what was set there. `by` is a person."""

    scope: str
    text: str
    by: str


@frozen
class Measured:
    """A model reported how many tokens a prompt had that was estimated to have so many."""

    model: str
    estimated: int
    reported: int


@frozen
class MakeTask:
    """Have a worker do something, or a branch think, under an id that was told; `after` are tasks that come first.

    With a `review` it waits for the owner, and that says why; until `expires_at` (milliseconds UTC) it may be approved.
    The `notice` tells the owner, where he last wrote in a direct chat.
    """

    id: int
    text: str
    key: str = ""
    after: tuple[int, ...] = ()
    outside: bool = True
    kind: TaskKind = TaskKind.WORKER
    review: str = ""
    expires_at: int | None = None
    notice: ReplyDraft | None = None

    @property
    def as_json(self) -> Json:
        """A call that waits for the owner, as the step of the refused call stores it."""
        assert self.notice is not None, "whoever is asked for approval gets a notice"
        notice: Json = [self.notice.id, self.notice.text]
        return [self.id, self.key, self.text, self.review, self.expires_at, notice]


def call_task_in(stored: Json) -> MakeTask | None:
    """The call that a step stored as waiting for the owner; None where it stored none."""
    if not isinstance(stored, list) or len(stored) != 6:
        return None
    number, key, text, review, expires_at, said = stored
    if not isinstance(number, int) or not isinstance(expires_at, int) or not isinstance(said, list):
        return None
    notice = ReplyDraft(int(str(said[0])), str(said[1]), notice=True)
    return MakeTask(number, str(text), str(key), (), True, TaskKind.CALL, str(review), expires_at, notice)


@frozen
class StopTask:
    """End a task; nothing happens when it has ended."""

    task_id: int
    reason: str


@frozen
class JudgeTask:
    """A person's word on a task that waits for review; nothing happens when it does not."""

    task_id: int
    approved: bool
    reason: str


@frozen
class KeepTime:
    """Add a schedule that comes first at `next_at`; nothing happens where its id or name is taken."""

    new: NewSchedule
    next_at: int


@frozen
class EndSchedule:
    """Cancel a schedule; nothing happens where it has ended."""

    schedule_id: int


@frozen
class RelayTask:
    """The lane of a task was shown what it came to; nothing happens where it was before."""

    task_id: int


OfTask = MakeTask | StopTask | JudgeTask | RelayTask
"""What concerns tasks, and wakes who does them."""

OfTime = KeepTime | EndSchedule
"""What concerns schedules."""

OfBranch = MakeTask | StageMemory
"""What a branch may leave behind, in the commit that ends it."""

Effect = OpenSlot | FillSlot | ClearSlot | SetPersonality | JudgeMemory | Measured | StageMemory | OfTask | OfTime
"""What a turn may leave behind beside its transcript and its reply."""
