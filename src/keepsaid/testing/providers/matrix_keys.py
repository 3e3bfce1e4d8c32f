"""Keys at a scripted homeserver: those that devices upload, and messages from device to device."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from keepsaid.testing.providers.matrix_rooms import MatrixRoomsLedger

_CURVE = "signed_curve25519"


class MatrixKeysLedger:
    """The keys of all devices. `letters` has what was sent to a device and did not arrive yet, by user and device.

    `devices` has the keys of devices by user and id, `one_time` their one-time keys, `signing` the keys by which users
    sign their devices, and `transactions` the ids of what was sent to devices. While it `refuses`, the account uploads
    in vain. Each is left open for a test to change.
    """

    def __init__(self, rooms: MatrixRoomsLedger) -> None:
        self.devices: dict[str, dict[str, Any]] = {}
        self.one_time: dict[tuple[str, str], dict[str, Any]] = {}
        self.letters: dict[tuple[str, str], list[tuple[int, dict[str, Any]]]] = {}
        self.transactions: set[str] = set()
        self.refuses = False
        self.signing: dict[str, Mapping[str, Any]] = {}
        self.uploads: list[Mapping[str, Any]] = []
        self._rooms = rooms
        self._changed: list[tuple[int, str]] = []

    def upload(self, user: str, device: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take the keys of a device; returns how many one-time keys it has here."""
        self.uploads.append(body)
        if "device_keys" in body:
            self.devices.setdefault(user, {})[device] = body["device_keys"]
            self.change(user)
        keys = self.one_time.setdefault((user, device), {})
        for name, key in body.get("one_time_keys", {}).items():
            keys.setdefault(name, key)
        return {"one_time_key_counts": {_CURVE: len(keys)}}

    def query(self, users: Iterable[str]) -> dict[str, Any]:
        """The keys of all devices of users."""
        told = {user: dict(self.devices.get(user, {})) for user in users}
        masters = {user: self.signing[user]["master_key"] for user in told if user in self.signing}
        return {"device_keys": told, "master_keys": masters, "failures": {}}

    def has_other_master(self, user: str, body: Mapping[str, Any]) -> bool:
        """Whether a user has a master key, and wants another one: that takes a password."""
        return user in self.signing and self.signing[user]["master_key"] != body["master_key"]

    def sign(self, user: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Take the keys by which a user signs devices, or a signature of theirs."""
        if "master_key" in body:
            self.signing[user] = body
            return {}
        for device, told in body[user].items():
            self.devices[user][device].setdefault("signatures", {}).setdefault(user, {}).update(
                told["signatures"][user]
            )
        return {"failures": {}}

    def claim(self, wanted: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
        """A one-time key of each device, which nobody gets a second time."""
        given: dict[str, Any] = {}
        for user, devices in wanted.items():
            for device in devices:
                keys = self.one_time.get((user, device), {})
                if keys:
                    name = next(iter(keys))
                    given.setdefault(user, {})[device] = {name: keys.pop(name)}
        return {"one_time_keys": given, "failures": {}}

    def send(self, sender: str, kind: str, messages: Mapping[str, Mapping[str, Any]]) -> None:
        """A user sends messages to devices."""
        for user, devices in messages.items():
            for device, content in devices.items():
                event = {"type": kind, "sender": sender, "content": content}
                self.letters.setdefault((user, device), []).append((self._step(), event))

    def change(self, user: str) -> None:
        """Everybody learns that the devices of a user changed."""
        self._changed.append((self._step(), user))

    def remove(self, user: str, device: str) -> None:
        """A device logs out."""
        del self.devices[user][device]
        self.change(user)

    def has_news(self, user: str, device: str, since: int) -> bool:
        """Whether something came for a device after a place of the stream."""
        letters = self.letters.get((user, device), ())
        return any(at > since for at, _ in (*letters, *self._changed))

    def view(self, user: str, device: str, since: int) -> dict[str, Any]:
        """What a sync says to a device; what came before `since` has arrived."""
        left = [(at, event) for at, event in self.letters.get((user, device), []) if at > since]
        self.letters[user, device] = left
        told: dict[str, Any] = {
            "device_one_time_keys_count": {_CURVE: len(self.one_time.get((user, device), {}))},
            "device_unused_fallback_key_types": [],
        }
        if left:
            told["to_device"] = {"events": [event for _, event in left]}
        if since and (changed := sorted({who for at, who in self._changed if at > since})):
            told["device_lists"] = {"changed": changed, "left": []}
        return told

    def _step(self) -> int:
        """The next place of the stream."""
        self._rooms.at += 1
        return self._rooms.at
