"""The devices of other users, as their homeservers say and as they sign it: each is trusted as it was first seen."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keepsaid.adapters.channels.matrix.olm import PeerDevice, inside, is_signed
from keepsaid.adapters.channels.matrix.records import CryptoRecords, is_nameable

_log = logging.getLogger("keepsaid.matrix")
_USER = "user"


class DeviceBook:
    """The devices of users. A list is `stale` after its user changed it, until it was looked up again.

    A device that is gone stays in it, without being written to: its id can never be that of another key.
    """

    def __init__(self, records: CryptoRecords) -> None:
        self._records = records

    def stale(self, users: Iterable[str]) -> list[str]:
        """Those of the users whose devices have to be looked up."""
        return sorted(one for one in set(users) if (self._records.read(_USER, one) or {}).get("stale", True))

    def change(self, users: Iterable[object]) -> None:
        """The devices of users changed; of those that nobody looked up nothing is kept."""
        for user in users:
            if is_nameable(user) and (kept := self._records.read(_USER, str(user))) is not None:
                self._records.write({**kept, "stale": True}, _USER, str(user))

    def change_all(self) -> None:
        """Any of them may have changed."""
        self.change([user for (user,) in self._records.names(_USER)])

    def take(self, users: Iterable[str], told: object) -> None:
        """Take the answer to a look-up of users. A server that could not be reached says nothing: its users stay as
        they are, and are looked up again.
        """
        for user in users:
            lists = inside(told, user)
            if not isinstance(lists, Mapping):
                continue
            kept = (self._records.read(_USER, user) or {}).get("devices", {})
            found = {peer.device: peer for peer in _peers(user, lists)}
            devices = {device: {**one, "gone": True} for device, one in kept.items()}
            for device, peer in found.items():
                if (before := kept.get(device)) is not None and before["ed"] != peer.ed:
                    _log.warning("the device %s of %s has another key than before: it is not trusted", device, user)
                    continue
                devices[device] = {"curve": peer.curve, "ed": peer.ed}
            self._records.write({"devices": devices, "stale": False}, _USER, user)

    def of(self, user: str) -> Iterator[PeerDevice]:
        """The devices to which a user can be written."""
        for device, one in self._all(user).items():
            if not one.get("gone"):
                yield PeerDevice(user, device, one["curve"], one["ed"])

    def has(self, user: str, curve: str, ed: str) -> bool:
        """Whether a user has, or had, a device with these keys."""
        return any((one["curve"], one["ed"]) == (curve, ed) for one in self._all(user).values())

    def _all(self, user: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = (self._records.read(_USER, user) or {}).get("devices", {})
        return found


def _peers(user: str, lists: Mapping[str, Any]) -> Iterator[PeerDevice]:
    """The devices of a user that are what they claim to be: each signs its own keys."""
    for device, told in lists.items():
        keys = inside(told, "keys")
        curve, ed = (inside(keys, f"{kind}:{device}") for kind in ("curve25519", "ed25519"))
        is_own = inside(told, "user_id") == user and inside(told, "device_id") == device
        if not is_own or not is_nameable(device, curve, ed) or not is_signed(told, ed, user, device):
            _log.warning("a device of %s is not signed by itself: it is not trusted", user)
            continue
        yield PeerDevice(user, device, curve, ed)
