"""Turns and steps: one answer to one batch, what it is about (focus), and each model or tool call inside it."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from keepsaid.domain import command, personality, prompt, slot
from keepsaid.domain.batch import StoredBatch
from keepsaid.domain.effects import Effect
from keepsaid.domain.files import StoredFile
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json
from keepsaid.text.tokens import Calibration
from keepsaid.values import frozen

SILENT = "silent: "
"""How the reason of a committed turn begins that ended without a reply."""

NO_MODEL = "none"
"""The model of turns that none answered; its text is not an answer, and not remembered."""


CUT = "cut"
"""The field of a model step's output that is true where the answer ended at the limit of its tokens."""


class StepKind(StrEnum):
    """What a step calls."""

    MODEL = "model"
    TOOL = "tool"


class ToolClass(StrEnum):
    """What may be done with a tool call that started and has no result.

    `pure` and `idempotent` calls are made again. A `checkable` or `unsafe` one is never repeated: its batch is parked
    for review, where a person decides; what a `checkable` one came to can be looked up.
    """

    PURE = "pure"
    IDEMPOTENT = "idempotent"
    CHECKABLE = "checkable"
    UNSAFE = "unsafe"


@frozen
class Usage:
    """Tokens and cost of model calls; cost in millionths of a US dollar, None when no price is known."""

    tokens_in: int = 0
    tokens_out: int = 0
    cost_micros: int | None = None

    def __add__(self, other: Usage) -> Usage:
        """The sum; a cost nobody knows does not hide one that is known."""
        costs = [cost for cost in (self.cost_micros, other.cost_micros) if cost is not None]
        tokens_in, tokens_out = self.tokens_in + other.tokens_in, self.tokens_out + other.tokens_out
        return Usage(tokens_in, tokens_out, sum(costs) if costs else None)


@frozen
class Step:
    """A recorded outside call; `output` is None until it is finished. `subject` is a model or tool name.

    One that is not `repeatable` is never made again, whether or not its result is known.
    """

    n: int
    kind: StepKind
    subject: str
    input_hash: bytes
    state: str = "started"
    output: Json = None
    usage: Usage = Usage()
    repeatable: bool = True


@frozen
class Steered:
    """A batch whose messages the turn of an earlier one was shown, from its step `n` on."""

    batch_id: int
    n: int
    messages: tuple[StoredMessage, ...]


@frozen
class ModelAnswer:
    """What a model said in one step: text, or calls it wants made, or both; `is_cut` where it ended at its limit."""

    text: str
    calls: tuple[prompt.ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    is_cut: bool = False


@frozen
class Lease:
    """The right to work on a batch, under its fence, in a turn; `continued` says that an earlier attempt began that.

    `alone` says that the batch was in flight at two crashes in a row and runs with nothing beside it.
    """

    batch: StoredBatch
    turn_id: int
    alone: bool = False
    continued: bool = False


@frozen
class ResumableTurn:
    """What is recorded of a turn that somebody may go on with, under its fence."""

    turn_id: int
    fence: int
    steps: tuple[Step, ...] = ()
    trace: Json = None


class FocusKind(StrEnum):
    """How it was found: `reply` target, last `answer` of ours in the lane, pending `slot`, or `none`."""

    REPLY = "reply"
    ANSWER = "answer"
    SLOT = "slot"
    NONE = "none"


@frozen
class Focus:
    """What a turn's newest message is about, and why we think so.

    `ref` names the message or reply, such as `message:17` or `reply:9`, "" when it is not known here. `text` is
    what it said, `speaker` who: a name, or "" for ourselves.
    """

    kind: FocusKind = FocusKind.NONE
    ref: str = ""
    text: str = ""
    speaker: str = ""
    reason: str = ""


@frozen
class ReplyTarget:
    """What a reply target said: `ref` as in `Focus`, `speaker` a name, or "" for ourselves."""

    provider_id: str
    ref: str
    text: str
    speaker: str = ""
    trust: Trust = field(default=Trust.EXTERNAL, compare=False)


@frozen
class TurnInputs:
    """Stored state that a turn starts with: the open questions of its lane, and its known reply targets.

    `personalities` are those set for its lane, its people and everybody, `calibrations`
    how models count tokens. `flagged` are the memories that somebody marked as wrong for turns of its lane. `incognito`
    says that its messages were said in incognito. `chat_of` is the person in whose direct chat the program began the
    turn; "" where others listen. `edits` has the ids of edited messages, and what each of them replaces.
    `conversation_name` is the title of the chat, in words from outside.
    """

    slots: tuple[slot.Slot, ...] = ()
    said: tuple[ReplyTarget, ...] = ()
    personalities: tuple[personality.Personality, ...] = ()
    calibrations: tuple[Calibration, ...] = ()
    flagged: frozenset[int] = frozenset()
    incognito: bool = False
    chat_of: str = ""
    edits: tuple[tuple[int, ReplyTarget], ...] = ()
    conversation_name: str = ""

    def calibration(self, model: str) -> Calibration:
        """How a model counts tokens, as far as it is known."""
        return next((one for one in self.calibrations if one.model == model), Calibration(model))

    def target(self, provider_id: str) -> ReplyTarget | None:
        """What was said under a provider's id."""
        return next((one for one in self.said if one.provider_id == provider_id), None)

    def replaced(self, message_id: int) -> ReplyTarget | None:
        """What an edited message replaces, if it is known and may be shown."""
        return next((target for edit_id, target in self.edits if edit_id == message_id and target.text), None)


@frozen
class ClaimedBatch:
    """A batch leased to this runtime, with its messages, its open turn and the steps already recorded.

    `alone` says that it was in flight at two crashes in a row and runs with nothing beside it. `trace`
    is what an earlier attempt recorded of its context, `steered` what its recorded steps were shown beside it.
    Messages received before `late_before` (milliseconds UTC) are answered late, and marked. `around` is what is
    asked in the lane, and what the messages refer to; `files` came with its messages. `repeats` are records that
    replace those of messages, by their ids: None for one that is left out.
    """

    batch: StoredBatch
    turn_id: int
    messages: tuple[StoredMessage, ...]
    steps: tuple[Step, ...] = ()
    alone: bool = False
    trace: Json = None
    steered: tuple[Steered, ...] = ()
    late_before: int | None = None
    around: TurnInputs = TurnInputs()
    files: tuple[StoredFile, ...] = ()
    repeats: tuple[tuple[int, prompt.Record | None], ...] = ()

    @property
    def held(self) -> ResumableTurn:
        """What is recorded of its turn."""
        return ResumableTurn(self.turn_id, self.batch.fence, self.steps, self.trace)

    @property
    def chars(self) -> int:
        """How many characters its messages have."""
        return sum(len(message.text) for message in self.all_messages)

    @property
    def all_messages(self) -> tuple[StoredMessage, ...]:
        """Every message this turn answers, in order."""
        return (*self.messages, *(message for one in self.steered for message in one.messages))


@frozen
class Outcome:
    """How a turn ended: its reply, the records it adds to the transcript, and what it cost.

    `chosen` are the memories it was shown, `opened` those that the model asked to see, `effects` what its tools left.
    Messages that were commands (`obeyed`) are not part of the transcript; when one `begins_anew`, the lane's context
    ends before what the turn adds. `attached` says of messages, by id, what came with their words. `silent` is why the
    agent gave no answer, "" if it gave one. Files that its tools attached go with the reply if it `brings_files`: then
    there is one without words, too. `repeats` is that of its batch.
    """

    reply: str
    records: tuple[prompt.Record, ...]
    usage: Usage
    model: str
    chosen: tuple[int, ...] = ()
    effects: tuple[Effect, ...] = ()
    executed: tuple[command.ExecutedCommand, ...] = ()
    begins_anew: bool = False
    attached: tuple[tuple[int, str], ...] = ()
    opened: tuple[int, ...] = ()
    silent: str = ""
    brings_files: bool = False
    repeats: tuple[tuple[int, prompt.Record | None], ...] = ()


@frozen
class Recent:
    """The tail of a lane's transcript: records, and beside each the message or reply it shows, or "".

    `left_out` older records were read and did not fit the prompt. `standing` are the memories that blocks of earlier
    turns still show, `lately` those that are not to be given again yet.
    """

    records: tuple[prompt.Record, ...] = ()
    refs: tuple[str, ...] = ()
    left_out: int = 0
    standing: frozenset[int] = frozenset()
    lately: frozenset[int] = frozenset()

    @property
    def shown(self) -> frozenset[str]:
        """The messages and replies it shows, such as `message:17` and `reply:9`."""
        return frozenset(filter(None, self.refs))
