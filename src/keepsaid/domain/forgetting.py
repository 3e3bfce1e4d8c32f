"""Forgetting: what is to go, how far it has come, and what went (design: section 4.3).

A forgetting is worked off in steps, each of which can be repeated: requested -> hidden -> erased -> scrubbed ->
checkpointed -> done. From the request on, tombstones stop what goes from being learned again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from keepsaid.domain.commits import Commit
from keepsaid.domain.text import digest
from keepsaid.domain.words import STOPWORDS

Counts = tuple[tuple[str, int], ...]
"""How much of what, by the place it stood in."""

PIECE = 100
"""Rows that one commit scrubs at most."""

UNFINISHED = ("requested", "hidden", "erased", "scrubbed", "checkpointed", "restoring")
"""States in which there is work left."""

_WORD = re.compile(r"\w+")
_SHORTEST = 3


@dataclass(frozen=True, slots=True)
class Wish:
    """What a person wants forgotten: memories and messages by id, all of a person or a conversation, or a text.

    `joined` are the other identities of the same person, as they stand when it is looked for. `again` is true for what
    was forgotten before and came back: then a memory leads to no message that it was made from.
    """

    memories: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    person: str = ""
    conversation: str = ""
    text: str = ""
    joined: tuple[str, ...] = ()
    again: bool = False

    @property
    def persons(self) -> frozenset[str]:
        """All that the person is known as."""
        return frozenset((self.person, *self.joined)) - {""}

    @property
    def how(self) -> str:
        """How it was chosen, in a word that repeats nothing of it."""
        named = (("person", self.person), ("conversation", self.conversation), ("filter", self.text))
        return next((how for how, given in named if given), "id")


@dataclass(frozen=True, slots=True)
class Wanted:
    """All that goes.

    `messages` lose what was said; `turns` all they left but what people said in them; `traces` are turns of which
    only trace and steps go. `words` are those that nothing that stays says: what holds one goes too. `digests` name
    what must not come back, `echoes` the sentences that are not remembered when they are said again. `people` are the
    identities of a person who goes as a whole. `tasks` and `schedules` lose their words, and end where they have not.
    """

    memories: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()
    words: frozenset[str] = frozenset()
    digests: tuple[bytes, ...] = ()
    echoes: tuple[bytes, ...] = ()
    people: tuple[str, ...] = ()
    tasks: tuple[int, ...] = ()
    schedules: tuple[int, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to forget."""
        return not (self.memories or self.messages or self.turns or self.traces or self.tasks or self.schedules)


class Work(NamedTuple):
    """Tasks and schedules, and the messages that tell of these tasks, or that these schedules put into the buffer.

    `turns` wrote what is looked for, `traces` are turns whose steps alone hold it.
    """

    tasks: tuple[int, ...] = ()
    schedules: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Forgetting:
    """A request and how far it has come; times are milliseconds UTC. `counts` is what went so far, by place.

    Until `undo_until` it can be undone, where the person chose that: what went is kept aside, and read by nothing else.
    """

    id: int
    state: str
    how: str
    by: str
    requested_at: int
    changed_at: int
    counts: Counts = ()
    undo_until: int | None = None

    def undoable(self, at: int) -> bool:
        """Whether it can still be undone."""
        return self.state == "done" and self.undo_until is not None and at < self.undo_until


class Traced(NamedTuple):
    """A memory with what it was made from; `refs` are its sources as `kind:ref`, `digests` its tombstones.

    Memories with the same digest in `said` say the same, to the same listeners; a reply has none. `person` said it.
    """

    id: int
    key: str
    kind: str
    derived: bool
    text: str
    refs: tuple[str, ...]
    digests: tuple[bytes, ...]
    said: tuple[bytes, ...] = ()
    person: str = ""


class Held(NamedTuple):
    """Turns that hold something: those whose records do, and those of which only trace or steps do."""

    turns: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()


class Scrubbed(NamedTuple):
    """What one piece of scrubbing did: rows that are left for the next, and those that wait for a turn to end."""

    left: int
    waiting: int


@dataclass(frozen=True, slots=True)
class RequestForgetting(Commit[bool]):
    """Write down what goes, and bury it: from here on it is not learned again. False when the id is known.

    `hashes` are tombstones of the other store of the home that are not known here. What goes is kept aside where it may
    be undone until a time (milliseconds UTC).
    """

    id: int
    how: str
    by: str
    wanted: Wanted
    at: int
    hashes: tuple[bytes, ...] = ()
    undo_until: int | None = None


@dataclass(frozen=True, slots=True)
class ScrubForgotten(Commit[Scrubbed]):
    """Remove one piece of what goes from the operational store, and count it.

    A turn that is open keeps what it left until it has ended. A queued batch whose every message goes is dropped,
    a reply that is not sent yet is not delivered. Lanes begin their summary anew before the first record that goes.
    `more` was found since the request, and goes too.
    """

    id: int
    at: int
    more: Wanted = Wanted()


@dataclass(frozen=True, slots=True)
class MoveForgetting(Commit[bool]):
    """A step is over: the verb of its move, and what went in it. Scrubbed, nothing is kept of what it was.

    False when it is not in a state that has this move.
    """

    id: int
    verb: str
    at: int
    counts: Counts = ()


@dataclass(frozen=True, slots=True)
class PutBack(Commit[bool]):
    """Put back what a forgetting kept aside, and take its tombstones away; whether anything was kept.

    Replies, questions and batches stay as they are: nothing is sent or answered that was called off. Lanes begin their
    summary anew before the first record that came back.
    """

    id: int
    at: int


@dataclass(frozen=True, slots=True)
class DropAside(Commit[bool]):
    """Delete what a forgetting kept aside; whether anything was kept.

    With `emptied` the logs that may still hold it are empty, too: it is gone for good. Until then its deletion stays
    due, and is made again after a crash.
    """

    id: int
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class EmptyLog(Commit[bool]):
    """Move the log into the file and cut it to nothing; False while somebody still reads it.

    Unless it is `whole`, what upkeep has still to write is left for later.
    """

    whole: bool = True


def summed(*counts: Counts) -> Counts:
    """Counts together, by name."""
    found: dict[str, int] = {}
    for one in counts:
        for name, n in one:
            found[name] = found.get(name, 0) + n
    return tuple(sorted((name, n) for name, n in found.items() if n))


def words_in(text: str) -> set[str]:
    """The words of a text, however they are written."""
    return {word.casefold() for word in _WORD.findall(text)}


def telling(texts: Iterable[str]) -> frozenset[str]:
    """Words that may tell what was said: long enough, or numbers, and not those that say nothing."""
    found = {word for text in texts for word in words_in(text)}
    return frozenset(word for word in found if (len(word) >= _SHORTEST or word.isdecimal()) and word not in STOPWORDS)


def message_name(message_id: int) -> str:
    """The name of the memory that a message becomes."""
    return f"message:{message_id}"


def reply_name(turn_id: int) -> str:
    """The name of the memory that a turn's reply becomes."""
    return f"reply:{turn_id}"


def task_name(task_id: int) -> str:
    """The name of the memory that the result of a task becomes."""
    return f"task:{task_id}"


def source_name(ref: str) -> str:
    """The name under which a source is forgotten: a turn goes with its reply."""
    kind, _, number = ref.partition(":")
    return f"reply:{number}" if kind == "turn" else ref


def name_digest(name: str) -> bytes:
    """What is buried of a memory's name."""
    return digest("memory", name)


def slot_digest(subject: str, attribute: str, value: str) -> bytes:
    """What is buried of a fact: that this is the value of this attribute of this subject."""
    return digest("slot", subject.casefold(), attribute.casefold(), value.casefold())
