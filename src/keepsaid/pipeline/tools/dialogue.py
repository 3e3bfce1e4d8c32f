"""Tools for talking with people: `ask_for` opens a question with a typed answer, `set_personality` sets a style."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress

from keepsaid.domain import effects, memory, turn, visibility
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.personality import PERSONALITY_CHARS_MAX, settable
from keepsaid.domain.prompt import Json, Record, answered_calls, object_schema
from keepsaid.domain.slot import Expected, Question
from keepsaid.errors import ToolError
from keepsaid.ports.model import Tool
from keepsaid.text.normal import normalise

ASK_FOR = "ask_for"
QUESTION_CHARS_MAX = 500
OPTIONS_MAX = 20
_SCHEMA = object_schema(
    {
        "question": {"type": "string", "description": "the question, as your answer asks it"},
        "type": {"type": "string", "enum": [str(one) for one in Expected]},
        "options": {
            "type": "array",
            "items": {"type": "string"},
            "description": "for a selection: what to choose from",
        },
        "person": {"type": "string", "description": "who is asked, by name; by default who wrote last"},
    },
    "question",
    "type",
)


def ask_for(claimed: turn.ClaimedBatch) -> Tool:
    """A tool that lets the next answer of a person be read as a value; nothing is sent by it."""

    async def run(arguments: dict[str, Json]) -> str:
        question, person = _question(arguments), _person(claimed, arguments)
        return f"The answer of {_name(person)} will be read as {question.expected}. Now ask it in your answer."

    says = "Say before you ask a person for something that you wait for an answer of this type."
    return Tool(ASK_FOR, says, _SCHEMA, run, output=Trust.OWNER)


def slots_in(records: Sequence[Record], claimed: turn.ClaimedBatch, lasts_ms: int) -> tuple[effects.OpenSlot, ...]:
    """Return the slot that a turn's records open: that of the last call not refused; at most one a turn."""
    calls = list(answered_calls(records, ASK_FOR))
    if not calls or not records[-1].text:
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
    people = [one for one in claimed.all_messages if not one.inbound.content.event]
    if not people:
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


SET_PERSONALITY = "set_personality"


def set_personality(claimed: turn.ClaimedBatch) -> tuple[Tool, ...]:
    """The tool, for who may; it takes effect with the turn's commit, and shows in the next turn."""
    allowed = settable(claimed.batch.lane, claimed.all_messages)
    if not allowed:
        return ()

    async def run(arguments: dict[str, Json]) -> str:
        name, text = _read_personality(arguments, allowed)
        where = {"session": "in this lane", "person": "with this person", "global": "everywhere"}[name]
        return f"Set {where}, from the next turn on." if text else f"Taken back {where}."

    text: Json = {"type": "string", "maxLength": PERSONALITY_CHARS_MAX, "description": "how; empty takes it back"}
    scope: Json = {"type": "string", "enum": [*allowed], "default": next(iter(allowed))}
    schema = object_schema({"text": text, "scope": scope}, "text")
    says = "Set how you speak, when the person asks you to speak otherwise."
    whose = visibility.least(one.inbound.origin.trust for one in claimed.all_messages)
    return (Tool(SET_PERSONALITY, says, schema, run, serves=whose, output=Trust.OWNER),)


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
