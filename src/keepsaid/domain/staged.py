"""Staged: what the agent's memory tools were asked to do in a turn, read off its records; done once it is committed.

`memory_save` keeps something new, `memory_correct` puts a memory right, `memory_confirm` takes one for certain.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields, replace
from enum import StrEnum

from keepsaid.domain import ids
from keepsaid.domain.memory import IMPORTANCE, Kind
from keepsaid.domain.message import StoredMessage, Trust
from keepsaid.domain.prompt import Json, Record, answered_calls
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
    trust: Trust | None = None


@frozen
class StagedRequests:
    """Memory requests that a turn or a branch staged: `by` names which, such as `turn:5`.

    `turn_id` is the turn behind it; `messages` are those that it answered. `external` says that text of
    outsiders was shown.
    """

    by: str
    turn_id: int
    messages: tuple[StoredMessage, ...]
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
    trust = Trust(given["trust"]) if given["trust"] else None
    return StageMemory(**{**given, "deed": MemoryAction(told["deed"]), "kind": Kind(told["kind"]), "trust": trust})


def _memory(arguments: Mapping[str, Json]) -> int:
    given = arguments.get("id")
    number = ids.read("memory", given) if isinstance(given, str) else None
    if number is None:
        raise ValueError("id must name a memory as memory_search does: mem_ and 13 letters or digits")
    return number


def _kind(arguments: Mapping[str, Json]) -> Kind:
    given = arguments.get("kind", Kind.FACT)
    if given not in tuple(IMPORTANCE):
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
