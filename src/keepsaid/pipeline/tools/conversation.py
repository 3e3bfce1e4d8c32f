"""Tools of a conversation: `ask_for` opens a question, `set_personality` sets a style, and schedules of the lane."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial

from keepsaid.domain import command, effects, memory, reply, turn, visibility
from keepsaid.domain.effects import EndSchedule, KeepTime
from keepsaid.domain.ids import moment, read, show
from keepsaid.domain.message import SYSTEM, StoredMessage, Trust, Trusted
from keepsaid.domain.personality import PERSONALITY_CHARS_MAX, settable
from keepsaid.domain.prompt import AnsweredCall, Json, Record, Role, answered_calls, object_schema
from keepsaid.domain.schedule import LIVE, NewSchedule, Schedule, Target, What
from keepsaid.domain.slot import Expected, Question
from keepsaid.domain.timing import Cron, Every, Once, Timing, checked, first_due, next_due, once
from keepsaid.domain.turn import ClaimedBatch
from keepsaid.errors import ToolError
from keepsaid.ports import model, store_views
from keepsaid.ports.runtime import Clock, Ids
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

ASK_FOR = "ask_for"
QUESTION_CHARS_MAX = 500
OPTIONS_MAX = 20
_ASK_SCHEMA = object_schema(
    {
        "question": {"type": "string", "description": "the question, as your answer asks it"},
        "type": {"type": "string", "enum": [str(one) for one in Expected]},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "of a selection",
        },
        "person": {"type": "string", "description": "who is asked; by default who wrote last"},
    },
    "question",
    "type",
)


def ask_for(claimed: turn.ClaimedBatch) -> model.Tool:
    """A tool that lets the next answer of a person be read as a value; nothing is sent by it."""

    async def run(arguments: dict[str, Json]) -> str:
        question, person = _question(arguments), _person(claimed, arguments)
        return f"The answer of {_name(person)} will be read as {question.expected}. Now ask it in your answer."

    says = "Call before you ask a person for something: the answer is read as this type."
    return model.Tool(ASK_FOR, says, _ASK_SCHEMA, run, output=Trust.OWNER)


def slots_in(records: Sequence[Record], claimed: turn.ClaimedBatch, lasts_ms: int) -> tuple[effects.OpenSlot, ...]:
    """Return the slot that a turn's records open: that of the last call not refused; at most one a turn."""
    calls = list(answered_calls(records, ASK_FOR))
    if not calls:
        return ()
    arguments = calls[-1].arguments
    return (effects.OpenSlot(_person(claimed, arguments).inbound.origin.sender, _question(arguments), lasts_ms),)


def questions_in(records: Sequence[Record]) -> list[str]:
    """Return the question that a turn opened, with its type, for `why`: that of the last call not refused."""
    questions = [_question(call.arguments) for call in list(answered_calls(records, ASK_FOR))[-1:]]
    return [f"{one.text} ({one.expected})" for one in questions]


def _question(arguments: Mapping[str, Json]) -> Question:
    text, kind, given = arguments.get("question"), arguments.get("type"), arguments.get("options")
    if not isinstance(text, str) or not text.strip() or len(text) > QUESTION_CHARS_MAX:
        raise ToolError(f"question must be a text of at most {QUESTION_CHARS_MAX} characters that is not empty")
    if kind not in tuple(Expected):
        raise ToolError(f"type must be one of {', '.join(Expected)}")
    expected = Expected(str(kind))
    options = tuple(one.strip() for one in given if isinstance(one, str)) if isinstance(given, list) else ()
    if expected is Expected.SELECTION and not (2 <= len({*options}) == len(options) <= OPTIONS_MAX and all(options)):
        raise ToolError(f"a selection needs 2 to {OPTIONS_MAX} different options")
    return Question(text.strip(), expected, options if expected is Expected.SELECTION else ())


def _person(claimed: turn.ClaimedBatch, arguments: Mapping[str, Json]) -> StoredMessage:
    """The last message of the person who is asked."""
    if not (people := [one for one in claimed.all_messages if not one.inbound.content.event]):
        raise ToolError("nobody can be asked: this turn answers no person")
    name = arguments.get("person")
    if name is None or name == "":
        return people[-1]
    found = [one for one in people if str(name).casefold() in (_name(one).casefold(), one.inbound.origin.sender)]
    if not found:
        raise ToolError(f"person must be one of {', '.join(dict.fromkeys(_name(one) for one in people))}")
    return found[-1]


def _name(message: StoredMessage) -> str:
    return message.inbound.origin.name or message.inbound.origin.sender


STAY_SILENT = "stay_silent"
_UNEXPLAINED = "the agent chose not to answer"
_REASON = object_schema({"reason": {"type": "string", "description": "why no reply is wanted, in a few words"}})


def stay_silent() -> model.Tool:
    """A tool by which the model ends its turn without a reply."""

    async def run(_arguments: dict[str, Json]) -> str:
        return "No reply is sent."

    says = "End this turn without a reply, where none is wanted. Never call it instead of an answer to a question."
    return model.Tool(STAY_SILENT, says, _REASON, run, output=Trust.OWNER)


def silence_in(records: Sequence[Record]) -> str:
    """Return why the calls of these records end the turn without a reply; "" if no call does."""
    for call in answered_calls(records, STAY_SILENT):
        reason = call.arguments.get("reason")
        words = " ".join(normalise(reason).split()) if isinstance(reason, str) else ""
        return cut(words, QUESTION_CHARS_MAX) or _UNEXPLAINED
    return ""


def without_silence(records: Sequence[Record]) -> Iterator[Record]:
    """Yield the records without calls of `stay_silent`, and without the text that the model wrote beside them."""
    for record in records:
        calls = tuple(call for call in record.calls if call.name != STAY_SILENT)
        if calls == record.calls and (record.role is not Role.TOOL or record.speaker != STAY_SILENT):
            yield record
        elif calls:
            yield replace(record, text="", calls=calls)


SET_PERSONALITY = "set_personality"


def set_personality(claimed: turn.ClaimedBatch) -> tuple[model.Tool, ...]:
    """The tool, for who may; it takes effect with the turn's commit, and shows in the next turn."""
    if not (allowed := settable(claimed.batch.lane, claimed.all_messages)):
        return ()

    async def run(arguments: dict[str, Json]) -> str:
        name, text = _read_personality(arguments, allowed)
        where = {"session": "in this lane", "person": "with this person", "global": "everywhere"}[name]
        return f"Set {where}, from the next turn on." if text else f"Taken back {where}."

    text: Json = {"type": "string", "description": "how; empty takes it back"}
    scope: Json = {"type": "string", "enum": [*allowed], "default": next(iter(allowed))}
    schema = object_schema({"text": text, "scope": scope}, "text")
    says = "Set how you speak, when the person asks you to speak otherwise."
    whose = visibility.least(one.inbound.origin.trust for one in claimed.all_messages)
    return (model.Tool(SET_PERSONALITY, says, schema, run, serves=whose, output=Trust.OWNER),)


def set_in(records: Sequence[Record], claimed: turn.ClaimedBatch) -> tuple[effects.SetPersonality, ...]:
    """What a turn's records set: every call that was answered and not refused, in order."""
    allowed = settable(claimed.batch.lane, claimed.all_messages)
    by = memory.person_of(claimed.all_messages[-1].inbound.origin)
    found: list[effects.SetPersonality] = []
    for call in answered_calls(records, SET_PERSONALITY):
        with suppress(ToolError):  # a person who joined the turn since makes it forbidden
            scope, text = _read_personality(call.arguments, allowed)
            found.append(effects.SetPersonality(allowed[scope], text, by))
    return tuple(found)


def _read_personality(arguments: Mapping[str, Json], allowed: Mapping[str, str]) -> tuple[str, str]:
    text, name = arguments.get("text"), arguments.get("scope", next(iter(allowed), None))
    if not isinstance(text, str) or len(text.strip()) > PERSONALITY_CHARS_MAX:
        raise ToolError(f"text must be a text of at most {PERSONALITY_CHARS_MAX:,} characters")
    if not isinstance(name, str) or name not in allowed:
        raise ToolError(f"scope must be one of {', '.join(allowed)}")
    return name, normalise(text).strip()


ADD, LIST, CANCEL = "schedule_add", "schedule_list", "schedule_cancel"
_TEXT_CHARS_MAX, _NAME_CHARS_MAX = 4_000, 100
_LOOKED_AT = 20
"""Times of a cron expression that are checked for the shortest interval."""

_TOLD_MAX, _LINE_CHARS = 30, 100

_ADDED = re.compile(r"(sch_[0-9a-z]{13}) comes first at ([^\s,]+)")
_WHAT = ("say", "ask", "task")
_SCHEMA = object_schema(
    {
        "what": {
            "type": "string",
            "enum": [*_WHAT],
            "description": "say: post the text; ask: answer it then; task: a worker does it",
        },
        "text": {"type": "string"},
        "name": {"type": "string"},
        "cron": {"type": "string", "description": "30 8 * * 1-5"},
        "timezone": {"type": "string", "description": "of cron: Europe/Berlin"},
        "every_s": {"type": "number", "description": "or an interval"},
        "at": {"type": "string", "description": "or once: 2030-05-04T18:00+02:00"},
        "in_s": {"type": "number", "description": "or once, after a delay"},
    },
    "what",
    "text",
)
_NO_ARGUMENTS: Mapping[str, Json] = {"type": "object", "properties": {}}
_ONE = object_schema({"id": {"type": "string", "description": "as schedule_list names it: sch_..."}}, "id")


@frozen
class ScheduleToolTerms:
    """Limits of the agent's schedules in one conversation (number, interval), and the default time zone."""

    most: int = 20
    least_ms: int = 300_000
    zone: str = "UTC"


def schedule_tools(
    claimed: ClaimedBatch, view: store_views.ScheduleView, system: tuple[Clock, Ids], terms: ScheduleToolTerms
) -> tuple[model.Tool, ...]:
    """The tools, where all people who wrote are known; none otherwise.

    A turn that the program began is offered them too, so that the list of tools stays as it is from turn to turn, and
    makes no schedule: it could make itself again and again.
    """
    people = [one.inbound.origin for one in claimed.all_messages if one.inbound.origin.sender != SYSTEM]
    if not terms.most or any(one.trust is Trust.EXTERNAL for one in people):
        return ()
    clock, ids = system
    place = claimed.batch.lane[:3]

    async def mine() -> list[Schedule]:
        found = await view.schedules(LIVE, 0, 1 << 31)
        return [one for one in found if one.new.target is not None and one.new.target.lane[:3] == place]

    async def add(arguments: dict[str, Json]) -> str:
        if not people:
            raise ToolError("no person wrote in this turn, and only a person can have a schedule made")
        now = clock.now_ms()
        what, text, name, timing = _parse_call(arguments, terms, now)
        if sum(one.new.source == "agent" for one in await mine()) >= terms.most:
            raise ToolError(f"there are {terms.most} schedules in this conversation; cancel one first")
        if (first := first_due(timing, now)) is None:
            raise ToolError("that time is in the past")
        _check_pace(timing, first, terms)
        told = f"{show('schedule', ids.next())} comes first at {_iso(first)}"
        named = f" as {name}" if name else ""
        does = "have a worker do" if what is What.TASK else str(what)
        return f"{told}{named}, to {does} {json.dumps(text)} here. It is kept once your answer is written."

    async def listed(_arguments: dict[str, Json]) -> str:
        found = await mine()
        told = "\n".join(map(_line, found)) or "There is no schedule in this conversation."
        return Trusted(told, visibility.least([Trust.OWNER, *(one.new.trust for one in found)]))

    async def cancel(arguments: dict[str, Json]) -> str:
        number = read("schedule", str(arguments.get("id", "")))
        found = next((one for one in await mine() if one.id == number), None)
        if found is None or found.new.source not in ("agent", "command"):
            raise ToolError("there is no such schedule here that you can cancel")
        return f"{show('schedule', found.id)} is cancelled once your answer is written."

    own = partial(model.Tool, serves=Trust.KNOWN, output=Trust.OWNER)
    return (
        own(ADD, "Schedule a message, a prompt or a task in this conversation, once or repeatedly.", _SCHEMA, add),
        replace(own(LIST, "List the schedules of this conversation.", _NO_ARGUMENTS, listed), serves=Trust.EXTERNAL),
        own(CANCEL, "Cancel a schedule of this conversation.", _ONE, cancel),
    )


def _line(one: Schedule) -> str:
    first = "-" if one.next_at is None else _iso(one.next_at)
    return f"{show('schedule', one.id)} {one.state}, next {first}: {one.new.what} {json.dumps(one.new.text)}"


def _iso(at: int) -> str:
    return datetime.fromtimestamp(at / 1_000, UTC).isoformat().replace("+00:00", "Z")


def _parse_call(arguments: Mapping[str, Json], terms: ScheduleToolTerms, now: int) -> tuple[What, str, str, Timing]:
    """Return what a call asks for; raises ToolError that says what is wrong with the call."""
    what, text, name = arguments.get("what"), arguments.get("text"), arguments.get("name", "")
    if what not in _WHAT:
        raise ToolError(f"what must be one of {', '.join(_WHAT)}")
    if not isinstance(text, str) or not text.strip() or len(text) > _TEXT_CHARS_MAX:
        raise ToolError(f"text must be a text of at most {_TEXT_CHARS_MAX:,} characters that is not empty")
    if not isinstance(name, str) or len(name) > _NAME_CHARS_MAX:
        raise ToolError(f"name must be a text of at most {_NAME_CHARS_MAX} characters")
    try:
        timing = checked(_timing(arguments, terms.zone, now))
    except (ValueError, OverflowError) as error:
        raise ToolError(str(error)) from None
    return What(str(what)), normalise(text), normalise(name).strip(), timing


def _timing(arguments: Mapping[str, Json], zone: str, now: int) -> Timing:
    given = [key for key in ("cron", "every_s", "at", "in_s") if arguments.get(key) not in (None, "")]
    if len(given) != 1:
        raise ValueError("say when by one of cron, every_s, at and in_s")
    [key] = given
    value = arguments[key]
    if key == "cron":
        return Cron(str(value), str(arguments.get("timezone") or zone))
    if key == "at":
        return once(str(value))
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e10:
        raise ValueError(f"{key} must be a number of seconds")
    return Every(int(value * 1_000)) if key == "every_s" else Once(now + int(value * 1_000))


def _check_pace(timing: Timing, first: int, terms: ScheduleToolTerms) -> None:
    at = first
    for _ in range(_LOOKED_AT):
        if (following := next_due(timing, at, at)) is None:
            return
        if following - at < terms.least_ms:
            raise ToolError(f"it would come too often: {terms.least_ms / 1_000:g} seconds apart at least")
        at = following


def scheduled_in(records: Sequence[Record], claimed: ClaimedBatch, zone: str) -> tuple[KeepTime | EndSchedule, ...]:
    """What a turn's records ask for: every call that was granted, in order; read again, they say the same."""
    given = visibility.least(message.inbound.origin.trust for message in claimed.all_messages)
    calls = (one._replace(trust=one.trust or given) for one in answered_calls(records, ADD, CANCEL))
    return tuple(effect for one in calls for effect in _effect(one, claimed, zone))


def _effect(answered: AnsweredCall, claimed: ClaimedBatch, zone: str) -> Iterator[KeepTime | EndSchedule]:
    """Yield the effect of one call; none for a turn that showed text from outside."""
    trust, arguments = answered.trust or Trust.EXTERNAL, answered.arguments
    if trust is Trust.EXTERNAL:
        return
    if answered.call.name == CANCEL:
        if (number := read("schedule", str(arguments.get("id", "")))) is not None:
            yield EndSchedule(number)
        return
    found = _ADDED.match(answered.text)
    number = read("schedule", found[1]) if found else None
    if found is None or number is None:
        return
    first = moment(found[2])
    what, text, name, timing = _parse_call(arguments, ScheduleToolTerms(zone=zone), first)
    timing = Once(first) if isinstance(timing, Once) else timing
    origin, (url, _) = claimed.all_messages[-1].inbound.origin, reply.address(claimed.all_messages)
    target = Target(claimed.batch.lane, url, direct=origin.direct)
    yield KeepTime(NewSchedule(number, "agent", name, timing, what, text, target, trust), first)


async def show_schedules(view: store_views.ScheduleView, message: StoredMessage) -> command.CommandResult:
    """`/schedules`: those that live, first those that were disabled.

    The owner sees all in a direct chat, others those of their own lane.
    """
    origin, place = message.inbound.origin, message.lane[:3]
    found = await view.schedules(LIVE, 0, 1 << 31)
    if not (origin.trust is Trust.OWNER and origin.direct):
        found = [one for one in found if one.new.target is not None and one.new.target.lane[:3] == place]
    found = sorted(found, key=lambda one: (one.state != "disabled", one.next_at or 0))
    lines = [_render_schedule(one) for one in found[:_TOLD_MAX]]
    lines += [f"and {len(found) - _TOLD_MAX} more: keepsaid schedule ls"] if len(found) > _TOLD_MAX else []
    return command.CommandResult("\n".join(lines) or "There is no schedule.")


def _render_schedule(one: Schedule) -> str:
    named = f" {one.new.name}" if one.new.name else ""
    why = f" ({one.reason})" if one.reason else ""
    first = "-" if one.next_at is None else _iso(one.next_at)
    said = cut(" ".join(one.new.text.split()), _LINE_CHARS)
    return f"{show('schedule', one.id)}{named} {one.state}, next {first}: {one.new.what} {said}{why}"
