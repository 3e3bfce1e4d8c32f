"""Headings and speaker labels that the program writes into a prompt, and that nobody else can write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from keepsaid.domain.message import StoredMessage
from keepsaid.domain.prompt import Json, Record, Role
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.text.normal import heading, opens

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
ATTACHED = "[attached"
FROM = "[From"
POSTED = "[Posted here"

_BLOCKS = (MEMORY, BULLETIN, SUMMARY, SESSION_SUMMARY, STATUS, QUOTED, "[Pinned context]", "[Relevant to")
_LINES = (ANSWERED, TOGETHER, RECEIVED, SENT, ATTACHED, FROM, POSTED, "[System:")
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
    """Whether texts of this turn begin with their speakers' names: where more people than one may be heard."""
    return not all(message.inbound.origin.direct for message in claimed.messages)


def render_message(claimed: ClaimedBatch, message: StoredMessage) -> str:
    """A new message as the prompt shows it: after its speaker's name where several speak, below a late marker."""
    said = as_said_by(speaker(message), message.text) if is_named(claimed) else unforged(message.text)
    return late_marker(message, claimed.late_before) + said


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
    """A text after its speaker's name, on lines none of which can pass for somebody else's."""
    name = " ".join(name.replace(":", " ").split())
    return f"{name}: {_CONTINUED.join(text.splitlines())}"


def indented(text: str) -> str:
    """A text whose every line but the first is set in, so that none can pass for a heading."""
    return _CONTINUED.join(text.splitlines())


_KEY = "late_before"


def with_lateness(claimed: ClaimedBatch, stale_ms: int, now_ms: int) -> ClaimedBatch:
    """Return the batch with the time before which its messages count as late; `stale_ms` 0 calls none late.

    A turn with finished steps keeps the time those steps were shown: a retry must send the same bytes. For one
    without, the time is computed anew, because the runtime may have been down meanwhile.
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
