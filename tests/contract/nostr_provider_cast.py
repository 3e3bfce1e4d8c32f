"""Nostr beside a scripted relay, as the contract of channels plays with it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Any, Self

from tests.contract.people_casts import NostrPeers
from tests.contract.provider_cast import FAILS, QUICK, SPEED, ListeningProviderServer, reply_in

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.keys import WRAP, NostrKeys
from keepsaid.adapters.channels.nostr.line import NostrLine
from keepsaid.adapters.channels.nostr.listener import NostrListener
from keepsaid.adapters.channels.nostr.people import NostrPeople
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.profile import NostrProfile
from keepsaid.adapters.channels.nostr.uploading import NostrUploads
from keepsaid.adapters.channels.pace import SendingPace
from keepsaid.domain.line import Cursor
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import StoredReply
from keepsaid.ports.channel import Channel
from keepsaid.ports.extension import ListeningProvider
from keepsaid.testing.clock import FastClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.listening_contract import ProviderTraits
from keepsaid.testing.providers.mischief import Mischief, harmless, mischief_of, one_after_the_other
from keepsaid.testing.providers.nostr import NostrDeliveryAct, NostrRelayServer, delivery_acts_of
from keepsaid.testing.providers.nostr_files import NostrFileServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of

_ROOM = "nostr:direct:the-room-with-ann"


class NostrCast(NostrPeers):
    """An account of Nostr, at one relay where its correspondent reads too."""

    acts = (Mischief.DROP, Mischief.FAIL, Mischief.RESET_AFTER, Mischief.SLOW_DOWN, Mischief.GARBLE)
    upload_acts = FAILS
    secrets = (secret_of("agent"),)
    provider = ProviderTraits(ordered=False, chars_max=8_000, ahead_ms_max=500_000)

    def __init__(self) -> None:
        self.clock = FastClock(SPEED)
        self.relay, self.host = NostrRelayServer(), NostrFileServer()
        self.server: ListeningProviderServer = self.relay
        self.inbox = MemoryInbox()
        self.keys = NostrKeys(self.secrets[0])
        self.ann, self.bob, self.agent = (NostrPerson(name, self._now_s) for name in ("ann", "bob", "agent"))
        self._said: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        await super().__aenter__()
        await self.host.__aenter__()
        await self.relay.store(self.ann.relay_list(self.relay.url))
        self._people = NostrPeople(self.keys.public, self.inbox)
        self._people.commit([Cursor(self.keys.public, _ROOM.replace("nostr:direct:", "people:"), self.ann.public)])
        pace = SendingPace(self.clock, QUICK, QUICK)
        pool = self._make_pool()
        uploads = NostrUploads(pool, (self.host.url,), self.upload)
        self.channel: Channel = NostrChannel(pool, self._people, pace, uploads=uploads)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await super().__aexit__(kind, error, trace)
        await self.host.__aexit__(kind, error, trace)

    def reply(self, text: str, number: int = 1) -> StoredReply:
        lane = Lane("nostr", self.keys.public, _ROOM, lane_key(_ROOM))
        return reply_in(lane, text, number, self.clock.now_ms())

    def script(self, *acts: Mischief) -> None:
        self.relay.mischief = one_after_the_other(*acts, method="EVENT")

    def sent(self) -> Sequence[str]:
        return self.ann.read_texts(self.relay)

    def close_place(self) -> None:
        self.relay.accepted = [one for one in self.relay.accepted if one["kind"] != 10_050]

    @asynccontextmanager
    async def listener(self, line: LineLog) -> AsyncIterator[ListeningProvider]:
        self.clock.jump(2_000)
        pool = self._make_pool()
        profile = NostrProfile(self.keys, self.clock, pool.own, pool)
        people = NostrPeople(self.keys.public, self.inbox)
        try:
            yield NostrListener(self.keys, NostrLine(self.clock, line), people, profile)
        finally:
            await pool.close()

    def say(self, text: str) -> None:
        written = text.encode("utf-8", "replace").decode()
        self.last, wrap = self.ann.write(written, self.keys.public)
        self._store(wrap)

    def say_in_group(self, text: str, *, addressed: bool) -> None:
        named = f"nostr:{self.keys.npub()} {text}" if addressed else text
        self._store(self.ann.write(named, self.keys.public, self.bob.public)[1])

    def say_itself(self, text: str) -> None:
        self._store(self.agent.write(text, self.keys.public)[1])

    def garble(self) -> None:
        wrap = {"id": "0" * 64, "pubkey": "1" * 64, "created_at": self._now_s(), "kind": WRAP, "content": "?"}
        self._store({**wrap, "tags": [["p", self.keys.public]], "sig": "2" * 128})

    def drop(self) -> None:
        self.relay.drop()

    def trouble(self, seed: int) -> None:
        self.relay.mischief = mischief_of(seed, 0.2) if seed else harmless
        self.relay.act = delivery_acts_of(seed) if seed else lambda _number: NostrDeliveryAct.DELIVER

    def refuse(self, *, token: bool) -> None:
        self.relay.closes_with = "blocked: you may not read here" if token else ""

    def _make_pool(self) -> NostrPool:
        return NostrPool(self.keys, self.clock, (self.relay.url,))

    def _now_s(self) -> int:
        return (self.clock.now_ms() + self.ahead_ms) // 1_000

    def _store(self, event: Mapping[str, Any]) -> None:
        """Have an event stored and sent; what is stored first is sent first."""
        task = asyncio.ensure_future(self.relay.store(event))
        self._said.add(task)
        task.add_done_callback(self._said.discard)
