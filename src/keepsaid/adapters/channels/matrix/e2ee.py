"""Encrypted rooms of Matrix: keys are uploaded, looked up and shared, and events encrypted and decrypted.

One change is made at a time, from its first step to the commit that stores it with what caused it. What was not stored
is taken back: so no key is lost, and no place of a ratchet is used for two messages, wherever the process ends.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from keepsaid.adapters.channels.matrix.api import MatrixApi, MatrixRefused, path_of
from keepsaid.adapters.channels.matrix.events import REDACTION
from keepsaid.adapters.channels.matrix.records import CryptoRecords, is_nameable
from keepsaid.adapters.channels.matrix.updates import ENCRYPTED_EVENT, ENCRYPTED_ROOMS, Event, MatrixUser
from keepsaid.domain.line import Cursor
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import InboundSink
from keepsaid.ports.runtime import Clock

if TYPE_CHECKING:
    from keepsaid.adapters.channels.matrix.devices import DeviceBook
    from keepsaid.adapters.channels.matrix.megolm import MegolmMachine, MegolmPlaintext
    from keepsaid.adapters.channels.matrix.olm import OlmMachine, PeerDevice
    from keepsaid.adapters.channels.matrix.signing import CrossSigning
    from keepsaid.adapters.channels.matrix.waiting import WaitingEvents

_P = ParamSpec("_P")
_T = TypeVar("_T")
_log = logging.getLogger("keepsaid.matrix")
_HERE = "keepsaid.adapters.channels.matrix"
_LETTERS, _SERVER = "letters", "server"
_LETTER_DEVICES = 50
_KEYS_LEAST = 25
"""With fewer one-time keys at the homeserver, more are uploaded: half of those that it may have."""

_NO_KEYS_MS = 3_600_000
"""A device without one-time keys is asked for one again after this; a session is not replaced again before."""

_NEVER_SEALED = (REDACTION, ENCRYPTED_EVENT)
"""Types that no event can have inside: the homeserver itself has to check who may delete what."""

_LOOK_UP_MS = 60_000
"""The devices of somebody are not looked up again before this because an event is of none of them."""


def has_library() -> bool:
    """Whether the packages of the extra `matrix-e2ee` are installed."""
    return all(find_spec(name) is not None for name in ("vodozemac", "cryptography"))


class MatrixCrypto:
    """The device of an account in encrypted rooms; all that it knows is kept by `inbox`."""

    def __init__(self, api: MatrixApi, clock: Clock, inbox: InboundSink) -> None:
        self._api = api
        self._clock = clock
        self._inbox = inbox
        self._records = CryptoRecords({})
        self._changing = asyncio.Lock()
        self._is_loaded = False
        self._no_keys: dict[tuple[str, str], float] = {}
        self._looked_up: dict[str, float] = {}
        self._broken: dict[str, PeerDevice] = {}
        self._mended: dict[str, float] = {}
        self._user, self._rooms = MatrixUser(""), frozenset[str]()
        self._is_unsigned = False
        self.refusal = ""
        """Why encrypted rooms cannot be read, although the packages are there; "" where they can."""

    @asynccontextmanager
    async def change(self, user: MatrixUser) -> AsyncIterator[None]:
        """Change keys and sessions while the block runs; what it did not commit is taken back.

        After a block that failed everything is read from the store again: whether it has the last commit is not known.
        """
        async with self._changing:
            if not self._is_loaded or user != self._user:
                await self._load(user)
            self._is_loaded = False
            yield
            self._is_loaded = True
            self._records.rollback()

    async def was_encrypted(self, user: MatrixUser, room: str) -> bool:
        """Whether a room was encrypted when this process began: nobody can take that back. Raises StoreError."""
        if not self._is_loaded:
            async with self.change(user):
                pass  # the rows are loaded
        return room in self._rooms

    def cursors(self) -> list[Cursor]:
        """What changed, to be stored with what caused it; call `committed` after that."""
        return self._records.cursors(self._user.id)

    def committed(self) -> None:
        """What changed is stored."""
        self._records.commit()

    async def commit(self) -> None:
        """Store what changed. Raises StoreError."""
        if rows := self.cursors():
            await self._inbox.put_all((), rows)
            self.committed()

    async def begin(self, user: MatrixUser) -> None:
        """Make and upload the keys of the device, where that was not done. Raises as a request, and StoreError."""
        async with self.change(user):
            await self._begin(user)
            if not self.refusal:
                await self._cross_sign(user)
                await self._send_letters()

    async def keep_up(self, user: MatrixUser) -> None:
        """Upload one-time keys that were used, and send what was to be sent before. Raises as `begin`."""
        if not self.refusal:
            async with self.change(user):
                await self._upload()
                await self._mend()
                await self._send_letters()

    async def take(self, answer: Mapping[str, Any]) -> list[tuple[str, Event]]:
        """Take what a sync says to the device, within a change; returns events that waited for it, with their rooms."""
        return await _in_thread(self._take, answer)

    def _take(self, answer: Mapping[str, Any]) -> list[tuple[str, Event]]:
        lists, counts = answer.get("device_lists"), answer.get("device_one_time_keys_count")
        for name in ("changed", "left"):
            told = lists.get(name) if isinstance(lists, Mapping) else None
            self._devices.change(told if isinstance(told, list) else ())
        if isinstance(counts, Mapping):
            count = counts.get("signed_curve25519", 0)
            self._records.write({"keys": count if isinstance(count, int) else 0}, _SERVER, self._user.device)
        to_device = answer.get("to_device")
        letters = to_device.get("events") if isinstance(to_device, Mapping) else None
        for letter in letters if isinstance(letters, list) else ():
            if isinstance(letter, Mapping) and letter.get("type") == ENCRYPTED_EVENT:
                self._take_letter(letter)
        return list(self._waiting.ready()) if letters or lists else []

    def lose_track(self) -> None:
        """Look up all devices again: the homeserver could not say which changed."""
        self._devices.change_all()

    async def open(self, room: str, event: Event) -> Event | None:
        """An event as it was before it was encrypted; None where it cannot be read. Within a change.

        It waits where its key may still come. Raises as a request.
        """
        if self.refusal:
            return None
        try:
            opened = self._megolm.open(room, event)
            if opened.kind in _NEVER_SEALED:
                raise self._refused(f"{opened.kind} is never encrypted")
            if not await self._is_by(str(event["sender"]), opened):
                raise self._missing(opened.session)
        except self._missing as error:
            self._waiting.add(room, error.session, event)
            return None
        except self._refused as error:
            _log.warning("an encrypted event in %s is not read: %s", room, error)
            return None
        outside = event.get("content")
        related = outside.get("m.relates_to") if isinstance(outside, Mapping) else None
        content = opened.content if related is None else {**opened.content, "m.relates_to": related}
        return {**event, "type": opened.kind, "content": content}

    async def seal(
        self, user: MatrixUser, room: str, kind: str, contents: Sequence[Sequence[Mapping[str, Any]]]
    ) -> list[list[dict[str, Any]]]:
        """Forms of messages encrypted for the members of a room, as contents of events; what was used is stored.

        The devices that lack the key get it by `deliver`. Raises as a request, and StoreError.
        """
        async with self.change(user):
            if not self._olm.exists:
                await self._begin(user)
                self._check()
            members = await self._members(room)
            await self._look_up(members)
            peers = {(one.user, one.device): one for member in members for one in self._devices.of(member)}
            peers.pop((user.id, user.device), None)
            await self._open_sessions(one for one in peers.values() if not self._olm.has_session(one.curve))
            reached = {target: one for target, one in peers.items() if self._olm.has_session(one.curve)}
            lacking = self._megolm.begin(room, reached, self._clock.now_ms())
            gets = [reached[one] for one in lacking]
            await _in_thread(self._write_letters, gets, "m.room_key", self._megolm.room_key(room))
            self._megolm.shared(room, lacking)
            curve = self._olm.curve
            sealed = [self._megolm.seal(room, kind, list(forms), curve) for forms in contents]
            await self.commit()
            return sealed

    async def deliver(self, user: MatrixUser) -> None:
        """Send the keys that were to be sent. Raises as a request, and StoreError."""
        async with self.change(user):
            await self._send_letters()

    async def _load(self, user: MatrixUser) -> None:
        olm, megolm, devices, signing, waiting = await asyncio.to_thread(_machines)
        cursors = await self._inbox.cursors(user.id)
        self._records, self._rooms = CryptoRecords(cursors), frozenset(cursors.get(ENCRYPTED_ROOMS, "").split())
        self._user = user
        self._olm: OlmMachine = olm.OlmMachine(user, self._records)
        self._megolm: MegolmMachine = megolm.MegolmMachine(user.device, self._records)
        self._devices: DeviceBook = devices.DeviceBook(self._records)
        self._signing: CrossSigning = signing.CrossSigning(user, self._records)
        self._waiting: WaitingEvents = waiting.WaitingEvents(self._records, self._megolm)
        self._missing, self._refused = megolm.KeyMissing, megolm.EventRefused

    def _check(self) -> None:
        """Raise ChannelError where the device cannot be used."""
        if self.refusal:
            raise ChannelError(f"the room is encrypted: {self.refusal}")

    async def _begin(self, user: MatrixUser) -> None:
        self.refusal = ""
        if not self._olm.exists:
            if await self._is_taken(user):
                self.refusal = f"the device {user.device} has keys that are not here: log in again for a new device"
                return
            self._olm.create()
        await self._upload()

    async def _cross_sign(self, user: MatrixUser) -> None:
        """Have the account sign its device, once. Homeservers ask for a password only where it has other keys."""
        if self._signing.is_done or self._is_unsigned:
            return
        told = (await self._ask("/keys/query", {"device_keys": {user.id: []}})).get("master_keys")
        self._is_unsigned = not self._signing.make(told.get(user.id) if isinstance(told, Mapping) else None)
        if self._is_unsigned:
            _log.warning("another app has the keys by which %s signs devices: verify %s there", user.id, user.device)
            return
        await self.commit()
        try:
            await self._api.call("POST", "/keys/device_signing/upload", self._signing.upload())
            await self._api.call("POST", "/keys/signatures/upload", self._signing.signatures(self._olm.device_keys()))
        except MatrixRefused as error:
            if error.passes and (error.status != 401 or error.code):
                raise
            self._is_unsigned = True
            _log.warning("the homeserver does not let %s sign its device: %s", user.id, error)
            return
        self._signing.done()
        await self.commit()

    async def _is_taken(self, user: MatrixUser) -> bool:
        """Whether the homeserver has keys of the device, which cannot be ours."""
        told = await self._ask("/keys/query", {"device_keys": {user.id: [user.device]}})
        found = told.get("device_keys")
        ours = found.get(user.id) if isinstance(found, Mapping) else None
        return isinstance(ours, Mapping) and user.device in ours

    async def _upload(self) -> None:
        """Upload the keys that the homeserver lacks; what is made for it is stored before."""
        count = (self._records.read(_SERVER, self._user.device) or {}).get("keys", 0)
        if self._olm.is_known and count >= _KEYS_LEAST:
            return
        body = await _in_thread(self._olm.upload, count)
        await self.commit()
        if not body:
            return
        try:
            told = await self._api.call("POST", "/keys/upload", body)
        except MatrixRefused as error:
            if error.passes:
                raise
            self.refusal = f"the homeserver does not take the keys of this device, log in again for a new one: {error}"
            return
        counts = told.get("one_time_key_counts")
        count = counts.get("signed_curve25519") if isinstance(counts, Mapping) else None
        self._records.write({"keys": count if isinstance(count, int) else 0}, _SERVER, self._user.device)
        self._olm.uploaded()
        await self.commit()

    def _take_letter(self, letter: Event) -> None:
        sender, content = letter.get("sender"), letter.get("content")
        payload = self._olm.unseal(sender, content)
        if payload is not None and payload.kind == "m.room_key":
            self._megolm.add(payload)
        elif payload is None and isinstance(sender, str) and isinstance(content, Mapping):
            peers = self._devices.of(sender) if is_nameable(sender) else ()
            self._broken |= {one.curve: one for one in peers if one.curve == content.get("sender_key")}

    async def _mend(self) -> None:
        """Begin new sessions with devices whose messages could not be opened, and let them know: once an hour each."""
        now, broken = self._clock.monotonic_ms(), self._broken
        self._broken = {}
        peers = [one for one in broken.values() if self._mended.get(one.curve, 0.0) <= now]
        if not peers:
            return
        self._mended |= {one.curve: now + _NO_KEYS_MS for one in peers}
        for peer in await self._open_sessions(peers):
            _log.warning("the session with the device %s of %s was broken: there is a new one", peer.device, peer.user)
            self._write_letters([peer], "m.dummy", {})
        await self.commit()

    async def _is_by(self, sender: str, opened: MegolmPlaintext) -> bool:
        """Whether the device that encrypted an event is one of its sender."""
        is_old = self._looked_up.get(sender, -_LOOK_UP_MS) + _LOOK_UP_MS <= self._clock.monotonic_ms()
        if not self._devices.has(sender, opened.curve, opened.ed):
            await self._look_up([sender], is_new=is_old)
        return self._devices.has(sender, opened.curve, opened.ed)

    async def _members(self, room: str) -> list[str]:
        told = (await self._api.call("GET", path_of("rooms", room, "joined_members"))).get("joined")
        return [one for one in told if is_nameable(one)] if isinstance(told, Mapping) else []

    async def _look_up(self, users: Sequence[str], *, is_new: bool = False) -> None:
        """Ask for the devices of users where they are not known, or this process never asked, or `is_new`."""
        stale = self._devices.stale(users)
        wanted = [one for one in users if is_new or one in stale or one not in self._looked_up]
        if wanted:
            told = await self._ask("/keys/query", {"device_keys": {user: [] for user in wanted}})
            await _in_thread(self._devices.take, wanted, told.get("device_keys"))
            self._looked_up |= dict.fromkeys(wanted, self._clock.monotonic_ms())

    async def _ask(self, path: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
        """What a homeserver says of keys; nothing where it refuses to."""
        try:
            return await self._api.call("POST", path, body)
        except MatrixRefused as error:
            if error.passes:
                raise
            _log.warning("the homeserver refuses %s: %s", path, error)
            return {}

    async def _open_sessions(self, peers: Iterable[PeerDevice]) -> list[PeerDevice]:
        """Begin sessions with devices; returns those that gave a key. Others are asked again after an hour."""
        now = self._clock.monotonic_ms()
        lacking = {
            (one.user, one.device): one for one in peers if self._no_keys.get((one.user, one.device), 0.0) <= now
        }
        if not lacking:
            return []
        wanted: dict[str, dict[str, str]] = {}
        for user, device in lacking:
            wanted.setdefault(user, {})[device] = "signed_curve25519"
        told = (await self._ask("/keys/claim", {"one_time_keys": wanted})).get("one_time_keys")
        opened: list[PeerDevice] = []
        for (user, device), peer in lacking.items():
            by_user = told.get(user) if isinstance(told, Mapping) else None
            if self._olm.open_session(peer, by_user.get(device) if isinstance(by_user, Mapping) else None):
                opened.append(peer)
            else:
                _log.warning("the device %s of %s gives no key: it cannot read what is sent now", device, user)
                self._no_keys[user, device] = now + _NO_KEYS_MS
        return opened

    def _write_letters(self, peers: Sequence[PeerDevice], kind: str, content: Mapping[str, Any]) -> None:
        """Encrypt a message for devices; the letters are sent after they are stored, until they arrive."""
        waiting = (self._records.read(_LETTERS, self._user.device) or {"letters": []})["letters"]
        for start in range(0, len(peers), _LETTER_DEVICES):
            messages: dict[str, dict[str, Any]] = {}
            for peer in peers[start : start + _LETTER_DEVICES]:
                messages.setdefault(peer.user, {})[peer.device] = self._olm.seal(peer, kind, content)
            waiting.append({"txn": f"k{secrets.token_hex(12)}", "messages": messages})
        if waiting:
            self._records.write({"letters": waiting}, _LETTERS, self._user.device)

    async def _send_letters(self) -> None:
        """Send what was to be sent to devices, each under its transaction id."""
        waiting = (self._records.read(_LETTERS, self._user.device) or {"letters": []})["letters"]
        for n, letter in enumerate(waiting):
            path = path_of("sendToDevice", ENCRYPTED_EVENT, letter["txn"])
            try:
                await self._api.call("PUT", path, {"messages": letter["messages"]})
            except MatrixRefused as error:
                if error.passes:
                    raise
                _log.warning("keys for devices are not taken: %s", error)
            left = waiting[n + 1 :]
            self._records.write({"letters": left} if left else {}, _LETTERS, self._user.device)
            await self.commit()


async def _in_thread(do: Callable[_P, _T], *args: _P.args, **named: _P.kwargs) -> _T:
    """Do what takes milliseconds in a thread. Who is cancelled waits for its end: it changes rows until then."""
    work = asyncio.ensure_future(asyncio.to_thread(do, *args, **named))
    try:
        return await asyncio.shield(work)
    finally:
        await asyncio.wait((work,))


def _machines() -> Sequence[Any]:
    """The modules that call the library: to import them takes time."""
    return [import_module(f"{_HERE}.{name}") for name in ("olm", "megolm", "devices", "signing", "waiting")]
