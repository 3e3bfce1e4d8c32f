"""Cross-signing: the account signs its own device, as apps are about to want it of every device.

The account has a master key, which signs a key that signs devices. A key is that of a vodozemac account, of which
nothing else is used. Source: Matrix specification v1.16, client-server API, "Cross-signing".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import vodozemac

from keepsaid.adapters.channels.matrix.olm import PICKLE_KEY, inside, signed
from keepsaid.adapters.channels.matrix.records import CryptoRecords
from keepsaid.adapters.channels.matrix.updates import MatrixUser

_KEYS, _DONE = "cross", "signed"
_MASTER, _SELF = "master", "self_signing"


class CrossSigning:
    """The keys by which the account signs its devices; they are rows like all others."""

    def __init__(self, user: MatrixUser, records: CryptoRecords) -> None:
        self._user = user
        self._records = records

    @property
    def is_done(self) -> bool:
        """Whether the homeserver has the signature of the device."""
        return self._records.read(_DONE, self._user.device) is not None

    def make(self, master: object) -> bool:
        """Make the keys where there are none; False if the homeserver has a `master` key that is not here."""
        kept = self._records.read(_KEYS, self._user.id)
        if kept is None:
            if master is not None:
                return False
            made = {name: vodozemac.Account().pickle(PICKLE_KEY) for name in (_MASTER, _SELF)}
            self._records.write(made, _KEYS, self._user.id)
            return True
        name = _public(self._key(_MASTER))
        return master is None or inside(inside(master, "keys"), f"ed25519:{name}") == name

    def upload(self) -> dict[str, Any]:
        """The public keys, as the homeserver takes them: the same at every try."""
        master = self._key(_MASTER)
        mine = self._public_key(_SELF)
        return {"master_key": self._public_key(_MASTER), "self_signing_key": self._sign(master, mine)}

    def signatures(self, device_keys: Mapping[str, Any]) -> dict[str, Any]:
        """The keys of the device with the signature of the account, as the homeserver takes them."""
        return {self._user.id: {self._user.device: self._sign(self._key(_SELF), device_keys)}}

    def done(self) -> None:
        """The homeserver has the signature."""
        self._records.write({"by": _public(self._key(_SELF))}, _DONE, self._user.device)

    def _public_key(self, usage: str) -> dict[str, Any]:
        public = _public(self._key(usage))
        return {"user_id": self._user.id, "usage": [usage], "keys": {f"ed25519:{public}": public}}

    def _sign(self, key: vodozemac.Account, told: Mapping[str, Any]) -> dict[str, Any]:
        body = {name: value for name, value in told.items() if name != "signatures"}
        return signed(key, body, self._user.id, _public(key))

    def _key(self, name: str) -> vodozemac.Account:
        kept = self._records.read(_KEYS, self._user.id) or {}
        return vodozemac.Account.from_pickle(kept[name], PICKLE_KEY)


def _public(key: vodozemac.Account) -> str:
    return key.ed25519_key.to_base64()
