"""Parts of a reply as they are published: events made once, so that each try publishes the same bytes.

A relay answers the second publication of an event with `duplicate`, and a client shows a message once, by its id.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from keepsaid.adapters.channels.abilities import NOSTR
from keepsaid.adapters.channels.nostr.keys import DIRECT, FILE, HEX, LEGACY, NostrForged, NostrKeys
from keepsaid.adapters.channels.nostr.people import PEOPLE_MAX, Participants
from keepsaid.adapters.channels.nostr.sealing import NewUpload, SealedUpload, read_sealed
from keepsaid.adapters.channels.nostr.uploading import UploadState
from keepsaid.adapters.channels.uploads import GONE, not_sent
from keepsaid.domain.reply import StoredReply
from keepsaid.text.styled import PartLimits, StyledText, split
from keepsaid.values import frozen

_NO_FILES = "messages of kind 4 bring no files"
_NOT_TAKEN = "no server of files takes it"


@frozen
class NostrEvent:
    """An event as it is published: its id, its receiver (a public key) and its JSON."""

    id: str
    receiver: str
    text: str


@frozen
class NostrPart:
    """A part of a reply: the id of its message and its events, that of the account itself last.

    `refusal` says why it cannot be sent; then there are no events. A part with a `file` is published once a server has
    it; `instead` is what is published otherwise, by the reason.
    """

    rumor: str
    events: Sequence[NostrEvent]
    refusal: str = ""
    file: SealedUpload | None = None
    instead: Mapping[str, NostrPart] = field(default_factory=dict)


def bodies_of(
    reply: StoredReply,
    people: Participants | None,
    keys: NostrKeys,
    now_s: int,
    files: Sequence[NewUpload | str] = (),
) -> list[str]:
    """The body of each part of a reply: at least one. `now_s` is the time of the first, seconds UTC.

    Its `files` follow its text; a text among them is what is said in the place of one.
    """
    if people is None:
        return [_refused(f"it is not known who takes part in {reply.lane.conversation}")]
    if not people.others:
        return [_refused(f"{people.count} people are too many for a room of Nostr: {PEOPLE_MAX} at most")]
    anchor = reply.draft.reply_to
    bodies = []
    texts = _texts(reply.draft.text) if reply.draft.text.strip() or not files else ()
    for n, content in enumerate((*texts, *files)):
        # clients sort by whole seconds
        answered = anchor if n == 0 and anchor is not None and HEX.fullmatch(anchor) else None
        try:
            made = _PartMaker(people, keys, now_s + n, answered).make(content)
        except NostrForged as error:
            return [_refused(f"{error}")]
        bodies.append(json.dumps(made, ensure_ascii=False))
    return bodies or [_refused("the reply has no text")]


def part_of(body: str) -> NostrPart:
    """The part in a body."""
    return _part_in(json.loads(body))


def _part_in(given: Mapping[str, Any]) -> NostrPart:
    events = [NostrEvent(one["id"], one["to"], one["event"]) for one in given.get("events", ())]
    file = read_sealed(given["file"]) if "file" in given else None
    instead = {why: _part_in(one) for why, one in given.get("instead", {}).items()}
    return NostrPart(given.get("rumor", ""), events, given.get("refusal", ""), file, instead)


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


@frozen
class _PartMaker:
    """Makes a part for some people at a time, seconds UTC; `answered` is the id of the message that it answers."""

    people: Participants
    keys: NostrKeys
    at_s: int
    answered: str | None

    def make(self, content: NewUpload | str) -> Mapping[str, object]:
        """The part of a text, or of a file. Raises NostrForged."""
        if isinstance(content, str):
            return self._text(content)
        file = content.file
        if self.people.is_legacy:
            return self._text(not_sent(file.name, _NO_FILES))
        whys = {UploadState.GONE: GONE, UploadState.REFUSED: _NOT_TAKEN}
        instead = {state.value: self._text(not_sent(file.name, why)) for state, why in whys.items()}
        return {**self._wrapped(FILE, content.urls[0], content.tags), "file": file.stored, "instead": instead}

    def _text(self, text: str) -> Mapping[str, object]:
        return self._legacy(text) if self.people.is_legacy else self._wrapped(DIRECT, text, ())

    def _wrapped(self, kind: int, content: str, more: Sequence[Sequence[str]]) -> Mapping[str, object]:
        """A message of kind 14 or 15: one wrap a receiver, and one for the account itself."""
        tags: list[Sequence[str]] = [["p", person] for person in self.people.others]
        if self.answered is not None:
            tags.append(["e", self.answered, "", "reply"])
        number, rumor = self.keys.make_rumor(kind, content, [*tags, *more], self.at_s)
        receivers = (*self.people.others, self.keys.public)
        return _made(number, [(person, self.keys.wrap(rumor, person)) for person in receivers])

    def _legacy(self, text: str) -> Mapping[str, object]:
        """A message of kind 4 (NIP-04): one event, signed by the account."""
        person, answered = self.people.others[0], self.answered
        tags = [["p", person]] if answered is None else [["p", person], ["e", answered]]
        event = self.keys.sign(LEGACY, self.keys.encrypt_legacy(person, text), tags, self.at_s)
        return _made(str(json.loads(event)["id"]), [(person, event)])


def _made(number: str, events: Sequence[tuple[str, str]]) -> Mapping[str, object]:
    made = [{"id": json.loads(event)["id"], "to": person, "event": event} for person, event in events]
    return {"rumor": number, "events": made}


def _refused(reason: str) -> str:
    return json.dumps({"refusal": reason})
