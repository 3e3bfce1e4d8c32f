"""Parts of a reply as they are published: events made once, so that each try publishes the same bytes.

A relay answers the second publication of an event with `duplicate`, and a client shows a message once, by its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from keepsaid.adapters.channels.abilities import NOSTR
from keepsaid.adapters.channels.nostr.keys import DIRECT, HEX, LEGACY, NostrForged, NostrKeys
from keepsaid.adapters.channels.nostr.people import PEOPLE_MAX, Participants
from keepsaid.domain.reply import StoredReply
from keepsaid.text.styled import PartLimits, StyledText, split
from keepsaid.values import frozen


@frozen
class NostrEvent:
    """An event as it is published: its id, its receiver (a public key) and its JSON."""

    id: str
    receiver: str
    text: str


@frozen
class NostrPart:
    """A part of a reply: the id of its message and its events, that of the account itself last.

    `refusal` says why it cannot be sent; then there are no events.
    """

    rumor: str
    events: Sequence[NostrEvent]
    refusal: str = ""


def bodies_of(reply: StoredReply, people: Participants | None, keys: NostrKeys, now_s: int) -> list[str]:
    """The body of each part of a reply: at least one. `now_s` is the time of the first, seconds UTC."""
    if people is None:
        return [_refused(f"it is not known who takes part in {reply.lane.conversation}")]
    if not people.others:
        return [_refused(f"{people.count} people are too many for a room of Nostr: {PEOPLE_MAX} at most")]
    anchor = reply.draft.reply_to
    bodies = []
    for n, text in enumerate(_texts(reply.draft.text)):
        # clients sort by whole seconds
        answered = anchor if n == 0 and anchor is not None and HEX.fullmatch(anchor) else None
        try:
            make = _legacy_body if people.is_legacy else _body
            bodies.append(make(text, answered, people, keys, now_s + n))
        except NostrForged as error:
            return [_refused(f"{error}")]
    return bodies or [_refused("the reply has no text")]


def part_of(body: str) -> NostrPart:
    """The part in a body."""
    given: Mapping[str, Any] = json.loads(body)
    events = [NostrEvent(one["id"], one["to"], one["event"]) for one in given.get("events", ())]
    return NostrPart(given.get("rumor", ""), events, given.get("refusal", ""))


def event_of(text: str, receiver: str) -> NostrEvent:
    """An event for a receiver, of its JSON."""
    return NostrEvent(str(json.loads(text)["id"]), receiver, text)


def _texts(text: str) -> Iterator[str]:
    """A text in pieces that fit into an event."""
    clean = text.encode("utf-8", "replace").decode()
    for piece in split(StyledText(clean), PartLimits(NOSTR.chars_max, 1, _json_bytes)):
        yield piece.text


def _json_bytes(character: str) -> int:
    """The bytes of a character in JSON."""
    if character in '"\\':
        return 2
    return 6 if character < " " else len(character.encode())


def _body(text: str, answered: str | None, people: Participants, keys: NostrKeys, at_s: int) -> str:
    """A message of kind 14: one wrap a receiver, and one for the account itself."""
    tags = [["p", person] for person in people.others]
    if answered is not None:
        tags.append(["e", answered, "", "reply"])
    number, rumor = keys.make_rumor(DIRECT, text, tags, at_s)
    wraps = [(person, keys.wrap(rumor, person)) for person in (*people.others, keys.public)]
    return _made(number, wraps)


def _legacy_body(text: str, answered: str | None, people: Participants, keys: NostrKeys, at_s: int) -> str:
    """A message of kind 4 (NIP-04): one event, signed by the account."""
    person = people.others[0]
    tags = [["p", person]] if answered is None else [["p", person], ["e", answered]]
    event = keys.sign(LEGACY, keys.encrypt_legacy(person, text), tags, at_s)
    return _made(str(json.loads(event)["id"]), [(person, event)])


def _made(number: str, events: Sequence[tuple[str, str]]) -> str:
    made = [{"id": json.loads(event)["id"], "to": person, "event": event} for person, event in events]
    return json.dumps({"rumor": number, "events": made}, ensure_ascii=False)


def _refused(reason: str) -> str:
    return json.dumps({"refusal": reason})
