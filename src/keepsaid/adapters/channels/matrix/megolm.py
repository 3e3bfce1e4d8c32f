"""Megolm: the sessions of rooms, by which their messages are encrypted.

Source: Matrix specification v1.16, client-server API, module "End-to-end encryption".
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from hashlib import blake2b
from typing import Any

import vodozemac

from keepsaid.adapters.channels.matrix.olm import MEGOLM, PICKLE_KEY, OlmPayload, inside
from keepsaid.adapters.channels.matrix.records import CryptoRecords, is_nameable
from keepsaid.adapters.channels.matrix.updates import Event
from keepsaid.values import frozen

Target = tuple[str, str]
"""A device that is to read a room: its user and its id."""

MESSAGES_MAX, AGE_MAX_MS = 100, 7 * 86_400_000
"""A room gets a new session after this number of messages, or this time: the defaults of the specification."""

_SEEN_MAX = 1_000
_OUT, _IN, _SEEN = "out", "in", "seen"


class KeyMissing(Exception):
    """The key of an event did not come yet; `session` names it."""

    def __init__(self, session: str) -> None:
        super().__init__("its key did not come yet")
        self.session = session


class EventRefused(Exception):
    """An event is not what it claims to be, or cannot be read by anybody."""


@frozen
class MegolmPlaintext:
    """What an event of an encrypted room says, and the keys of the device that sent it."""

    kind: str
    content: dict[str, Any]
    curve: str
    ed: str
    session: str


class MegolmMachine:
    """The sessions of rooms: our own, one a room, and those of others, by the user whose device sent the key."""

    def __init__(self, device: str, records: CryptoRecords) -> None:
        self._device = device
        self._records = records

    def add(self, payload: OlmPayload) -> bool:
        """Keep the key of a session that a device sent; whether anything can be read with it that could not before."""
        told = payload.content
        room, session, key = (told.get(name) for name in ("room_id", "session_id", "session_key"))
        named = told.get("algorithm") == MEGOLM and is_nameable(room, session, payload.sender)
        if not named or not isinstance(key, str):
            return False
        name = (_IN, str(room), str(session), payload.sender)
        try:
            opened = vodozemac.InboundGroupSession(vodozemac.SessionKey(key))
        except ValueError:
            return False
        if opened.session_id != session:
            return False
        kept = self._records.read(*name)
        if kept is not None and kept["first"] <= opened.first_known_index:
            return False
        row = {"pickle": opened.pickle(PICKLE_KEY), "first": opened.first_known_index}
        self._records.write({**row, "curve": payload.curve, "ed": payload.ed}, *name)
        return True

    def has_key(self, room: str, session: str, user: str) -> bool:
        """Whether the key of a session of a user is here."""
        return self._records.read(_IN, room, session, user) is not None

    def open(self, room: str, event: Event) -> MegolmPlaintext:
        """What an event says. Raises KeyMissing and EventRefused.

        The place of a message in its session belongs to one event: another one with the same place is a replay.
        """
        content, user, number = event.get("content"), event.get("sender"), event.get("event_id")
        session, sealed = inside(content, "session_id"), inside(content, "ciphertext")
        if inside(content, "algorithm") != MEGOLM or not isinstance(sealed, str):
            raise EventRefused("its encryption is not Megolm")
        if not is_nameable(room, session, user, number):
            raise EventRefused("it names no session")
        kept = self._records.read(_IN, room, session, str(user))
        if kept is None:
            raise KeyMissing(session)
        try:
            message = vodozemac.MegolmMessage.from_base64(sealed)
            if message.message_index() < kept["first"]:
                raise KeyMissing(session)
            opened = vodozemac.InboundGroupSession.from_pickle(kept["pickle"], PICKLE_KEY).decrypt(message)
            told = json.loads(opened.plaintext)
        except (ValueError, RecursionError) as error:
            raise EventRefused(f"it cannot be decrypted: {type(error).__name__}") from None
        kind, said = inside(told, "type"), inside(told, "content")
        if inside(told, "room_id") != room or not isinstance(kind, str) or not isinstance(said, dict):
            raise EventRefused("it was encrypted for another room, or holds no event")
        self._see((_SEEN, room, session, str(user)), opened.message_index, str(number))
        return MegolmPlaintext(kind, said, kept["curve"], kept["ed"], session)

    def begin(self, room: str, targets: Collection[Target], now_ms: int) -> list[Target]:
        """Use a session that only `targets` have; returns those that lack its key.

        It is a new one where there is none, after 100 messages or a week, and where a device that has the key is not
        among them any more.
        """
        kept = self._records.read(_OUT, self._device, room)
        held = _held(kept)
        is_over = kept is not None and (kept["count"] >= MESSAGES_MAX or now_ms - kept["at"] >= AGE_MAX_MS)
        if kept is None or is_over or held - set(targets):
            made = vodozemac.GroupSession()
            self._write(room, made, {"at": now_ms, "count": 0, "held": []})
            held = set()
        return sorted(set(targets) - held)

    def room_key(self, room: str) -> dict[str, Any]:
        """The content of a message that gives a device the key of our session, from the next message on."""
        session, _ = self._ours(room)
        key = session.session_key.to_base64()
        return {"algorithm": MEGOLM, "room_id": room, "session_id": session.session_id, "session_key": key}

    def shared(self, room: str, targets: Collection[Target]) -> None:
        """Devices that have the key of our session from now on."""
        session, kept = self._ours(room)
        self._write(room, session, {**kept, "held": sorted({*_held(kept), *targets})})

    def seal(self, room: str, kind: str, contents: list[Mapping[str, Any]], curve: str) -> list[dict[str, Any]]:
        """Several contents of one message encrypted, as contents of events; they count as one message.

        What the homeserver has to read stays outside: the relation of the event.
        """
        session, kept = self._ours(room)
        made = []
        for content in contents:
            said = {"type": kind, "content": content, "room_id": room}
            plain = json.dumps(said, ensure_ascii=False).encode("utf-8", "replace")
            told = {
                "algorithm": MEGOLM,
                "sender_key": curve,
                "device_id": self._device,
                "session_id": session.session_id,
                "ciphertext": session.encrypt(plain).to_base64(),
            }
            related = content.get("m.relates_to")
            made.append(told if related is None else {**told, "m.relates_to": related})
        self._write(room, session, {**kept, "count": kept["count"] + 1})
        return made

    def _see(self, name: tuple[str, ...], index: int, number: str) -> None:
        """Note which event has a place in a session; raises EventRefused for another one, and one too far back."""
        kept = self._records.read(*name) or {"from": 0, "events": {}}
        mark = blake2b(number.encode(), digest_size=9).hexdigest()
        if kept["events"].get(str(index), mark) != mark or index < kept["from"]:
            raise EventRefused("it repeats an earlier message")
        if str(index) in kept["events"]:
            return
        kept["events"][str(index)] = mark
        if len(kept["events"]) > _SEEN_MAX:
            oldest = min(map(int, kept["events"]))
            del kept["events"][str(oldest)]
            kept["from"] = oldest + 1
        self._records.write(kept, *name)

    def _ours(self, room: str) -> tuple[vodozemac.GroupSession, dict[str, Any]]:
        kept = self._records.read(_OUT, self._device, room)
        if kept is None:
            raise ValueError("the room has no session of ours")
        return vodozemac.GroupSession.from_pickle(kept["pickle"], PICKLE_KEY), kept

    def _write(self, room: str, session: vodozemac.GroupSession, kept: Mapping[str, Any]) -> None:
        self._records.write({**kept, "pickle": session.pickle(PICKLE_KEY)}, _OUT, self._device, room)


def _held(kept: Mapping[str, Any] | None) -> set[Target]:
    """The devices that have the key of a session."""
    return {(user, device) for user, device in kept["held"]} if kept is not None else set()
