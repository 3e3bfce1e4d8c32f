"""Forgetting: requests, their states and receipts, and hashes by which forgotten sentences are found again."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from keepsaid.domain.commits import Commit
from keepsaid.text.languages import STOPWORDS
from keepsaid.text.normal import digest
from keepsaid.text.patterns import lazy
from keepsaid.text.topics import topic
from keepsaid.values import frozen

Counts = tuple[tuple[str, int], ...]
"""How much of what, by the place it stood in."""

PIECE = 100
"""Rows that one commit scrubs at most."""

_WORD = lazy(r"\w+")
_SHORTEST, _SHORTEST_NUMBER = 3, 2


@frozen
class ForgetSelector:
    """Selects what to forget: memories and messages by id, all of a person or a conversation, or a text.

    `joined` are the other identities of the same person at the time of the search. `is_repeat` is true for
    what was forgotten before and came back: then a memory does not select the messages it was made from, and
    `tasks` and `schedules` are those that came back.
    """

    memories: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    person: str = ""
    conversation: str = ""
    text: str = ""
    joined: tuple[str, ...] = ()
    is_repeat: bool = False
    tasks: tuple[int, ...] = ()
    schedules: tuple[int, ...] = ()

    @property
    def persons(self) -> frozenset[str]:
        """All that the person is known as."""
        return frozenset((self.person, *self.joined)) - {""}

    @property
    def how(self) -> str:
        """How it was chosen, in a word that repeats nothing of it."""
        named = (("person", self.person), ("conversation", self.conversation), ("filter", self.text))
        return next((how for how, given in named if given), "id")


@frozen
class ForgetTargets:
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
    """Tasks and schedules, and the messages that report these tasks, or that these schedules put into the buffer.

    `messages` also has those whose delivered quote holds what is looked for.
    `turns` wrote what is looked for, `traces` are turns whose steps alone hold it.
    """

    tasks: tuple[int, ...] = ()
    schedules: tuple[int, ...] = ()
    messages: tuple[int, ...] = ()
    turns: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()


@frozen
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
    `into` is the memory that it was merged into, 0 for none: it is deleted with that one.
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
    into: int = 0


class HoldingTurns(NamedTuple):
    """Turns that hold something: those whose records do, and those of which only trace or steps do."""

    turns: tuple[int, ...] = ()
    traces: tuple[int, ...] = ()


class Scrubbed(NamedTuple):
    """What one piece of scrubbing did: rows that are left for the next, and those that wait for a turn to end."""

    left: int
    waiting: int


@frozen
class RequestForgetting(Commit[bool]):
    """Write down what goes, and bury it: from here on it is not learned again. False when the id is known.

    `hashes` are tombstones of the other store of the home that are not known here. What goes is kept aside where it may
    be undone until a time (milliseconds UTC).
    """

    id: int
    how: str
    by: str
    wanted: ForgetTargets
    at: int
    hashes: tuple[bytes, ...] = ()
    undo_until: int | None = None


@frozen
class ScrubForgotten(Commit[Scrubbed]):
    """Remove one piece of what goes from the operational store, and count it.

    A turn that is open keeps what it left until it has ended. A queued batch whose every message goes is dropped,
    a reply that is not sent yet is not delivered. Lanes restart their summary before the first record that goes.
    `more` was found since the request, and goes too. `counts` are added to the receipt.
    """

    id: int
    at: int
    more: ForgetTargets = ForgetTargets()
    counts: Counts = ()


@frozen
class MoveForgetting(Commit[bool]):
    """A step is over: the verb of its move, and what went in it. Scrubbed, nothing is kept of what it was.

    False when it is not in a state that has this move.
    """

    id: int
    verb: str
    at: int
    counts: Counts = ()


@frozen
class PutBack(Commit[bool]):
    """Put back what a forgetting kept aside, and take its tombstones away; whether anything was kept.

    Replies, questions and batches stay as they are: nothing is sent or answered that was called off. Lanes restart
    their summary before the first record that came back.
    """

    id: int
    at: int


@frozen
class DropUndo(Commit[bool]):
    """Delete the undo data of a forgetting; returns whether there was any.

    With `emptied` the logs that may still hold it are empty too: it is gone for good. Until then its deletion
    stays due, and is repeated after a crash.
    """

    id: int
    emptied: bool = False


@frozen
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
    long_enough = (word for word in found if len(word) >= (_SHORTEST_NUMBER if word.isdecimal() else _SHORTEST))
    return frozenset(word for word in long_enough if word not in STOPWORDS)


def message_name(message_id: int) -> str:
    """The name of the memory that a message becomes."""
    return f"message:{message_id}"


def reply_name(turn_id: int) -> str:
    """The name of the memory that a turn's reply becomes."""
    return f"reply:{turn_id}"


def task_name(task_id: int) -> str:
    """The name of the memory that the result of a task becomes."""
    return f"task:{task_id}"


def work_digest(kind: str, number: int) -> bytes:
    """What is buried of a task or a schedule that loses its words."""
    return digest("work", kind, str(number))


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


AGENT = ""
"""Names the agent as the speaker of a text: an echo by it is one whoever said the sentence."""

SENTENCES_MAX = 200
"""Sentences of a text that are hashed; later ones are not recognised."""

_WORDS_MAX = 60
_TELLING_LEAST = 2
_LED_BY_MAX = 6
_PARTS_MAX = 5

_ENDS = lazy(
    r"(?<!\b[A-Za-z])(?<!\b[DMS][rst])(?<!\bMrs)[.!?\u2026]+(?=\s|$|[\"\u201d\u00bb)*_])"
    r"|[\n;:\"\u201c\u201d\u00ab\u00bb\u201e()\[\]{}|*_`\u3002\uff01\uff1f\uff1b\uff1a]+|\s[-\u2013\u2014]\s"
)
_PARTS = lazy(r"[,\uff0c\u3001]")
_ECHO_WORD = lazy(r"[^\W_]+")


def sentences(text: str) -> Iterator[str]:
    """The sentences of a text that say something by which they can be recognised, each as its folded words."""
    for words, unit in _units(text):
        if len(words) <= _WORDS_MAX and _weight(words) >= _TELLING_LEAST and topic(unit):
            yield " ".join(words)


def sentence_digest(person: str, sentence: str) -> bytes:
    """The digest under which a sentence of a person is forgotten; AGENT for an echo of it by the agent."""
    return digest("sentence", person, sentence)


def echo_digests(person: str, text: str) -> tuple[bytes, ...]:
    """The digests of all sentences that a text of a person may repeat.

    A sentence is recognised between commas, and behind a few other words ("ok, I have noted that ...").
    """
    found: dict[str, None] = {}
    for _, unit in _units(text):
        parts = _PARTS.split(unit, _PARTS_MAX)
        for start in range(len(parts)):
            for end in range(start + 1, len(parts) + 1):
                words = _folded(" ".join(parts[start:end]))
                begins = range(max(0, len(words) - _WORDS_MAX), min(_LED_BY_MAX, len(words) - 1) + 1)
                found |= {" ".join(words[begin:]): None for begin in begins}
    return tuple(sentence_digest(person, one) for one in found)


def _units(text: str) -> Iterable[tuple[list[str], str]]:
    pieces = _ENDS.split(text, SENTENCES_MAX)[:SENTENCES_MAX]
    return ((words, unit) for unit in pieces if (words := _folded(unit)))


def _folded(text: str) -> list[str]:
    return _ECHO_WORD.findall(unicodedata.normalize("NFC", text[: _WORDS_MAX * 40].casefold()))


def _weight(words: Sequence[str]) -> int:
    """How many words tell something; one of a script without spaces counts for each two characters."""
    telling = [word for word in words if word not in STOPWORDS and (len(word) >= _SHORTEST or not word.isascii())]
    telling += [word for word in words if word.isdecimal() and len(word) < _SHORTEST]
    return sum(1 if word.isascii() else max(1, len(word) // 2) for word in telling)
