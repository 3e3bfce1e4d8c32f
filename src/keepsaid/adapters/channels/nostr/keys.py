"""Keys, signatures and encryption of Nostr (NIP-01, NIP-04, NIP-44, NIP-59): the only module that imports nostr-sdk.

The library takes 9 MB and half a second, so it is imported by the first call that signs, opens or checks an event: make
those in a thread. Until then an account has its public key alone.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib.util import find_spec
from typing import Any, Final

from keepsaid.adapters.channels.nostr.public_key import npub_of, public_key_of
from keepsaid.errors import ChannelError, installation
from keepsaid.values import frozen

Event = Mapping[str, object]
"""An event of NIP-01, as it stands in JSON."""

Tags = Sequence[Sequence[str]]

DIRECT, FILE, REACTION, DELETION = 14, 15, 7, 5
SEAL, WRAP, LEGACY, AUTH, INBOX_RELAYS, PROFILE = 13, 1_059, 4, 22_242, 10_050, 0
"""Kinds of events."""

HEX: Final = re.compile(r"[0-9a-f]{64}", re.ASCII)
"""The form of an id and of a public key."""

_PACKAGE = "nostr_sdk"


class NostrForged(Exception):
    """An event is not what it claims to be, or is encrypted for somebody else."""


@frozen
class NostrRumor:
    """An opened message. `source` is its JSON; it is empty if the seal is genuine and its content cannot be read.

    `id` is computed, not copied; it is "" where it cannot be. `created_at` is in seconds UTC.
    """

    id: str
    author: str
    created_at: int
    source: Event
    raw: bytes


@frozen
class _Library:
    """The library, the key pair as it holds it, and its errors."""

    sdk: Any
    keys: Any
    errors: Any


class NostrKeys:
    """The key pair of an account; it never shows the secret key. `public` is the public key in hexadecimal.

    Every method but `npub` raises ChannelError if the library cannot be imported.
    """

    def __init__(self, secret: str) -> None:
        """Read a secret key, `nsec1...` or 64 hexadecimal digits.

        Raises ValueError for another form, and ChannelError if the package `nostr-sdk` is missing.
        """
        if find_spec(_PACKAGE) is None:
            raise ChannelError("Nostr needs the package nostr-sdk", hint=installation("nostr"))
        secret = secret.strip()
        try:
            self.public = public_key_of(secret)
        except ValueError:
            raise ValueError("the secret key is not nsec1... or 64 hexadecimal digits") from None
        self._load: Callable[[], _Library] = cache(lambda: _loaded(secret))

    def npub(self) -> str:
        """The public key as people write it, `npub1...`."""
        return npub_of(self.public)

    def sign(self, kind: int, content: str, tags: Tags, created_at: int) -> str:
        """A signed event of the account as JSON. Raises NostrForged for tags that no event can have."""
        try:
            parsed = [self._sdk.Tag.parse([*tag]) for tag in tags]
            builder = self._sdk.EventBuilder(self._sdk.Kind(kind), content).tags(parsed)
            at = self._sdk.Timestamp.from_secs(created_at)
            return str(builder.custom_created_at(at).finalize(self._keys).as_json())
        except self._errors as error:
            raise NostrForged(f"an event of kind {kind} cannot be signed") from error

    def make_rumor(self, kind: int, content: str, tags: Tags, created_at: int) -> tuple[str, str]:
        """An unsigned event of the account: its id and its JSON. Raises NostrForged."""
        given = {"pubkey": self.public, "created_at": created_at, "kind": kind, "tags": tags, "content": content}
        try:
            return self._with_id(given)
        except self._errors as error:
            raise NostrForged(f"a message of kind {kind} cannot be made") from error

    def wrap(self, rumor: str, receiver: str) -> str:
        """A gift wrap with a rumor for a receiver, as JSON; another one each time (NIP-59). Raises NostrForged."""
        try:
            unsigned = self._sdk.UnsignedEvent.from_json(rumor)
            key = self._sdk.PublicKey.parse(receiver)
            return str(self._sdk.nip59_make_gift_wrap(self._keys, key, unsigned).as_json())
        except self._errors as error:
            raise NostrForged("the message cannot be encrypted for its receiver") from error

    def encrypt_legacy(self, receiver: str, text: str) -> str:
        """A text as the content of an event of kind 4 (NIP-04). Raises NostrForged."""
        try:
            key = self._sdk.PublicKey.parse(receiver)
            return str(self._sdk.nip04_encrypt(self._keys.secret_key(), key, text))
        except self._errors as error:
            raise NostrForged("the message cannot be encrypted for its receiver") from error

    def verify(self, event: Event) -> None:
        """Check the id and the signature of an event. Raises NostrForged."""
        self._verified(_text_of(event))

    def open_wrap(self, wrap: Event) -> NostrRumor:
        """The rumor in a gift wrap, checked as NIP-17 and NIP-59 require. Raises NostrForged.

        The author of the seal has to be the author of the rumor: otherwise anybody could write as anybody.
        """
        outer = self._verified(_text_of(wrap))
        if outer.kind().as_u16() != WRAP:
            raise NostrForged("the event is not a gift wrap")
        seal = self._verified(self._decrypted(outer.author(), outer.content()))
        if seal.kind().as_u16() != SEAL or seal.tags():
            raise NostrForged("the wrap does not hold a seal")
        return self._read_rumor(self._decrypted(seal.author(), seal.content()), str(seal.author().to_hex()))

    def open_legacy(self, event: Event) -> NostrRumor:
        """The message in an event of kind 4, decrypted (NIP-04). Raises NostrForged."""
        outer = self._verified(_text_of(event))
        if outer.kind().as_u16() != LEGACY:
            raise NostrForged("the event is not of kind 4")
        try:
            text = self._sdk.nip04_decrypt(self._keys.secret_key(), outer.author(), outer.content())
        except self._errors as error:
            raise NostrForged("the message cannot be decrypted") from error
        opened = {**event, "content": str(text)}
        at, author = int(outer.created_at().as_secs()), str(outer.author().to_hex())
        return NostrRumor(str(event["id"]), author, at, opened, _text_of(opened).encode())

    @property
    def _sdk(self) -> Any:
        return self._load().sdk

    @property
    def _keys(self) -> Any:
        return self._load().keys

    @property
    def _errors(self) -> Any:
        return self._load().errors

    def _read_rumor(self, text: str, author: str) -> NostrRumor:
        """The rumor in a genuine seal; an empty one where it cannot be read."""
        raw = text.encode("utf-8", "replace")
        try:
            given = json.loads(text)
            claimed = given.pop("id", None)
            if given.get("pubkey") != author:
                raise NostrForged("the seal is not by the author of the message")
            number, whole = self._with_id(given)
            source = json.loads(whole)
        except (*self._errors, AttributeError):
            return NostrRumor("", author, 0, {}, raw)
        if claimed not in (None, number):
            raise NostrForged("the message has the id of another one")
        return NostrRumor(number, author, int(source["created_at"]), source, raw)

    def _with_id(self, given: Event) -> tuple[str, str]:
        unsigned = self._sdk.UnsignedEvent.from_json(_text_of(given)).ensure_id()
        number = unsigned.id()
        if number is None:
            raise ValueError("there is no id")
        return str(number.to_hex()), str(unsigned.as_json())

    def _verified(self, text: str) -> Any:
        try:
            event = self._sdk.Event.from_json(text)
            if event.verify():
                return event
        except self._errors as error:
            raise NostrForged("the event cannot be read") from error
        raise NostrForged("the signature of the event is wrong")

    def _decrypted(self, author: Any, content: str) -> str:
        try:
            return str(self._sdk.nip44_decrypt(self._keys.secret_key(), author, content))
        except self._errors as error:
            raise NostrForged("the event cannot be decrypted") from error


def _text_of(event: Event) -> str:
    """An event as JSON that can be encoded: lone surrogates become question marks, and no signature fits any more."""
    return json.dumps(event, ensure_ascii=False).encode("utf-8", "replace").decode()


def _loaded(secret: str) -> _Library:
    """The library with a secret key that is one. Raises ChannelError."""
    try:
        sdk: Any = importlib.import_module(_PACKAGE)
    except (ImportError, OSError) as error:
        raise ChannelError("the package nostr-sdk cannot be imported", hint=installation("nostr")) from error
    errors = (sdk.NostrSdkError, sdk.InternalError, ValueError, TypeError, RecursionError)
    return _Library(sdk, sdk.Keys.parse(secret), errors)
