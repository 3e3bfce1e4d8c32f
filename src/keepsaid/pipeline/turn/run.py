"""Runs a turn: model and tool steps until the model answers; messages that arrive meanwhile are added between steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from keepsaid.domain import busy, commits, effects, receipt, turn
from keepsaid.domain.batch import Window
from keepsaid.domain.files import Picture
from keepsaid.domain.ids import read
from keepsaid.domain.message import StoredMessage, Trust, Trusted
from keepsaid.domain.prompt import Json, Prompt, Record, Role, ToolCall, answered_calls
from keepsaid.domain.turn import CUT, ModelAnswer, ResumableTurn, Step, StepKind, ToolClass, Usage
from keepsaid.errors import KeepsaidError, LeaseLost, ModelMalformed, ToolError
from keepsaid.pipeline.tools import attaching, reactions
from keepsaid.pipeline.tools.conversation import silence_in, without_silence
from keepsaid.pipeline.turn import authorization
from keepsaid.pipeline.turn.made_files import FileKeeper, files_in
from keepsaid.ports import runtime, store_views
from keepsaid.ports.model import Delta, Model, ModelRequest, Tool
from keepsaid.ports.store_views import Operations
from keepsaid.ports.telemetry import CALL_ID, STEP_CALLS
from keepsaid.text.normal import cut, digest, normalise, normalise_json
from keepsaid.values import frozen


@frozen
class JoiningMessage:
    """A message that joins a running turn: as it stands in the prompt, what came with it, and the pictures of that."""

    message: StoredMessage
    shown: str
    attached: str = ""
    pictures: tuple[Picture, ...] = ()


@dataclass(slots=True, eq=False)
class SteeringInbox:
    """Batches that are added to one turn; without a `window` only those that its recorded steps were shown.

    `claimed` is the turn's batch with all that has joined it, `prepare` makes a message ready for the prompt.
    """

    operations: store_views.Operations
    claimed: turn.ClaimedBatch
    window: Window | None
    prepare: Callable[[StoredMessage], Awaitable[JoiningMessage]]
    _shown: dict[str, str] = field(default_factory=dict, init=False)

    async def before(self, n: int, *, replayed: bool) -> list[Record]:
        """What joins before step `n`: one that is replayed is shown again what it was shown, and no more."""
        if not replayed and self.window is not None:
            batch = self.claimed.batch
            steer = busy.Steer(self.claimed.turn_id, batch.id, batch.fence, n, self.window)
            fresh = await self.operations.apply(steer)
            self.claimed = replace(self.claimed, steered=(*self.claimed.steered, *fresh))
        return [record for one in self.claimed.steered if one.n == n for record in await self._records(one)]

    async def _records(self, steered: turn.Steered) -> list[Record]:
        records = []
        for message in steered.messages:
            ready = await self.prepare(message)
            ref, origin = f"message:{message.id}", message.inbound.origin
            self._shown[ref] = ready.shown
            said = Record(Role.USER, ready.message.text, speaker=origin.name or origin.sender, ref=ref)
            records.append(replace(said, attached=ready.attached, trust=origin.trust, pictures=ready.pictures))
        return records

    def sent(self, exchange: tuple[Record, ...]) -> tuple[Record, ...]:
        """The exchange as it is sent."""
        return tuple(
            replace(one, text=self._shown.get(one.ref, one.text), attached="") if one.ref else one for one in exchange
        )


class NeedsReview(KeepsaidError):
    """An unsafe call started and nobody knows whether it took effect."""

    code = "KS-REVIEW"
    safe = "The message is kept; nothing is repeated without your word."
    hint = "keepsaid inbox ls --state review"


@frozen
class OutsideCall:
    """An outside call: what it is, and whether it may be made again when its result is not known.

    `settles` says that no later step will use its output.
    """

    kind: StepKind
    subject: str
    input_hash: bytes
    repeatable: bool = True
    settles: Callable[[Json], bool] = lambda _: False


Begun = Callable[[], Awaitable[None]]
"""Done when the start of a call is on disk; raises what kept it from there."""


def _retrieve_exception(start: asyncio.Task[None]) -> None:
    """Retrieve the error of a step start that is refused because its turn was interrupted meanwhile."""
    if not start.cancelled():
        start.exception()


class StepLog:
    """The steps of one turn, or of one task, in order.

    `next` is the number of the next step. `ending` is the end of the call that settles the turn, which the commit of
    the turn stores. A trace that is not on record yet is written with the first call that is begun.
    """

    def __init__(self, operations: Operations, clock: runtime.Clock, held: ResumableTurn, trace: Json = None) -> None:
        self._operations = operations
        self._clock = clock
        self._held = held
        self._trace = trace if trace != held.trace else None
        self._known = {step.n: step for step in held.steps}
        self.next = 0
        self.usage = Usage()
        self.ending: commits.StepEnd | None = None

    @property
    def replaying(self) -> bool:
        """Whether the result of the next step is on record."""
        known = self._known.get(self.next)
        return known is not None and known.state == "finished"

    async def once(self, call: OutsideCall, make: Callable[[Begun], Awaitable[tuple[Json, Usage]]]) -> Json:
        """The recorded result of the next step, or a new one: started on disk before the call, finished after.

        `make` gets the call ready while its start is written, and waits for that before anything happens outside.
        The end of a call that settles the turn is kept for the turn's commit: all of it is on disk, or none.
        Raises NeedsReview for a call that must not be repeated, LeaseLost when another owner has the batch.
        """
        n, self.next = self.next, self.next + 1
        known = self._known.get(n)
        if known is not None and known.state == "finished":
            self.usage += known.usage
            return known.output
        if known is not None and not (call.repeatable and known.repeatable):
            raise NeedsReview(f"the call of {call.subject} started and has no result")
        output, usage = await self._made(n, call, make)
        self.usage += usage
        end = commits.StepEnd(self._held.turn_id, self._held.fence, n, output, usage, self._clock.now_ms())
        if call.settles(output):
            self.ending = end
        elif not await self._operations.apply(end):
            raise LeaseLost("the result of a step was refused")
        return output

    async def _made(
        self, n: int, call: OutsideCall, make: Callable[[Begun], Awaitable[tuple[Json, Usage]]]
    ) -> tuple[Json, Usage]:
        starting = asyncio.ensure_future(self._start(n, call))
        starting.add_done_callback(_retrieve_exception)
        # the writer has it before the loop is busy with the request
        await asyncio.sleep(0)
        try:
            made = await make(lambda: asyncio.shield(starting))
            await starting
        except KeepsaidError:
            if starting.done():
                # the loss of the batch matters more than the result of the call
                starting.result()
            raise
        finally:
            starting.cancel()
        runtime.point(f"{call.kind}.after")
        return made

    async def _start(self, n: int, call: OutsideCall) -> None:
        step = Step(n, call.kind, call.subject, call.input_hash, repeatable=call.repeatable)
        commit = commits.StepStart(self._held.turn_id, self._held.fence, step, self._clock.now_ms(), self._trace)
        if not await self._operations.apply(commit):
            raise LeaseLost("the step was refused")
        self._trace = None
        runtime.point(f"{call.kind}.before")


_READ_FOR_EACH = 4
"""Characters that may become one when a text is normalised."""

REPEATABLE = (ToolClass.PURE, ToolClass.IDEMPOTENT)
"""Classes of tools whose calls are repeated when their result is unknown."""


def ignore_tool(_name: str) -> None:
    """Notify nobody of the tool that runs."""


@frozen
class TurnLimits:
    """How much one turn may do: steps, tokens of an answer, seconds a call, characters of any tool's output."""

    steps_max: int = 20
    tokens_max: int = 4_096
    call_s_max: float = 120.0
    tool_chars_max: int = 20_000
    tokens_in_max: int = 200_000


@frozen
class TurnDeps:
    """What a turn works with: `inbox` has what joins it, where anything may; `offload` runs what reads long texts.

    `using` gets the name of each tool as it begins, and an empty one when the tools of a step have returned. An empty
    answer ends a turn that `may_be_silent`; in every other it is an error. `files` keeps what tools make.
    """

    model: Model
    prompt: Prompt
    tools: Sequence[Tool]
    limits: TurnLimits
    delta: Delta
    inbox: SteeringInbox | None
    gate: authorization.CallGate
    offload: runtime.Offload = runtime.inline
    using: Callable[[str], None] = ignore_tool
    may_be_silent: bool = False
    files: FileKeeper | None = None


NO_ANSWER = "the model gave no answer"


class Ran(NamedTuple):
    """What a turn came to: its reply, the records to store, the model's name, and the calls that wait for the owner.

    `silent` is why there is no reply, "" if there is one.
    """

    text: str
    records: tuple[Record, ...]
    model: str
    waiting: tuple[effects.MakeTask, ...] = ()
    silent: str = ""


async def run_turn(turn: TurnDeps, steps: StepLog) -> Ran:
    """Make steps until there is an answer; raises what the model or a lost lease raises.

    The calls of one answer are judged by what the model had been shown when it gave it.
    """
    exchange: list[Record] = []
    waiting: list[effects.MakeTask] = []
    for n in range(turn.limits.steps_max):
        if n and turn.inbox is not None:
            joined = await turn.inbox.before(steps.next, replayed=steps.replaying)
            turn.gate.see(joined)
            exchange += joined
        answer = await _ask(turn, steps, tuple(exchange))
        if not answer.calls and not answer.text.strip():
            why = "" if attaching.is_attached_in(exchange) else reactions.reason_in(exchange) or NO_ANSWER
            return Ran("", tuple(exchange), answer.model, tuple(waiting), why)
        exchange.append(Record(Role.ASSISTANT, answer.text, answer.calls, trust=turn.gate.taint.trust))
        if not answer.calls:
            return Ran(answer.text, tuple(exchange), answer.model, tuple(waiting))
        STEP_CALLS.set(answer.calls)
        used = [await _use(turn, steps, call) for call in answer.calls]
        turn.using("")
        results = [record for record, _ in used]
        waiting += [task for _, task in used if task is not None]
        turn.gate.see(results)
        exchange += results
        if silent := silence_in(exchange[-len(results) - 1 :]):
            return Ran("", tuple(without_silence(exchange)), answer.model, tuple(waiting), silent)
        if steps.usage.tokens_in > turn.limits.tokens_in_max:
            raise ModelMalformed(f"the turn has read {steps.usage.tokens_in:,} tokens without coming to an answer")
    raise ModelMalformed(f"the model made {turn.limits.steps_max} steps without coming to an answer")


async def _ask(turn: TurnDeps, steps: StepLog, exchange: tuple[Record, ...]) -> ModelAnswer:
    exchange = turn.inbox.sent(exchange) if turn.inbox is not None else exchange
    request = ModelRequest(turn.prompt, exchange, turn.tools, turn.limits.tokens_max, turn.limits.call_s_max)
    chars = turn.prompt.chars + sum(len(record.text) for record in exchange)
    sent = await turn.offload(chars, partial(_hashed, turn.prompt, exchange))
    call = OutsideCall(StepKind.MODEL, turn.model.name, sent, settles=lambda output: not _read(output).calls)

    async def make(begun: Begun) -> tuple[Json, Usage]:
        answer = await _readable(turn, replace(request, begun=begun))
        calls: list[Json] = [
            [normalise(call.id), normalise(call.name), normalise_json(call.arguments)] for call in answer.calls
        ]
        output: dict[str, Json] = {"text": normalise(answer.text), "calls": calls, "model": answer.model}
        return {**output, CUT: True} if answer.is_cut else output, answer.usage

    return _read(await steps.once(call, make))


def _hashed(prompt: Prompt, exchange: tuple[Record, ...]) -> bytes:
    """A hash of all that is sent in a call, which tells a retry whether it sends the same."""
    return digest(prompt.system, repr(prompt.parts), repr(exchange))


async def _readable(turn: TurnDeps, request: ModelRequest) -> ModelAnswer:
    """Return an answer; the model is asked once more after one that is malformed, or empty where that is an error."""
    for last in (False, True):
        try:
            answer = await turn.model.answer(request, lambda piece: turn.delta(normalise(piece)))
        except ModelMalformed:
            if last:
                raise
            continue
        if turn.may_be_silent or answer.text.strip() or answer.calls:
            return answer
    raise ModelMalformed("the model answered with nothing, twice")


def _read(output: Json) -> ModelAnswer:
    assert isinstance(output, dict), "a model step records an object"
    calls = output["calls"]
    assert isinstance(calls, list), "and its calls as a list"
    read = tuple(ToolCall(*map(str, call)) for call in calls if isinstance(call, list))
    return ModelAnswer(str(output["text"]), read, model=str(output["model"]))


async def _use(turn: TurnDeps, steps: StepLog, call: ToolCall) -> tuple[Record, effects.MakeTask | None]:
    """The result of a call for the model: the tool's output, what is wrong with the call, or that it was refused."""
    if tool := next((tool for tool in turn.tools if tool.name == call.name), None):
        turn.using(tool.name)
    output = await _result(turn, steps, tool, call)
    if (refused := authorization.refusal_in(output)) is not None:
        told = Record(Role.TOOL, refused.text, call_id=call.id, speaker=call.name, trust=turn.gate.taint.trust)
        return told, refused.task
    said = _said(output, tool)
    return Record(Role.TOOL, said, call_id=call.id, speaker=call.name, trust=said.trust), None


async def _result(turn: TurnDeps, steps: StepLog, tool: Tool | None, call: ToolCall) -> Json:
    """The output of a call: a step whatever its result, so that a retry counts the same."""
    refusal = None if steps.replaying or tool is None else await turn.gate.refusal(tool, call)
    chars_max = min(turn.limits.tool_chars_max, tool.chars_max if tool else turn.limits.tool_chars_max)
    n = steps.next

    async def make(begun: Begun) -> tuple[Json, Usage]:
        await begun()
        if refusal is not None:
            return authorization.as_json(refusal), Usage()
        CALL_ID.set(call.id)
        said = await call_tool(tool, call.arguments) if tool else f"error: there is no tool {call.name!r}"
        beginning = said[: _READ_FOR_EACH * chars_max + 1]  # longer than `chars_max`, too, where the output is
        fitting = cut(await turn.offload(len(said), partial(normalise, beginning)), chars_max)
        fitting += await files_in(turn.files, n, said)
        return _output(fitting, said, tool, turn.gate.taint.trust), Usage()

    repeatable = refusal is not None or (tool is not None and tool.kind in REPEATABLE)
    subject = normalise(call.name)
    return await steps.once(OutsideCall(StepKind.TOOL, subject, digest(subject, call.arguments), repeatable), make)


def _output(text: str, said: str, tool: Tool | None, now: Trust) -> Json:
    """What a step stores of an output: its text, with its trust where that is not what the tool declares.

    Where there is no tool, the text names what the model asked for, and has the trust of the turn (`now`).
    """
    trust = now if tool is None else said.trust if isinstance(said, Trusted) else tool.output
    return text if tool is not None and trust is tool.output else {"text": text, "trust": str(trust)}


def _said(output: Json, tool: Tool | None) -> Trusted:
    """The text of a step's output, with its trust; that of a tool that is gone comes from outside."""
    if isinstance(output, dict):
        return Trusted(str(output.get("text", "")), Trust(str(output.get("trust", Trust.EXTERNAL))))
    return Trusted(str(output), Trust.EXTERNAL if tool is None else tool.output)


async def call_tool(tool: Tool, text: str) -> str:
    """Make a call: what the tool returns, or what went wrong, in words for the model."""
    try:
        arguments = json.loads(text or "{}")
    except (ValueError, RecursionError):
        return "error: the arguments are not valid JSON"
    if not isinstance(arguments, dict):
        return "error: the arguments must be an object"
    try:
        async with asyncio.timeout(tool.limit_s):
            return await tool.run(arguments)
    except ToolError as error:
        return f"error: {error.what}"
    except TimeoutError:
        return f"error: {tool.name} took longer than {tool.limit_s:g} s"
    except Exception as error:  # noqa: BLE001  # guard: tool call - a broken tool is the model's to work around
        return f"error: {tool.name} failed ({type(error).__name__})"


def opened_in(records: Sequence[Record]) -> tuple[int, ...]:
    """The memories that a turn opened, each once, in order."""
    opened = (one.text for one in answered_calls(records, receipt.MEMORY_OPEN) if one.text.startswith("mem_"))
    numbers = (read("memory", text.split(maxsplit=1)[0]) for text in opened)
    return tuple(dict.fromkeys(number for number in numbers if number is not None))
