"""Learning: the findings of an extraction, the outcome of a new memory, and pairs to judge."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields, replace
from enum import StrEnum
from typing import NamedTuple

from keepsaid.domain import commits, forgetting, graph, ids, message, turn
from keepsaid.domain.entities import EntityKind
from keepsaid.domain.memory import IMPORTANCE, About, Kind, Listener, Memory, NewMemory, Source
from keepsaid.text.topics import topic
from keepsaid.text.words import spelled
from keepsaid.values import frozen

LEARNABLE = frozenset(IMPORTANCE)
"""The kinds of memory that are learned; episodes and summaries are made in other ways."""

RULES = "rules/1"
"""The extractor that reads by rules alone; what it has read still waits for another."""

TEXT_CHARS_MAX = 2_000
NAME_CHARS_MAX = 200

LINKS = frozenset({graph.Relation.CAUSED_BY, graph.Relation.RESULT_OF, graph.Relation.PART_OF})
"""What one statement may be to another of its finding."""

LINKS_MAX = ABOUT_MAX = 8


class StatementLink(NamedTuple):
    """What a statement is to another of the same finding, by its place there, from 0."""

    relation: graph.Relation
    to: int


@frozen
class Statement:
    """One thing that was said to be so, and the positions of the records that say it.

    `links` say what it is to others of its finding. `subject`, `attribute` and `value` are its slot where it has one:
    Ann, city, Oslo. `about` is whom and what it names. Times are milliseconds UTC.
    """

    kind: Kind
    text: str
    subject: str = ""
    attribute: str = ""
    value: str = ""
    valid_from: int | None = None
    valid_to: int | None = None
    importance: float = 0.5
    confidence: float = 1.0
    records: tuple[int, ...] = ()
    links: tuple[StatementLink, ...] = ()
    about: tuple[About, ...] = ()

    def __post_init__(self) -> None:
        """Refuse what no memory can be made of, with a ValueError that says why."""
        if reason := _statement_fault(self):
            raise ValueError(reason)


@frozen
class ExtractionResult:
    """The statements that an extractor found in the records `first` to `last` of a session, and what that cost.

    Memories name a statement by its place, so a place is never used again: None stands where a statement was forgotten.
    """

    id: int
    session_id: int
    lane: message.Lane
    first: int
    last: int
    extractor: str
    statements: tuple[Statement | None, ...]
    usage: turn.Usage
    created_at: int

    def __post_init__(self) -> None:
        """Refuse links that lead to no other statement of the finding."""
        for n, one in enumerate(self.statements):
            if one and any(link.to == n or link.to >= len(self.statements) for link in one.links):
                raise ValueError("a statement is linked with another statement of its finding")

    @property
    def thorough(self) -> bool:
        """Whether what was read is done with."""
        return self.extractor != RULES


def kept(statements: Sequence[Statement], keep: Callable[[Statement], bool]) -> tuple[Statement, ...]:
    """Those that are kept, in order; what linked them with others of these still does."""
    places = [n for n, one in enumerate(statements) if keep(one)]
    moved = {before: after for after, before in enumerate(places)}
    return tuple(linked(statements[n], statements[n].links, moved) for n in places)


def emptied(statements: Sequence[Statement | None], keep: Callable[[Statement], bool]) -> tuple[Statement | None, ...]:
    """Returns the statements, each at its own place, with None for those that are not kept; links to these go too."""
    left = {n: n for n, one in enumerate(statements) if one is not None and keep(one)}
    return tuple(linked(one, one.links, left) if one and n in left else None for n, one in enumerate(statements))


def stays(one: Statement, positions: Collection[int], words: frozenset[str]) -> bool:
    """Whether a statement stays when the records at these positions are forgotten, and these words with them."""
    if any(at in positions for at in one.records):
        return False
    names = " ".join(named.name for named in one.about)
    return words.isdisjoint(forgetting.words_in(f"{one.text} {one.subject} {one.attribute} {one.value} {names}"))


def linked(one: Statement, links: Iterable[StatementLink], moved: Mapping[int, int]) -> Statement:
    """A statement with those of the links whose ends are still there, at the places to which they moved."""
    ends = dict.fromkeys(StatementLink(link.relation, moved[link.to]) for link in links if link.to in moved)
    return one if tuple(ends) == one.links else replace(one, links=tuple(ends))


def encoded(statements: Sequence[Statement | None]) -> str:
    """Statements as JSON; null for one that was forgotten."""
    return json.dumps([one and asdict(one) for one in statements], ensure_ascii=False, separators=(",", ":"))


def decoded(text: str) -> tuple[Statement | None, ...]:
    """Statements from JSON; raises ValueError for anything that is not exactly that."""
    try:
        told = json.loads(text)
    except RecursionError as error:
        raise ValueError("statements are nested too deeply") from error
    if not isinstance(told, list):
        raise ValueError("statements are a list")
    return tuple(None if one is None else _statement(one) for one in told)


_FIELDS = tuple(field.name for field in fields(Statement))


def _statement(told: object) -> Statement:
    if not isinstance(told, Mapping) or {*told, "links", "about"} != set(_FIELDS):
        raise ValueError(f"a statement has the fields {', '.join(_FIELDS)}")
    records, links, about = told["records"], told.get("links", []), told.get("about", [])
    if not all(isinstance(one, list) for one in (records, links, about)):
        raise ValueError("the records, the links and what a statement is about are lists")
    lists = {"records": tuple(records), "links": tuple(map(_link, links)), "about": tuple(map(_about, about))}
    return Statement(**{**told, "kind": Kind(told["kind"]), **lists})


def _about(told: object) -> About:
    if not isinstance(told, list) or len(told) != 2:
        raise ValueError("what a statement is about has a kind and a name")
    return About(*told)


def _link(told: object) -> StatementLink:
    if not isinstance(told, list) or len(told) != 2:
        raise ValueError("a link is a relation and the place of a statement")
    return StatementLink(graph.Relation(told[0]), told[1])


def _statement_fault(one: Statement) -> str:
    """Return why a statement is invalid; "" if it is valid."""
    texts = {"text": one.text, "subject": one.subject, "attribute": one.attribute, "value": one.value}
    for name, text in texts.items():
        if not isinstance(text, str) or len(text) > (TEXT_CHARS_MAX if name in ("text", "value") else NAME_CHARS_MAX):
            return f"the {name} of a statement is a text of bounded length"
    if one.kind not in LEARNABLE:
        return f"no statement is of the kind {one.kind}"
    if not one.text.strip():
        return "a statement says something"
    placed = all(link.relation in LINKS and type(link.to) is int and link.to >= 0 for link in one.links)
    if not placed or len(one.links) > LINKS_MAX:
        return f"a statement is linked with at most {LINKS_MAX} others, as {', '.join(sorted(LINKS))}"
    fit = all(named.kind in tuple(EntityKind) and 0 < len(named.name) <= NAME_CHARS_MAX for named in one.about)
    if not fit or len(one.about) > ABOUT_MAX:
        return f"a statement names at most {ABOUT_MAX} of the kinds {', '.join(EntityKind)}"
    return _number_fault(one)


def _number_fault(one: Statement) -> str:
    for name, share in (("importance", one.importance), ("confidence", one.confidence)):
        if isinstance(share, bool) or not isinstance(share, int | float) or not 0 <= share <= 1:
            return f"the {name} of a statement is from 0 to 1"
    for name, time in (("valid_from", one.valid_from), ("valid_to", one.valid_to)):
        if time is not None and (isinstance(time, bool) or not isinstance(time, int) or not ids.is_time(time)):
            return f"{name} of a statement is a time in milliseconds"
    if one.valid_from is not None and one.valid_to is not None and one.valid_to < one.valid_from:
        return "a statement does not end before it begins"
    if not one.records or any(isinstance(at, bool) or not isinstance(at, int) or at < 1 for at in one.records):
        return "a statement names the records that say it"
    return ""


BYTES_MAX = 50_000
"""What one learned memory may have, in UTF-8 (seed 001)."""

_FROM = frozenset(["message", "reply", "turn", "finding", "person", "note", "import", "task", "external"])
_SAYS_NOTHING = frozenset(
    ["", "unknown", "none", "null", "n/a", "na", "nothing", "undefined", "not specified", "unspecified", "-", "?"]
)

_ASKS = ("?", "\uff1f", "\u061f")
_BROAD = frozenset({Kind.FACT, Kind.EVENT, Kind.OBSERVATION})


class LearnOutcome(StrEnum):
    """The outcome of a memory that was offered.

    It is `new`; it is `evidence` for one that is there; it `updates` an older one; it was true in the `past` already;
    it is `known`: the same was learned from the same source; it was `forgotten` before; or it is `refused`.
    """

    NEW = "new"
    EVIDENCE = "evidence"
    UPDATES = "updates"
    PAST = "past"
    KNOWN = "known"
    FORGOTTEN = "forgotten"
    REFUSED = "refused"


@frozen
class LearnResult:
    """The memory that now holds what was offered, 0 for none, and the outcome of the offer; `why` it was refused."""

    memory_id: int
    how: LearnOutcome
    why: str = ""


@frozen
class UndoRequest:
    """Take back the newest memory that a person stored from a conversation; `at` is milliseconds UTC.

    `listener` is that person in a lane of that conversation. `by` names the request: applying it again under the same
    name takes back nothing more.
    """

    listener: Listener
    by: str
    at: int


@frozen
class UndoneMemory:
    """A memory that was taken back, and the memories that it had replaced and that are active again.

    Of the latter only those that the listener may read.
    """

    memory: Memory
    restored: tuple[Memory, ...] = ()


@frozen
class RememberedMemory:
    """A memory that a turn stored, and the ids of the memories that it replaced."""

    memory: Memory
    replaces: tuple[int, ...] = ()


COMMAND_KEY = "command:"
"""Keys of memories that `/remember` stores begin so; the id of its message follows."""

STATED_MAX = 8
"""The facts that one message states, of those that are learned by rules as soon as it is recorded."""


def stated_key(name: int | str, n: int) -> str:
    """The key of a memory that a message plainly states, the first being number 0.

    `name` is the id of the message, or the key of an imported one.
    """
    return f"stated:{name}:{n}"


STORED_IN = "stored_in"
"""Metadata of a correction: the scope of the conversation that made it, which may differ from that of its lane."""


def refused(memory: NewMemory) -> str:
    """Why a memory is not learned, "" when it is; by what it came from first, then by what it says.

    Not learned is what outsiders wrote, what has no source or another than people, replies, findings and imports, other
    kinds than LEARNABLE, what is longer than BYTES_MAX, and junk: nothing said, only punctuation, only small talk, a
    question, a slot whose value says nothing, and a fact about nobody that has one word which tells anything.
    """
    if memory.trust is message.Trust.EXTERNAL:
        return "what outsiders wrote is not learned"
    if memory.kind not in LEARNABLE:
        return f"a memory of kind {memory.kind} is not learned"
    if not memory.sources or any(source.kind not in _FROM for source in memory.sources):
        return "it does not come from what people said"
    if len(memory.text.encode("utf-8", "replace")) > BYTES_MAX:
        return f"it is longer than {BYTES_MAX:,} bytes"
    return junk(memory)


def junk(memory: NewMemory) -> str:
    """Why what a memory says is worth nothing, "" when it is worth keeping."""
    if not spelled(memory.text):
        return "it says nothing"
    if memory.attribute and " ".join(memory.value.split()).casefold() in _SAYS_NOTHING:
        return "its value says nothing"
    if memory.attribute and memory.subject:
        return ""
    if not (about := topic(memory.text)):
        return "it is small talk"
    if memory.text.rstrip().endswith(_ASKS):
        return "it asks, and states nothing"
    if len(about) < 2 and not (memory.subject or memory.subject_id) and memory.kind in _BROAD:
        return "it says nothing of anybody"
    return ""


def origins(sources: Sequence[Source]) -> frozenset[Source]:
    """Where something was said: its sources without the findings that read them, or these where there are no others."""
    return frozenset(one for one in sources if one.kind != "finding") or frozenset(sources)


def adds_evidence(sources: Sequence[Source], known: Sequence[Source]) -> bool:
    """Whether something said again counts: not from a source that is known, nor in the agent's own replies."""
    return any(one.kind != "reply" for one in origins(sources) - origins(known))


class Ruling(StrEnum):
    """What the newer of two memories is to the older."""

    SAME = "same"
    UPDATES = "updates"
    CONTRADICTS = "contradicts"
    DIFFERENT = "different"


@frozen
class Pair:
    """Two memories that the same listeners can read, each with the time since when it holds, in milliseconds UTC.

    They are `equal` where both fill one slot with one value: then nobody need be asked.
    """

    older: int
    newer: int
    texts: tuple[str, str]
    since: tuple[int, int]
    equal: bool = False


@frozen
class Ruled:
    """A ruling on a pair, and by which model; "" where none was asked."""

    older: int
    newer: int
    ruling: Ruling
    by: str = ""


@frozen
class RulePairs(commits.Commit[int]):
    """Keep rulings and do what they come to, each pair once; returns how many were new. `at` is milliseconds UTC.

    What is the same is merged, what updates takes the place of the older, what contradicts is associated with it.
    Nothing is deleted. Nobody's word takes the place of the owner's: it contradicts it.
    """

    rulings: tuple[Ruled, ...]
    at: int
