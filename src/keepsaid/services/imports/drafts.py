"""What readers find in the files of another program, and how it becomes a record that an import takes."""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Mapping
from dataclasses import field
from datetime import UTC, datetime
from typing import Any, Protocol

from keepsaid.domain import ids, memory, message, visibility
from keepsaid.domain.bundle import BundleEntry
from keepsaid.domain.learning import LEARNABLE
from keepsaid.memory.importing import ImportLine
from keepsaid.services.imports.files import ImportFiles, refused
from keepsaid.text.normal import digest, normalise, normalise_json
from keepsaid.values import frozen

USER = "user"
"""The name by which `--as` means the user of a program that has one user; without it this is the owner."""

EVERYBODY = "*"
"""The name for all who are not named."""

LINES_MAX = 1_000_000
"""Findings of one import: about 400 bytes of memory each."""

TALK_BYTES_MAX = 200_000
"""Bytes of one message."""

_HASH_BYTES = 16
_NAME_CHARS = 200
_METADATA_CHARS = 20_000
_DAY_MS = 86_400_000
_FIRST_IN_MS = 100_000_000_000
"""A number from here on counts milliseconds: as seconds it would lie beyond the year 5000."""


@frozen
class Draft:
    """A memory as its program has it: a fact, or with a `conversation` a message.

    `ref` names it in that program, for ever. `who` is whose it is, by the program's name, None for its only user.
    `speaker` is what whoever said it is called; what is `outside` was not said by that person. `said_at` is
    milliseconds UTC, None for unknown. `about` is kept as it is.
    """

    ref: str
    text: str
    file: str
    kind: memory.Kind = memory.Kind.FACT
    said_at: int | None = None
    who: str | None = None
    conversation: str = ""
    speaker: str = USER
    outside: bool = False
    about: Mapping[str, Any] = field(default_factory=dict)


@frozen
class LeftOut:
    """Something that was found and is not imported, with the reason."""

    why: str


Finding = Draft | LeftOut


class Reader(Protocol):
    """Reads the files of one product."""

    @property
    def product(self) -> str:
        """Its name in options, keys and sources."""
        ...

    def recognises(self, files: ImportFiles) -> bool:
        """Whether the files look like its own, judged by names and the start of their content."""
        ...

    def read(self, files: ImportFiles, now: int) -> Iterator[Finding]:
        """All that the files hold, in the same order each time. Raises InputError for files that are not its own."""
        ...


class ForeignFiles:
    """The files of another program as the source of an import; `persons` says who is who, by that program's names.

    Each finding counts as a line, the first is 1. `now` is milliseconds UTC.
    """

    def __init__(self, files: ImportFiles, reader: Reader, persons: Mapping[str, str], now: int) -> None:
        self._files = files
        self._reader = reader
        self._persons = persons
        self._now = now

    @property
    def key_print(self) -> str:
        """It has no tombstones."""
        return ""

    def lines(self, wanted: Container[int] | None = None) -> Iterator[ImportLine]:
        """Each finding, or those that are wanted, as a memory, or why it is none."""
        for number, found in enumerate(self._findings(), start=1):
            if number > LINES_MAX:
                raise refused(f"{self._files.path} holds more than {LINES_MAX:,} messages and notes")
            if wanted is not None and number not in wanted:
                continue
            if isinstance(found, LeftOut):
                yield ImportLine(number, None, found.why)
                continue
            try:
                yield ImportLine(number, self._entry(found, number))
            except ValueError as error:
                yield ImportLine(number, None, str(error))

    def _findings(self) -> Iterator[Finding]:
        yield from (LeftOut("it is a link, and links are not followed") for _ in self._files.links)
        yield from self._reader.read(self._files, self._now)

    def _entry(self, draft: Draft, number: int) -> BundleEntry:
        if draft.conversation and len(draft.text.encode("utf-8", "replace")) > TALK_BYTES_MAX:
            raise ValueError(f"it is longer than {TALK_BYTES_MAX:,} bytes")
        new = self._talk(draft) if draft.conversation else self._fact(draft)
        return BundleEntry(memory.Memory(number, new, "active", self._now), bytes(_HASH_BYTES), said_in=("",))

    def _fact(self, draft: Draft) -> memory.NewMemory:
        """A memory made from others' words, which its person can read in direct chats."""
        person = self._person(draft)
        return memory.NewMemory(
            key=f"import:{self._ref(draft)}",
            kind=draft.kind,
            text=normalise(draft.text).strip(),
            scope=memory.person_scope(person),
            trust=message.Trust.OWNER if person == memory.OWNER else message.Trust.KNOWN,
            said_at=self._now if draft.said_at is None else draft.said_at,
            importance=memory.IMPORTANCE[draft.kind],
            sources=(memory.Source("import", self._ref(draft)),),
            derived=True,
            metadata=self._metadata(draft),
            subject_id=person,
        )

    def _talk(self, draft: Draft) -> memory.NewMemory:
        """An episode of the person's own; what that person did not say is external."""
        person, conversation = self._person(draft), short(draft.conversation)
        own = message.Trust.OWNER if person == memory.OWNER else message.Trust.KNOWN
        text = normalise(draft.text)
        return memory.NewMemory(
            key=f"import:{self._ref(draft)}",
            kind=memory.Kind.EPISODE,
            text=text,
            scope=memory.person_scope(person),
            trust=message.Trust.EXTERNAL if draft.outside else visibility.trust_of_words(own, text),
            lane=message.Lane(self._reader.product, "import", conversation, message.lane_key(conversation)),
            speaker=normalise(short(draft.speaker)),
            speaker_id="" if draft.outside else person,
            chat_of=person,
            said_at=self._now if draft.said_at is None else draft.said_at,
            sources=(memory.Source("import", self._ref(draft)),),
            metadata=self._metadata(draft),
        )

    def _ref(self, draft: Draft) -> str:
        return f"{self._reader.product}:{draft.ref}"

    def _person(self, draft: Draft) -> str:
        if draft.who is None:
            return self._persons.get(USER, self._persons.get(EVERYBODY, memory.OWNER))
        if (person := self._persons.get(draft.who, self._persons.get(EVERYBODY))) is None:
            called = draft.who[:80]
            raise ValueError(f"nobody here is {called!r}: say who it is with --as '{called}=owner'")
        return person

    def _metadata(self, draft: Draft) -> str:
        """Where it is from, and its other fields there; where that is too much, only the former."""
        where = {"file": draft.file[-_NAME_CHARS:], "id": draft.ref}
        text = json.dumps({self._reader.product: {**draft.about, **where}}, ensure_ascii=False)
        if len(text) > _METADATA_CHARS:
            text = json.dumps({self._reader.product: where}, ensure_ascii=False)
        return normalise_json(text)


def short(name: str) -> str:
    """A name, or its hash where it is too long to be one."""
    return name if len(name) <= _NAME_CHARS else digest(name).hex()


def name_in(fields: Mapping[str, Any], *names: str) -> str:
    """The first of these fields that is a name: a text that is not empty, or a whole number; "" for none."""
    for one in names:
        value = fields.get(one)
        if (isinstance(value, str) and value.strip()) or type(value) is int:
            return short(str(value))
    return ""


def time_in(value: object, now: int) -> int | None:
    """A time in milliseconds UTC, read from seconds, milliseconds or ISO 8601; without a zone it is UTC.

    None for what is not a time, lies before 1970, or more than a day after now.
    """
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value.strip()[:40])
            given = (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000
        except (ValueError, OverflowError):
            return None
    elif isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18 and math.isfinite(value):
        given = value if abs(value) >= _FIRST_IN_MS else value * 1000
    else:
        return None
    at = int(given)
    return at if 0 < at <= now + _DAY_MS and ids.is_time(at) else None


def kind_of_words(*names: object) -> memory.Kind:
    """The kind that the last word of one of these names means, as in `food_preferences`; else a fact."""
    for name in names:
        word = str(name)[-_NAME_CHARS:].strip().lower().replace(" ", "_").rsplit("_", 1)[-1]
        for one in LEARNABLE:
            if word in (one, f"{one}s", f"{one[:-1]}ies"):
                return one
    return memory.Kind.FACT


def dict_in(value: object) -> dict[str, Any]:
    """The value, if it is an object; else an empty one."""
    return value if isinstance(value, dict) else {}


def list_in(value: object) -> list[Any]:
    """The value, if it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def text_in(content: object) -> str:
    """The text of a message: a text, or a list of texts and of blocks with a `text`; "" for anything else."""
    if isinstance(content, str):
        return content
    parts = [one if isinstance(one, str) else _block_text(dict_in(one)) for one in list_in(content)]
    return "\n".join(one for one in parts if one.strip())


def _block_text(block: Mapping[str, Any]) -> str:
    text = block.get("text")
    is_text = block.get("type", block.get("content_type", "text")) in ("text", "input_text", "output_text")
    return text if is_text and isinstance(text, str) else ""
