"""People who write to an account of Nostr and read its answers, with keys of their own."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

from keepsaid.adapters.channels.nostr.keys import (
    DIRECT,
    FILE,
    INBOX_RELAYS,
    LEGACY,
    REACTION,
    WRAP,
    NostrForged,
    NostrKeys,
)
from keepsaid.testing.providers.nostr import NostrRelayServer


class NostrPerson:
    """Somebody with a key made of a name. `now_s` is the time of what is written, seconds UTC."""

    def __init__(self, name: str, now_s: Callable[[], int]) -> None:
        self.keys = NostrKeys(secret_of(name))
        self._now_s = now_s

    @property
    def public(self) -> str:
        """The public key."""
        return self.keys.public

    def relay_list(self, *relays: str) -> dict[str, Any]:
        """The event that names the relays on which the person reads messages (kind 10050)."""
        return self._signed(INBOX_RELAYS, "", [["relay", url] for url in relays])

    def write(self, text: str, *receivers: str, at_s: int | None = None, **more: Any) -> tuple[str, dict[str, Any]]:
        """The id of a message, and its wrap for the first of its receivers; `more` is `kind` and `tags`."""
        tags = [*(["p", one] for one in receivers), *more.get("tags", ())]
        at = self._now_s() if at_s is None else at_s
        number, rumor = self.keys.make_rumor(more.get("kind", DIRECT), text, tags, at)
        return number, self.wrap(rumor, receivers[0])

    def wrap(self, rumor: str, receiver: str) -> dict[str, Any]:
        """A rumor, given as JSON, wrapped for a receiver; the time of the wrap is that of the library."""
        made: dict[str, Any] = json.loads(self.keys.wrap(rumor, receiver))
        return made

    def write_legacy(self, text: str, receiver: str) -> dict[str, Any]:
        """A message of kind 4."""
        return self._signed(LEGACY, self.keys.encrypt_legacy(receiver, text), [["p", receiver]])

    def read(self, relay: NostrRelayServer) -> list[Mapping[str, Any]]:
        """The messages for the person on a relay, each once, in the order in which they were stored."""
        found: dict[str, Mapping[str, Any]] = {}
        for event in relay.accepted:
            if event["kind"] not in (LEGACY, WRAP) or ["p", self.public] not in event["tags"]:
                continue
            try:
                rumor = self.keys.open_legacy(event) if event["kind"] == LEGACY else self.keys.open_wrap(event)
            except NostrForged:
                continue
            found.setdefault(rumor.id, rumor.source)
        return list(found.values())

    def read_texts(self, relay: NostrRelayServer) -> list[str]:
        """The texts of the messages for the person on a relay."""
        return [str(one["content"]) for one in self.read(relay) if one["kind"] not in (REACTION, FILE)]

    def read_files(self, relay: NostrRelayServer) -> list[Mapping[str, Any]]:
        """The files that were sent to the person on a relay: their messages of kind 15."""
        return [one for one in self.read(relay) if one["kind"] == FILE]

    def read_reactions(self, relay: NostrRelayServer) -> list[Mapping[str, Any]]:
        """The reactions for the person on a relay."""
        return [one for one in self.read(relay) if one["kind"] == REACTION]

    def _signed(self, kind: int, content: str, tags: Sequence[Sequence[str]]) -> dict[str, Any]:
        made: dict[str, Any] = json.loads(self.keys.sign(kind, content, tags, self._now_s()))
        return made


def secret_of(name: str) -> str:
    """A secret key made of a name, for tests alone."""
    return sha256(f"a secret key for tests: {name}".encode()).hexdigest()
