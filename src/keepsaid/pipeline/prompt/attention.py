"""Resolves the focus of a turn (seed 003), and writes the headings and speaker labels that nobody else can write."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from keepsaid.domain.effects import ClearSlot, Effect, FillSlot
from keepsaid.domain.ids import show
from keepsaid.domain.message import EDITED as EDIT
from keepsaid.domain.message import StoredMessage
from keepsaid.domain.prompt import Json, Record, Role
from keepsaid.domain.quotation import quote_of
from keepsaid.domain.scene import Attention, Quote, SlotSettlement
from keepsaid.domain.slot import DatedText, OnMismatch, Slot, SlotTerms, read_answer
from keepsaid.domain.turn import ClaimedBatch, Focus, FocusKind, Recent, TurnInputs
from keepsaid.text.normal import heading, opens
from keepsaid.text.references import Guess, MessageText, infer

MEMORY = "[Context from memory"
BULLETIN = "[Bulletin]"
SUMMARY = "[Summary of earlier messages]"
SESSION_SUMMARY = "[Summary of other threads of this conversation]"
STATUS = "[Status]"
QUOTED = "[Quoted"
ANSWERED = "[Question answered"
TOGETHER = "[Messages together"
RECEIVED = "[received"
SENT = "[sent"
EDITED = "[edited"
ATTACHED = "[attached"
FROM = "[From"
POSTED = "[Posted here"

_BLOCKS = (MEMORY, BULLETIN, SUMMARY, SESSION_SUMMARY, STATUS, QUOTED, "[Pinned context]", "[Relevant to")
_LINES = (ANSWERED, TOGETHER, RECEIVED, SENT, EDITED, ATTACHED, FROM, POSTED, "[System:")
_OURS = tuple(label.rstrip("]").casefold() for label in (*_BLOCKS, *_LINES))
_FOLD = "  "


def unforged(text: str) -> str:
    """A text of which no line passes for a label of ours: such lines are folded, as another speaker's would be.

    A line counts by how it looks: hidden characters, quoting, emphasis, case and other brackets make no difference.
    """
    if not opens(text):
        return text
    lines = text.splitlines(keepends=True)
    return "".join(_FOLD + line if opens(line) and heading(line).startswith(_OURS) else line for line in lines)


_CONTINUED = "\n  "


def is_named(claimed: ClaimedBatch) -> bool:
    """Whether texts of this turn begin with their speakers' names: where more than one person may write."""
    return not all(message.inbound.origin.direct for message in claimed.messages)


def render_message(claimed: ClaimedBatch, message: StoredMessage) -> str:
    """A new message as the prompt shows it: after its speaker's name where several speak, below a late marker."""
    said = as_said_by(speaker(message), message.text) if is_named(claimed) else unforged(message.text)
    return late_marker(message, claimed.late_before) + edit_marker(claimed, message) + said


def edit_marker(claimed: ClaimedBatch, message: StoredMessage) -> str:
    """Return the line above an edited message that names the message it replaces; "" for one that is not edited."""
    if message.inbound.content.event != EDIT:
        return ""
    number = first_numbers(claimed).get(message.inbound.marks.provider_id or "", 0)
    if number and claimed.messages[number - 1].id != message.id:
        which = f"message number {number}"
    else:
        which = "the quoted message" if claimed.around.replaced(message.id) else "an earlier message"
    return f"{EDITED}: the text below replaces {which}]\n"


def first_numbers(claimed: ClaimedBatch) -> dict[str, int]:
    """Return the place in the batch of the first message with each provider id: an edit has that of its original."""
    numbers: dict[str, int] = {}
    for number, message in enumerate(claimed.messages, 1):
        if (provider_id := message.inbound.marks.provider_id) is not None:
            numbers.setdefault(provider_id, number)
    return numbers


def speaker(message: StoredMessage) -> str:
    """What the sender is called."""
    return message.inbound.origin.name or message.inbound.origin.sender


def named(record: Record) -> Record:
    """A record as it is sent where several people speak; the name then stands in the text."""
    if record.role is not Role.USER:
        return record
    return Record(Role.USER, with_label(as_said_by(record.speaker, record.text), record.attached))


def folded(record: Record) -> Record:
    """A record as it is sent where one person speaks; he cannot mark his own words as ours either."""
    if record.role is not Role.USER:
        return record
    text = with_label(unforged(record.text), record.attached)
    return record if text is record.text else replace(record, text=text, attached="")


def with_label(text: str, attached: str) -> str:
    """A text, and below it what came with it."""
    if not attached:
        return text
    label = f"{ATTACHED}: {attached}]"
    return f"{text}\n{label}" if text else label


def as_said_by(name: str, text: str) -> str:
    """A text after its speaker's name, on lines none of which can pass for somebody else's.

    A text that begins with that name already, such as GitHub's, does not get it twice.
    """
    name = " ".join(name.replace(":", " ").split())
    return f"{name}: {_CONTINUED.join(text.removeprefix(f'{name}: ').splitlines())}"


def indented(text: str) -> str:
    """A text whose every line but the first is set in, so that none can pass for a heading."""
    return _CONTINUED.join(text.splitlines())


_KEY = "late_before"


def with_lateness(claimed: ClaimedBatch, stale_ms: int, now_ms: int) -> ClaimedBatch:
    """Return the batch with the time before which its messages count as late; `stale_ms` 0 calls none late.

    A turn with finished steps keeps the time those steps were shown: a retry must send the same bytes. For one
    without, the time is computed again, because the runtime may have been down meanwhile.
    """
    before = _cutoff(stale_ms, now_ms)
    if any(step.state == "finished" for step in claimed.steps):
        before = late_before(claimed.trace)
    return replace(claimed, late_before=before)


def late_before(trace: Json) -> int | None:
    """What a trace says of it."""
    before = trace.get(_KEY) if isinstance(trace, dict) else None
    return before if isinstance(before, int) else None


def record_lateness(trace: Json, before: int | None) -> Json:
    """Return the trace with the time before which messages were late, for a retry and for `why`."""
    return {**trace, _KEY: before} if isinstance(trace, dict) else trace


def late_marker(message: StoredMessage, before: int | None) -> str:
    """Return the line above a late message; "" for one in time."""
    if before is None or message.received_at >= before:
        return ""
    return f"{RECEIVED} {_late_note(message.received_at)}, answered late]\n"


def with_late_notice(reply: str, claimed: ClaimedBatch, stale_ms: int, now_ms: int) -> str:
    """Return a reply that begins with the time of the oldest late message; unchanged if all were in time.

    Lateness is checked at the end as well: a turn that began in time may have waited for days.
    """
    befores = [before for before in (claimed.late_before, _cutoff(stale_ms, now_ms)) if before is not None]
    late = [message.received_at for message in claimed.all_messages if befores and message.received_at < max(befores)]
    return f"[answered late: received {_late_note(min(late))}]\n\n{reply}" if late else reply


def _cutoff(stale_ms: int, now_ms: int) -> int | None:
    return now_ms - stale_ms if stale_ms else None


def _late_note(at: int) -> str:
    return f"{datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at):%Y-%m-%d %H:%M} UTC"


_OURSELVES = "assistant"
_SOMEBODY = "somebody"
_UNKNOWN = "it replies to a message that is not known here"


def attend(claimed: ClaimedBatch, recent: Recent, settled: tuple[SlotSettlement, ...]) -> Attention:
    """The focus in seed 003's order, and the quotes; a retry keeps to what an earlier attempt was shown."""
    shown = claimed.trace.get("quoted") if isinstance(claimed.trace, dict) else None
    focus = _focus(claimed, recent, settled)
    return Attention(focus, tuple(_quotes(claimed, recent)), settled, shown if isinstance(shown, str) else None)


def _focus(claimed: ClaimedBatch, recent: Recent, settled: tuple[SlotSettlement, ...]) -> Focus:
    """Reply target; else what is inferred where several speak; else our last words; else a question that fits."""
    newest = claimed.messages[-1]
    if (replied := _replied(claimed, newest)) is not None:
        return replied
    if (guess := _inferred(claimed, recent, newest)) is not None:
        text, who = next((text, who) for ref, text, who in _lane_texts(recent) if ref == guess.ref)
        return Focus(FocusKind.REPLY, guess.ref, text, who, f"inferred: {guess.reason} ({guess.score:g})")
    answer = next(((ref, text) for ref, text, who in reversed(_lane_texts(recent)) if not who), None)
    filled = next((one for one in settled if one.message_id == newest.id and isinstance(one.effect, FillSlot)), None)
    if filled is not None and (answer is None or answer[0] == filled.slot.anchor):
        question = filled.slot.question
        reason = f"it answers the pending question, of type {question.expected}"
        return Focus(FocusKind.SLOT, filled.slot.anchor, question.text, "", reason)
    if answer is not None:
        return Focus(FocusKind.ANSWER, answer[0], answer[1], "", "the last thing said to the lane")
    return Focus(reason="no model has answered in this lane yet")


def _replied(claimed: ClaimedBatch, newest: StoredMessage) -> Focus | None:
    if (reply_to := newest.inbound.marks.reply_to) is None:
        return None
    if (target := claimed.around.target(reply_to)) is None:
        return Focus(FocusKind.REPLY, reason=_UNKNOWN)
    return Focus(FocusKind.REPLY, target.ref, target.text, target.speaker, "it replies to it")


def _lane_texts(recent: Recent) -> list[tuple[str, str, str]]:
    """Return the texts of the lane, oldest first: reference, text, and speaker ("" for the agent)."""
    return [
        (ref, record.text, record.speaker if record.role is Role.USER else "")
        for record, ref in zip(recent.records, recent.refs, strict=True)
        if ref and record.text and record.role is not Role.TOOL
    ]


def _inferred(claimed: ClaimedBatch, recent: Recent, newest: StoredMessage) -> Guess | None:
    """What the newest message answers, where more people than one speak."""
    if not is_named(claimed):
        return None
    history = [MessageText(ref, who or _OURSELVES, text, name=who) for ref, text, who in _lane_texts(recent)]
    before = [
        MessageText(f"message:{one.id}", speaker(one), one.text, name=speaker(one)) for one in claimed.messages[:-1]
    ]
    people = {one.speaker for one in (*history, *before)} - {_OURSELVES} | {speaker(newest)}
    if len(people) < 2 or not history:
        return None
    guess = infer([*history, *before], MessageText("", speaker(newest), newest.text, name=speaker(newest)))
    return guess if guess is not None and any(guess.ref == ref for ref, _, _ in _lane_texts(recent)) else None


def _quotes(claimed: ClaimedBatch, recent: Recent) -> Iterator[Quote]:
    """What edits replace, and the reply targets of the messages, each once, but for messages of the batch.

    A target that is not stored here is quoted as the medium delivered it with the message.

    A target right above the only message needs no quote either: the model reads it last before the message. With
    several messages, or with anything said since, it would have to guess which one is meant.
    """
    several = len(claimed.messages) > 1
    beside = {f"message:{message.id}" for message in claimed.messages}
    left_out = set(beside)
    if not several:
        left_out.update(recent.refs[-1:])
    for number, message in enumerate(claimed.messages, 1):
        place = number if several else 0
        replaced = claimed.around.replaced(message.id)
        if replaced is not None and replaced.ref not in beside:
            yield Quote(replaced.text, replaced.speaker, place, replaced.trust, is_replaced=True)
        reply_to = message.inbound.marks.reply_to
        target = None if reply_to is None else claimed.around.target(reply_to)
        if target is not None and target.text and target.ref not in left_out:
            left_out.add(target.ref)
            yield Quote(target.text, target.speaker, place, target.trust)
        if target is None and (found := quote_of(message)) is not None:
            delivered, trust = found
            yield Quote(delivered.text, delivered.name or _SOMEBODY, place, trust)


def attention_shape(attention: Attention, quoted: str) -> dict[str, Json]:
    """What a trace keeps of it: the focus with its reason, the questions settled, and the block as sent."""
    focus = attention.focus
    slots: list[Json] = [_slot(one) for one in attention.settled]
    about: Json = {"kind": str(focus.kind), "ref": focus.ref, "speaker": focus.speaker, "reason": focus.reason}
    return {"focus": about, "slots": slots, "quoted": quoted}


def _slot(one: SlotSettlement) -> Json:
    question, effect = one.slot.question, one.effect
    verb, value, reason = (
        ("fill", effect.value, "") if isinstance(effect, FillSlot) else (effect.verb, "", effect.reason)
    )
    return {
        "turn": one.slot.id,
        "question": question.text,
        "expected": str(question.expected),
        "message": one.message_id,
        "verb": verb,
        "value": value,
        "reason": reason,
    }


class SlotMatcher:
    """The questions open when a turn begins, updated by its messages one by one."""

    def __init__(self, around: TurnInputs, terms: SlotTerms) -> None:
        self._around = around
        self._terms = terms
        self._open = list(around.slots)
        self._settled: list[SlotSettlement] = []

    @property
    def settled(self) -> tuple[SlotSettlement, ...]:
        return tuple(self._settled)

    @property
    def effects(self) -> tuple[Effect, ...]:
        return tuple(one.effect for one in self._settled)

    def hear_all(self, messages: Iterable[StoredMessage]) -> None:
        """Hear messages in order."""
        for message in messages:
            self.hear(message)

    def hear(self, message: StoredMessage) -> tuple[SlotSettlement, ...]:
        """What this message settles."""
        settled = tuple(one for one in (self._judge(slot, message) for slot in self._open) if one is not None)
        ended = {one.slot.id for one in settled}
        self._open = [slot for slot in self._open if slot.id not in ended]
        self._settled += settled
        return settled

    def _judge(self, slot: Slot, message: StoredMessage) -> SlotSettlement | None:
        if message.inbound.origin.sender != slot.person or message.inbound.content.event or message.damaged:
            return None
        if message.received_at < slot.opened_at:
            return None
        if message.received_at >= slot.expires_at:
            return SlotSettlement(slot, message.id, ClearSlot(slot.id, "no answer came in time", "expire"))
        reply_to = message.inbound.marks.reply_to
        target = None if reply_to is None else self._around.target(reply_to)
        value = None
        if target is None or target.ref == slot.anchor:
            value = read_answer(slot.question, DatedText(message.text, message.received_at, self._terms.zone))
        if value is not None:
            return SlotSettlement(slot, message.id, FillSlot(slot.id, value, message.id))
        if self._terms.on_mismatch is OnMismatch.KEEP:
            return None
        why = f"{show('message', message.id)} is not an answer of type {slot.question.expected}"
        return SlotSettlement(slot, message.id, ClearSlot(slot.id, why))
