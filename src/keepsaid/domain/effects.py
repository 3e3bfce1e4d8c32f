"""Effects of a turn's tools, committed with the turn or not at all (design: 2); requests of the memory tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from enum import StrEnum

from keepsaid.domain import ids, message, reply, route, schedule, slot
from keepsaid.domain.memory import IMPORTANCE, Kind
from keepsaid.domain.prompt import Json, Record, answered_calls
from keepsaid.domain.receipt import JudgeMemory
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

TEXT_CHARS_MAX, NAME_CHARS_MAX = 4_000, 200


class MemoryAction(StrEnum):
    """Action that a turn asks of memory, by the name of the tool that asks for it."""

    SAVE = "memory_save"
    CORRECT = "memory_correct"
    CONFIRM = "memory_confirm"


@frozen
class StageMemory:
    """A deed of a turn, the `n`-th from 0; times are milliseconds UTC, `memory_id` is whom it is done to.

    `trust` is that of the turn when it asked for this; None where none is stored.
    """

    n: int
    deed: MemoryAction
    memory_id: int = 0
    kind: Kind = Kind.FACT
    text: str = ""
    subject: str = ""
    attribute: str = ""
    value: str = ""
    valid_from: int | None = None
    valid_to: int | None = None
    trust: message.Trust | None = None


@frozen
class StagedRequests:
    """Memory requests that a turn or a branch staged: `by` names which, such as `turn:5`.

    `turn_id` is the turn behind it; `messages` are those that it answered. `external` says that text of
    outsiders was shown.
    """

    by: str
    turn_id: int
    messages: tuple[message.StoredMessage, ...]
    requests: tuple[StageMemory, ...]
    external: bool = False


def parse_staged_request(name: str, arguments: Mapping[str, Json], n: int = 0) -> StageMemory:
    """Return what a call asks memory to do; raises ValueError that says what is wrong with the call."""
    deed = MemoryAction(name)
    memory_id = 0 if deed is MemoryAction.SAVE else _memory(arguments)
    if deed is MemoryAction.CONFIRM:
        return StageMemory(n, deed, memory_id)
    said = StageMemory(
        n,
        deed,
        memory_id,
        kind=_kind(arguments),
        text=_text(arguments, "text", TEXT_CHARS_MAX, needed=True),
        subject=_text(arguments, "subject", NAME_CHARS_MAX),
        attribute=_text(arguments, "attribute", NAME_CHARS_MAX),
        value=_text(arguments, "value", NAME_CHARS_MAX),
        valid_from=_time(arguments, "valid_from"),
        valid_to=_time(arguments, "valid_to"),
    )
    if deed is MemoryAction.SAVE and bool(said.attribute) != bool(said.value):
        raise ValueError("attribute and value belong together: the city, and which one")
    if said.attribute and not said.subject:
        raise ValueError("an attribute needs a subject: whose it is")
    if said.valid_from is not None and said.valid_to is not None and said.valid_from >= said.valid_to:
        raise ValueError("valid_to must be later than valid_from")
    return said


def staged_in(records: Sequence[Record]) -> tuple[StageMemory, ...]:
    """What a turn's records ask for: every call that was answered and not refused, in order."""
    return tuple(
        replace(parse_staged_request(one.call.name, one.arguments, n), trust=one.trust)
        for n, one in enumerate(answered_calls(records, *MemoryAction))
    )


def written(staged: StageMemory) -> str:
    """A deed as JSON."""
    return json.dumps(asdict(staged), ensure_ascii=False)


def read_back(text: str) -> StageMemory:
    """The deed of a JSON that `written` made."""
    told = json.loads(text)
    given = {one.name: told.get(one.name) for one in fields(StageMemory)}
    trust = message.Trust(given["trust"]) if given["trust"] else None
    return StageMemory(**{**given, "deed": MemoryAction(told["deed"]), "kind": Kind(told["kind"]), "trust": trust})


def _memory(arguments: Mapping[str, Json]) -> int:
    given = arguments.get("id")
    number = ids.read("memory", given) if isinstance(given, str) else None
    if number is None:
        raise ValueError("id must name a memory as memory_search does: mem_ and 13 letters or digits")
    return number


def _kind(arguments: Mapping[str, Json]) -> Kind:
    if (given := arguments.get("kind", Kind.FACT)) not in tuple(IMPORTANCE):
        raise ValueError(f"kind must be one of {', '.join(IMPORTANCE)}")
    return Kind(str(given))


def _text(arguments: Mapping[str, Json], name: str, most: int, *, needed: bool = False) -> str:
    given = arguments.get(name, "")
    if not isinstance(given, str) or len(given) > most or (needed and not given.strip()):
        raise ValueError(f"{name} must be a text of at most {most:,} characters{' that is not empty' * needed}")
    return normalise(given).strip()


def _time(arguments: Mapping[str, Json], name: str) -> int | None:
    given = arguments.get(name)
    if given is None or given == "":
        return None
    try:
        return ids.moment(str(given))
    except ValueError as error:
        raise ValueError(f"{name} must be {error}") from None


@frozen
class OpenSlot:
    """Ask something of a person of the turn's lane; what he was asked there before is cleared."""

    person: str
    question: slot.Question
    lasts_ms: int = slot.EXPIRY_MS


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
class SetPaused:
    """Pause the conversation of the turn's lane, so that its messages wait, or resume it."""

    paused: bool


@frozen
class SetIncognito:
    """Begin or end incognito in the turn's lane: nothing that is said there meanwhile reaches memory."""

    on: bool


@frozen
class Measured:
    """A model reported the tokens of a prompt, to compare with the estimate."""

    model: str
    estimated: int
    reported: int


@frozen
class MakeTask:
    """Have a worker do something, or a branch think, under an id that the model has; `after` are tasks that come first.

    `tools` are those that it may use, None for all that workers have. With a `review` it waits for the owner, and that
    says why; until `expires_at` (milliseconds UTC) it may be approved. The `notice` tells the owner, where he last
    wrote in a direct chat.
    """

    id: int
    text: str
    key: str = ""
    after: tuple[int, ...] = ()
    outside: bool = True
    kind: route.TaskKind = route.TaskKind.WORKER
    review: str = ""
    expires_at: int | None = None
    notice: reply.ReplyDraft | None = None
    tools: tuple[str, ...] | None = None

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
    notice = reply.ReplyDraft(int(str(said[0])), str(said[1]), notice=True)
    return MakeTask(number, str(text), str(key), (), True, route.TaskKind.CALL, str(review), expires_at, notice)


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

    new: schedule.NewSchedule
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

OfLane = OpenSlot | FillSlot | ClearSlot | SetPersonality | SetPaused | SetIncognito
"""What concerns the turn's lane, its conversation or its people."""

Effect = OfLane | JudgeMemory | Measured | StageMemory | OfTask | OfTime
"""What a turn may leave behind beside its transcript and its reply."""
