"""A person's device in encrypted rooms of a scripted homeserver, by the cryptography of matrix-nio.

It is another implementation than the one that the channel uses: what one writes the other has to read. It needs the
packages `matrix-nio[e2e]`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from nio.crypto import DeviceStore, GroupSessionStore, Olm, SessionStore
from nio.crypto.attachments import decrypt_attachment
from nio.events import MegolmEvent, OlmEvent
from nio.responses import KeysClaimResponse, KeysQueryResponse, KeysUploadResponse

from keepsaid.testing.providers.matrix import MatrixServer

_SEALED = "m.room.encrypted"


class _NothingKept:
    """A store of nio that has nothing, and keeps nothing: the device lives as long as the test."""

    def load_account(self) -> None:
        """No account: a new one is made."""

    def load_sessions(self) -> Any:
        """No sessions."""
        return SessionStore()

    def load_inbound_group_sessions(self) -> Any:
        """No sessions of rooms."""
        return GroupSessionStore()

    def load_device_keys(self) -> Any:
        """No devices."""
        return DeviceStore()

    def load_outgoing_key_requests(self) -> dict[str, Any]:
        """No requests."""
        return {}

    def is_device_verified(self, device: Any) -> bool:  # noqa: ARG002 - of any device
        """Nobody compared emoji."""
        return False

    is_device_blacklisted = is_device_verified

    def is_device_ignored(self, device: Any) -> bool:  # noqa: ARG002 - of any device
        """Every device is written to."""
        return True

    def ignore(self, *told: Any) -> None:
        """Keep nothing."""

    save_account = save_session = save_inbound_group_session = save_device_keys = ignore
    ignore_devices = add_outgoing_key_request = remove_outgoing_key_request = ignore


class MatrixPeer:
    """A device of a user: it writes to rooms encrypted, and reads what the account writes there.

    While `holds_keys`, the keys of what it writes are kept in `held`, until `release`.
    """

    def __init__(self, server: MatrixServer, user: str = "@ann:test", device: str = "ANNPHONE") -> None:
        self.user = user
        self.device = device
        self.holds_keys = False
        self.held: list[Mapping[str, Any]] = []
        self.olm: Any = Olm(user, device, _NothingKept())
        self._server = server
        keys = self.olm.share_keys()
        server.keys.upload(user, device, keys)
        self.olm.handle_response(KeysUploadResponse(0, len(keys["one_time_keys"])))

    def say(self, text: str, room: str = "!room:test", **content: Any) -> str:
        """Write a text to a room; returns the id of the event."""
        return self.send("m.room.message", room, {"msgtype": "m.text", "body": text, **content})

    def send(self, kind: str, room: str, content: Mapping[str, Any]) -> str:
        """Send an event to a room, encrypted; returns its id. Its relation stays readable for the homeserver."""
        related = {"m.relates_to": content["m.relates_to"]} if "m.relates_to" in content else {}
        return self._server.send(_SEALED, room, self.user, {**self.seal(kind, room, content), **related})

    def edit(self, number: str, text: str, room: str = "!room:test") -> str:
        """Edit a message; returns the id of the new event."""
        new = {"msgtype": "m.text", "body": text}
        related = {"rel_type": "m.replace", "event_id": number}
        return self.say(f"* {text}", room, **{"m.new_content": new, "m.relates_to": related})

    def seal(self, kind: str, room: str, content: Mapping[str, Any]) -> dict[str, Any]:
        """The content of an encrypted event, for a room whose members get the key."""
        self._share(room)
        return dict(self.olm.group_encrypt(room, {"type": kind, "content": dict(content)}))

    def release(self) -> None:
        """Send the keys that were held back."""
        self.holds_keys = False
        for messages in self.held:
            self._server.send_to_devices(self.user, _SEALED, messages)
        self.held = []

    def rotate(self, room: str = "!room:test") -> None:
        """Use a new session in a room from now on."""
        self.olm.outbound_group_sessions.pop(room, None)

    def read(self, room: str = "!room:test") -> list[dict[str, Any]]:
        """The contents of the events of the account in a room, as far as this device can read them."""
        for _, letter in self._server.keys.letters.pop((self.user, self.device), []):
            self.olm.handle_to_device_event(OlmEvent.from_dict(letter))
        sent = [one.event for one in self._server.rooms.events if one.room == room and one.event["type"] == _SEALED]
        opened = (self._opened(room, one) for one in sent if one["sender"] == self._server.rooms.user)
        return [one for one in opened if one is not None]

    def texts(self, room: str = "!room:test") -> Sequence[str]:
        """What the account wrote to a room, as far as this device can read it."""
        shown = ((str(one.get("body", "")), one.get("filename")) for one in self.read(room))
        return ["" if body == name else body for body, name in shown]

    def files(self, room: str = "!room:test") -> list[tuple[str, bytes]]:
        """The names and the bytes of the files that the account sent to a room, decrypted."""
        found = []
        for one in self.read(room):
            if isinstance(told := one.get("file"), dict):
                content = self._server.media.files.contents[str(told["url"]).rpartition("/")[2]]
                opened = decrypt_attachment(content, told["key"]["k"], told["hashes"]["sha256"], told["iv"])
                found.append((str(one["filename"]), bytes(opened)))
        return found

    def _opened(self, room: str, event: Mapping[str, Any]) -> dict[str, Any] | None:
        found = self.olm.decrypt_event(MegolmEvent.from_dict(dict(event)), room)
        return dict(found.source["content"]) if found is not None else None

    def _share(self, room: str) -> None:
        """Give those devices of the members of a room the key that lack it."""
        users = list(self._server.rooms.members(room))
        if room not in self.olm.outbound_group_sessions or self.olm.outbound_group_sessions[room].expired:
            self.olm.create_outbound_group_session(room)
        self.olm.outbound_group_sessions[room].shared = False
        self.olm.handle_response(KeysQueryResponse.from_dict(self._server.keys.query(users)))
        missing = self.olm.get_missing_sessions(users)
        wanted = {user: dict.fromkeys(devices, "signed_curve25519") for user, devices in missing.items()}
        self.olm.handle_response(KeysClaimResponse.from_dict(self._server.keys.claim(wanted)))
        for targets, letter in self.olm.share_group_session_parallel(room, users, ignore_unverified_devices=True):
            self.olm.outbound_group_sessions[room].users_shared_with.update(targets)
            if self.holds_keys:
                self.held.append(letter["messages"])
            else:
                self._server.send_to_devices(self.user, _SEALED, letter["messages"])
        self.olm.outbound_group_sessions[room].shared = True
