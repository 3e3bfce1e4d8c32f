"""Olm: the keys of our own device, and messages from device to device.

This module, megolm.py and signing.py call vodozemac, and no other does.

Source: Matrix specification v1.16, client-server API, module "End-to-end encryption".
"""

from __future__ import annotations

import json
import logging
from binascii import a2b_base64, b2a_base64
from collections.abc import Mapping, Sequence
from typing import Any, Final

import vodozemac

from keepsaid.adapters.channels.matrix.records import CryptoRecords, is_nameable
from keepsaid.adapters.channels.matrix.updates import MatrixUser
from keepsaid.values import frozen

OLM, MEGOLM = "m.olm.v1.curve25519-aes-sha2", "m.megolm.v1.aes-sha2"
"""The algorithms of this client: of messages to a device, and of messages in a room."""

PICKLE_KEY: Final = bytes(32)
"""The key of all pickles. They are as safe as the store, which has the messages themselves."""

_log = logging.getLogger("keepsaid.matrix")
_SESSIONS_MAX = 5
_ACCOUNT, _SESSIONS = "account", "olm"
_SIGNED = "signed_curve25519"


@frozen
class PeerDevice:
    """A device of a user, and its keys: by `curve` it is written to, by `ed` it signs."""

    user: str
    device: str
    curve: str
    ed: str


@frozen
class OlmPayload:
    """A message from a device, opened: who sent it, the keys of that device, and what it says."""

    sender: str
    curve: str
    ed: str
    kind: str
    content: Mapping[str, Any]


def is_signed(told: Mapping[str, Any], ed: str, user: str, device: str) -> bool:
    """Whether an object has a signature of a device by its Ed25519 key."""
    by_user = inside(told.get("signatures"), user)
    signature = inside(by_user, f"ed25519:{device}")
    if not isinstance(signature, str):
        return False
    body = {name: value for name, value in told.items() if name not in ("signatures", "unsigned")}
    try:
        key, given = vodozemac.Ed25519PublicKey.from_base64(ed), vodozemac.Ed25519Signature.from_base64(signature)
        key.verify_signature(_canonical(body), given)
    except ValueError:
        return False
    return True


def signed(key: vodozemac.Account, told: Mapping[str, Any], user: str, name: str) -> dict[str, Any]:
    """An object with a signature by a key of a user, which has a name."""
    return {**told, "signatures": {user: {f"ed25519:{name}": key.sign(_canonical(told)).to_base64()}}}


def inside(told: object, name: str) -> Any:
    """A field of what came, None where there is none."""
    return told.get(name) if isinstance(told, Mapping) else None


class OlmMachine:
    """Our device: it signs, opens sessions with other devices, and reads and writes messages in them."""

    def __init__(self, user: MatrixUser, records: CryptoRecords) -> None:
        self.user = user
        self._records = records

    @property
    def exists(self) -> bool:
        """Whether the device has keys."""
        return self._records.read(_ACCOUNT, self.user.device) is not None

    @property
    def is_known(self) -> bool:
        """Whether the homeserver has the keys of the device."""
        return bool((self._records.read(_ACCOUNT, self.user.device) or {}).get("known"))

    @property
    def curve(self) -> str:
        """The public key by which others write to the device."""
        return self._account().curve25519_key.to_base64()

    @property
    def ed(self) -> str:
        """The public key of the signatures of the device."""
        return self._account().ed25519_key.to_base64()

    def create(self) -> None:
        """Make the keys of the device."""
        self._keep(vodozemac.Account(), known=False)

    def upload(self, count: int) -> dict[str, Any]:
        """The keys that the homeserver lacks, where it has `count` one-time keys; empty if it has enough.

        The same until `uploaded`, whatever comes between: what was made is stored before it is sent.
        """
        account = self._account()
        told: dict[str, Any] = {} if self.is_known else {"device_keys": self._device_keys(account)}
        if not account.one_time_keys and count < account.max_number_of_one_time_keys // 2:
            account.generate_one_time_keys(account.max_number_of_one_time_keys - count)
            self._keep(account)
        keys = {
            f"{_SIGNED}:{name}": self._signed(account, {"key": key.to_base64()})
            for name, key in account.one_time_keys.items()
        }
        return {**told, **({"one_time_keys": keys} if keys else {})}

    def uploaded(self) -> None:
        """The homeserver has the keys now."""
        account = self._account()
        account.mark_keys_as_published()
        self._keep(account, known=True)

    def has_session(self, curve: str) -> bool:
        """Whether a device can be written to."""
        return bool(self._sessions(curve))

    def open_session(self, peer: PeerDevice, told: object) -> bool:
        """Begin a session with a one-time key that a homeserver says is of a device; False for one not signed by it."""
        for key in told.values() if isinstance(told, Mapping) else ():
            if not isinstance(key, Mapping) or not is_signed(key, peer.ed, peer.user, peer.device):
                continue
            try:
                curve, once = (vodozemac.Curve25519PublicKey.from_base64(str(one)) for one in (peer.curve, key["key"]))
                session = self._account().create_outbound_session(curve, once)
            except (ValueError, KeyError):
                continue
            self._keep_sessions(peer.curve, [session, *self._sessions(peer.curve)])
            return True
        return False

    def seal(self, peer: PeerDevice, kind: str, content: Mapping[str, object]) -> dict[str, Any]:
        """The content of a message that only a device can read, in the session that it used last."""
        account, (session, *others) = self._account(), self._sessions(peer.curve)
        payload = {
            "type": kind,
            "content": content,
            "sender": self.user.id,
            "sender_device": self.user.device,
            "keys": {"ed25519": account.ed25519_key.to_base64()},
            "recipient": peer.user,
            "recipient_keys": {"ed25519": peer.ed},
        }
        form, body = session.encrypt(json.dumps(payload).encode()).to_parts()
        self._keep_sessions(peer.curve, [session, *others])
        return {
            "algorithm": OLM,
            "sender_key": account.curve25519_key.to_base64(),
            "ciphertext": {peer.curve: {"type": form, "body": _base64(body)}},
        }

    def unseal(self, sender: object, content: object) -> OlmPayload | None:
        """A message to our device, opened; None for one that cannot be, or is not what it claims to be."""
        account = self._account()
        curve = inside(content, "sender_key")
        sealed = inside(inside(content, "ciphertext"), account.curve25519_key.to_base64())
        form, body = inside(sealed, "type"), inside(sealed, "body")
        if inside(content, "algorithm") != OLM or not is_nameable(sender, curve) or not isinstance(body, str):
            return None
        try:
            told = json.loads(self._opened(account, curve, form, body))
        except (ValueError, RecursionError) as error:
            _log.warning("a message to this device cannot be opened: %s", type(error).__name__)
            return None
        ours = {"ed25519": account.ed25519_key.to_base64()}
        ed, kind, said = inside(inside(told, "keys"), "ed25519"), inside(told, "type"), inside(told, "content")
        is_ours = inside(told, "recipient") == self.user.id and inside(told, "recipient_keys") == ours
        if not is_ours or inside(told, "sender") != sender or not isinstance(ed, str) or not isinstance(said, dict):
            _log.warning("a message to this device is not what it claims to be: it is ignored")
            return None
        return OlmPayload(str(sender), curve, ed, str(kind), said)

    def _opened(self, account: vodozemac.Account, curve: str, form: object, body: str) -> bytes:
        """The plain text of a message of a device; raises ValueError."""
        sessions = self._sessions(curve)
        if form == 0:
            first = vodozemac.PreKeyMessage.from_base64(body)
            known = next((one for one in sessions if one.session_matches(first)), None)
            if known is None:
                key = vodozemac.Curve25519PublicKey.from_base64(curve)
                known, plain = account.create_inbound_session(key, first)
                self._keep(account)
            else:
                plain = known.decrypt(first.to_any())
        else:
            message = vodozemac.AnyOlmMessage.from_parts(1, _bytes(body))
            known, plain = _decrypted(sessions, message)
        self._keep_sessions(curve, [known, *(one for one in sessions if one is not known)])
        return plain

    def _account(self) -> vodozemac.Account:
        kept = self._records.read(_ACCOUNT, self.user.device)
        if kept is None:
            raise ValueError("the device has no keys yet")
        return vodozemac.Account.from_pickle(kept["pickle"], PICKLE_KEY)

    def _keep(self, account: vodozemac.Account, *, known: bool | None = None) -> None:
        known = self.is_known if known is None else known
        self._records.write({"pickle": account.pickle(PICKLE_KEY), "known": known}, _ACCOUNT, self.user.device)

    def _sessions(self, curve: str) -> list[vodozemac.Session]:
        """The sessions with a device, the one that it used last first."""
        kept = self._records.read(_SESSIONS, self.user.device, curve)
        pickles = kept["pickles"] if kept is not None else ()
        return [vodozemac.Session.from_pickle(one, PICKLE_KEY) for one in pickles]

    def _keep_sessions(self, curve: str, sessions: Sequence[vodozemac.Session]) -> None:
        pickles = [one.pickle(PICKLE_KEY) for one in sessions[:_SESSIONS_MAX]]
        self._records.write({"pickles": pickles}, _SESSIONS, self.user.device, curve)

    def device_keys(self) -> dict[str, Any]:
        """The public keys of the device, signed by it."""
        return self._device_keys(self._account())

    def _device_keys(self, account: vodozemac.Account) -> dict[str, Any]:
        device = self.user.device
        keys = {"curve25519": account.curve25519_key.to_base64(), "ed25519": account.ed25519_key.to_base64()}
        told = {
            "algorithms": [OLM, MEGOLM],
            "device_id": device,
            "user_id": self.user.id,
            "keys": {f"{name}:{device}": key for name, key in keys.items()},
        }
        return self._signed(account, told)

    def _signed(self, account: vodozemac.Account, told: Mapping[str, Any]) -> dict[str, Any]:
        return signed(account, told, self.user.id, self.user.device)


def _decrypted(
    sessions: Sequence[vodozemac.Session], message: vodozemac.AnyOlmMessage
) -> tuple[vodozemac.Session, bytes]:
    """The session to which a message belongs, and its plain text; raises ValueError."""
    for session in sessions:
        try:
            return session, session.decrypt(message)
        except ValueError:
            continue
    raise ValueError("no session fits")


def _canonical(told: Mapping[str, Any]) -> bytes:
    """An object as it is signed: canonical JSON."""
    return json.dumps(told, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8", "replace")


def _base64(content: bytes) -> str:
    return b2a_base64(content, newline=False).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    """What stands in unpadded base64; raises ValueError."""
    return a2b_base64(f"{text}{'=' * (-len(text) % 4)}")
