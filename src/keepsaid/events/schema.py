"""Schemas: what the payload of a topic holds, field by field; made once, and read by people, programs and tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from functools import partial
from typing import Any

from keepsaid.domain.prompt import Json
from keepsaid.values import frozen

Payload = Mapping[str, Json]
_LANE_PARTS = 4


class FieldType(StrEnum):
    """Type of a field, as the journal keeps it. Ids are numbers there, and text with a prefix outside."""

    ID = "id"
    IDS = "ids"
    NUMBER = "number"
    FLAG = "flag"
    WORD = "word"
    WORDS = "words"
    LANE = "lane"


@frozen
class Field:
    """One field: what it holds and means. `of` is what an id is of; a word may be one of a few (`among`)."""

    holds: FieldType
    meaning: str
    of: str = ""
    among: tuple[str, ...] = ()
    optional: bool = False

    def if_any(self) -> Field:
        """The same, and it may be missing."""
        return replace(self, optional=True)

    @property
    def type(self) -> str:
        """What it holds outside, for people."""
        ids = {FieldType.ID: f"id of a {self.of}", FieldType.IDS: f"list of ids of a {self.of}"}
        lists = {FieldType.WORDS: "list of texts", FieldType.LANE: "list of four texts"}
        words = {FieldType.NUMBER: "whole number", FieldType.FLAG: "true or false"}
        word = " or ".join(f"`{one}`" for one in self.among) or "text"
        return {**ids, **lists, **words, FieldType.WORD: word}[self.holds]

    def json_schema(self) -> dict[str, Any]:
        """What it holds outside, as JSON Schema."""
        text = {"type": "string"}
        shapes: dict[FieldType, dict[str, Any]] = {
            FieldType.ID: text,
            FieldType.IDS: {"type": "array", "items": text},
            FieldType.NUMBER: {"type": "integer"},
            FieldType.FLAG: {"type": "boolean"},
            FieldType.WORD: {**text, "enum": list(self.among)} if self.among else text,
            FieldType.WORDS: {"type": "array", "items": text},
            FieldType.LANE: {"type": "array", "items": text, "minItems": _LANE_PARTS, "maxItems": _LANE_PARTS},
        }
        return {**shapes[self.holds], "description": self.meaning}

    def fits(self, value: Json) -> bool:
        """Whether the journal may hold this."""
        several = value if isinstance(value, list) else []
        texts = isinstance(value, list) and all(isinstance(one, str) for one in several)
        return {
            FieldType.ID: _whole(value),
            FieldType.IDS: isinstance(value, list) and all(_whole(one) for one in several),
            FieldType.NUMBER: _whole(value),
            FieldType.FLAG: isinstance(value, bool),
            FieldType.WORD: isinstance(value, str) and (not self.among or value in self.among),
            FieldType.WORDS: texts,
            FieldType.LANE: texts and len(several) == _LANE_PARTS,
        }[self.holds]


def _whole(value: Json) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def an_id(of: str, meaning: str) -> Field:
    """The id of something, as `domain/ids.py` names it."""
    return Field(FieldType.ID, meaning, of)


def ids(of: str, meaning: str) -> Field:
    """Ids of several."""
    return Field(FieldType.IDS, meaning, of)


number = partial(Field, FieldType.NUMBER)
flag = partial(Field, FieldType.FLAG)


def word(meaning: str, *among: str) -> Field:
    """A text that nobody said: a name, a kind, an error; one of a few, where they are given."""
    return Field(FieldType.WORD, meaning, among=among)


words = partial(Field, FieldType.WORDS)


def lane() -> Field:
    """A lane, by what it is made of."""
    return Field(FieldType.LANE, "channel, account, conversation, key")


@frozen
class Schema:
    """A topic: when it is published, what it is about (a noun of `domain/ids.py`, a word, or nothing), and its fields.

    `alias` is another name it may be subscribed by. What comes `together` with others in one line of the journal,
    because it is frequent, cannot be waited for.
    """

    when: str
    about: str
    fields: Mapping[str, Field]
    alias: str = ""
    together: bool = False

    def json_schema(self) -> dict[str, Any]:
        """The payload as it is outside, as JSON Schema."""
        return {
            "type": "object",
            "description": self.when,
            "properties": {name: field.json_schema() for name, field in self.fields.items()},
            "required": [name for name, field in self.fields.items() if not field.optional],
            "additionalProperties": False,
        }

    def amiss(self, payload: Payload) -> Iterator[str]:
        """What is wrong with a payload as the journal keeps it, each in a few words."""
        yield from (f"{name} is not a field" for name in payload if name not in self.fields)
        for name, field in self.fields.items():
            if name not in payload:
                if not field.optional:
                    yield f"{name} is missing"
            elif not field.fits(payload[name]):
                yield f"{name} is {payload[name]!r} and holds {field.type}"
