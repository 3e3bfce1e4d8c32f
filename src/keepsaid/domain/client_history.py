"""The history that a client sends with each call: which of it is stored, and where that which is new belongs.

Clients that speak the OpenAI protocol keep the conversation themselves and send all of it each time. The texts of its
people form a chain of hashes, one a message; a message is stored with the hash of its place (spec: doors, A4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import StrEnum

from keepsaid.domain.message import Lane, topic_of
from keepsaid.text.normal import digest, normalise
from keepsaid.values import frozen

SAME_CALL_MS = 60_000
"""So long a call of one line and no key is the same as the last one, though its answer was fetched."""

VERSIONS_MAX = 100
"""The newest answers to one message that are compared by their names."""

CHAIN_MAX = 200
"""The newest messages of a history whose places are looked up."""


class Side(StrEnum):
    """Who said a line."""

    USER = "user"
    ASSISTANT = "assistant"


@frozen
class HistoryLine:
    """A line of a history; `beside` is a hash of what came with its words, such as pictures."""

    side: Side
    text: str
    beside: str = ""


@frozen
class ChainedMessage:
    """A stored message of a client: the hash of its place, its number in its lane, and how many messages that has.

    `key` is the external id it came under: the key of what was said, and behind a slash that of its answer, if the
    client names answers. `is_fetched` says that its answer was given to a client.
    """

    id: int
    lane: Lane
    number: int
    head: int
    place: str
    key: str
    received_at: int
    is_fetched: bool = False

    @property
    def is_last(self) -> bool:
        """Whether nothing follows it in its lane."""
        return self.number == self.head

    @property
    def said_key(self) -> str:
        """The key of what was said."""
        return self.key.partition("/")[0]

    @property
    def answer_key(self) -> str:
        """The key of its answer; "" where the client named none."""
        return self.key.partition("/")[2]


@frozen
class ClientCall:
    """One call: its conversation if the client names one, its history, which ends with a user's line, and its key.

    With `follows`, the client leaves the history to the server: the lines are new ones, said after that message.
    `speaker` is who speaks, where several share a key: nobody's chain is another's. `answer` is the client's name of
    the answer: under another name than before, the same call asks for another answer. What is said in a `temporary`
    chat is not remembered.
    """

    lines: tuple[HistoryLine, ...]
    conversation: str = ""
    key: str = ""
    follows: ChainedMessage | None = None
    speaker: str = ""
    answer: str = ""
    temporary: bool = False

    @property
    def answer_key(self) -> str:
        """The name of the answer as it is stored; "" without one."""
        return digest(self.answer).hex()[:24] if self.answer else ""

    @property
    def stored_key(self) -> str:
        """The key as it is stored, which no other conversation has; "" without one."""
        return f"key:{digest(self.conversation, self.key).hex()}" if self.key else ""

    @property
    def chain(self) -> tuple[str, ...]:
        """The hashes of the places of its users' lines, oldest first."""
        found, place = list[str](), self.follows.place if self.follows else self.speaker
        for line in self.lines:
            if line.side is Side.USER:
                place = digest(place, _plain(line.text), line.beside).hex()
                found.append(place)
        return tuple(found)


@frozen
class Placement:
    """Where a call belongs: it is that of a message that is `stored`, or a new message.

    A new one has a conversation, a topic ("" for the root lane), the hash of its place and a key. Where it leaves the
    strand that went on, its lane begins with what was said up to the message `after`. `text` is what is new in it,
    `unseen` are earlier lines of the client that are stored nowhere. With `repeats`, nothing new was said: it asks for
    another answer to that message. `edited` is a message to which the client shows another answer than ours. A new
    message that goes on in a lane stands `behind` the last one there.
    """

    stored: ChainedMessage | None = None
    conversation: str = ""
    topic: str = ""
    place: str = ""
    key: str = ""
    text: str = ""
    unseen: tuple[HistoryLine, ...] = ()
    after: int | None = None
    repeats: ChainedMessage | None = None
    edited: ChainedMessage | None = None
    behind: ChainedMessage | None = None


@frozen
class KnownMessages:
    """What is stored of the places of a call: the newest message of each, and all messages at its last place.

    `newest` is the last message of its conversation.
    """

    places: Sequence[ChainedMessage] = ()
    newest: ChainedMessage | None = None
    versions: Sequence[ChainedMessage] = ()


def placement(call: ClientCall, known: KnownMessages, now_ms: int) -> Placement:
    """Decide where a call belongs."""
    chain = call.chain
    places = {one.place: one for one in sorted(known.places, key=lambda one: one.id)}
    last, newest = places.get(chain[-1]), known.newest
    is_same = last is not None and _is_same(call, last, now_ms)
    if last is not None and is_same and (given := _answered(call, (last, *known.versions))) is not None:
        return Placement(given)
    named = digest(call.conversation, chain[-1], str(last.id) if last is not None else None).hex()
    found = [n for n, place in enumerate(chain[:-1], 1) if place in places]
    before = call.follows or (places[chain[found[-1] - 1]] if found else None)
    if last is not None and is_same:
        made = Placement(place=chain[-1], key=f"{last.said_key}/{call.answer_key}", repeats=last)
        return _fork(made, last.lane, named, None if before is None else before.id)
    conversation, key = call.conversation or f"chat-{named[:24]}", call.stored_key or f"chain:{named}"
    unseen, text = _new_lines(call.lines, found[-1] if found else 0)
    key = f"{key}/{call.answer_key}" if call.answer else key
    made = Placement(None, conversation, "", chain[-1], key, text, unseen)
    if before is not None:
        return _in_lane(made, before) if before.is_last else _fork(made, before.lane, named, before.id)
    if newest is None:
        return made
    if len(call.lines) > 1:
        # the client shortened its history, and the lane has it whole
        return replace(_in_lane(made, newest), unseen=())
    return _fork(made, newest.lane, named, None)


def shown_answer(call: ClientCall, known: Sequence[ChainedMessage]) -> tuple[ChainedMessage, str] | None:
    """The last known message before the new ones, and the answer to it that the client shows.

    None where no message is known, or the client shows none.
    """
    if call.follows is not None:
        return None
    places, chain = {one.place: one for one in known}, call.chain
    users = [n for n, line in enumerate(call.lines) if line.side is Side.USER]
    at = next((n for n in reversed(range(len(chain) - 1)) if chain[n] in places), None)
    if at is None or call.lines[users[at] + 1].side is Side.USER:
        return None
    return places[chain[at]], call.lines[users[at] + 1].text


def is_answer_shown(shown: str, ours: str) -> bool:
    """Whether a client shows our answer, however spaced, be it behind what the model wrote before it called tools."""
    return _plain(shown).endswith(_plain(ours))


def _is_same(call: ClientCall, last: ChainedMessage, now_ms: int) -> bool:
    """Whether a call is that of the stored message at its place: always where a history leads to that place."""
    if len(call.lines) > 1 or call.follows is not None:
        return True
    if call.key:
        return last.said_key == call.stored_key
    if call.answer and (call.conversation or last.answer_key == call.answer_key):
        return True
    return not last.is_fetched or abs(now_ms - last.received_at) <= SAME_CALL_MS


def _answered(call: ClientCall, versions: Sequence[ChainedMessage]) -> ChainedMessage | None:
    """The message whose answer a call asks for: the newest, or the one that has the answer of this name."""
    if not call.answer:
        return versions[0]
    return next((one for one in versions if one.answer_key == call.answer_key), None)


def _new_lines(lines: Sequence[HistoryLine], known: int) -> tuple[tuple[HistoryLine, ...], str]:
    """The text that is to be answered, and the lines before it that follow the first `known` of users' lines.

    What was answered to the last of these is left out: the lane has the answer.
    """
    users = [n for n, line in enumerate(lines) if line.side is Side.USER]
    start = users[known - 1] + 1 if known else 0
    if known and lines[start].side is Side.ASSISTANT:
        start += 1
    end = len(lines)
    while end > start and lines[end - 1].side is Side.USER:
        end -= 1
    return tuple(lines[start:end]), "\n\n".join(line.text for line in lines[end:])


def _in_lane(made: Placement, last: ChainedMessage) -> Placement:
    return replace(made, conversation=last.lane.conversation, topic=topic_of(last.lane) or "", behind=last)


def _fork(made: Placement, lane: Lane, named: str, after: int | None) -> Placement:
    return replace(made, conversation=lane.conversation, topic=f"fork-{named[:16]}", after=after)


def _plain(text: str) -> str:
    """A text as places compare it: however it is spaced."""
    return " ".join(normalise(text).split())
