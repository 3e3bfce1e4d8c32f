"""An account of Nostr at scripted relays: its listener, its channel, an inbox in memory, and people who write to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from keepsaid.adapters.channels.nostr.channel import NostrChannel
from keepsaid.adapters.channels.nostr.keys import NostrKeys
from keepsaid.adapters.channels.nostr.line import NostrLine
from keepsaid.adapters.channels.nostr.listener import NostrListener
from keepsaid.adapters.channels.nostr.people import NostrPeople
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.profile import NostrProfile
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.ports.runtime import Clock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.nostr import NostrRelayServer
from keepsaid.testing.providers.nostr_people import NostrPerson, secret_of

SECRET = secret_of("agent")
AGENT = NostrKeys(SECRET).public


def pool_of(clock: Clock, *relays: str, trusted: Sequence[str] = (), extra: Sequence[str] = ()) -> NostrPool:
    return NostrPool(NostrKeys(SECRET), clock, relays, extra, trusted)


@asynccontextmanager
async def listening(
    inbox: MemoryInbox, clock: Clock, *relays: str, shown: LineLog | None = None, legacy: bool = False
) -> AsyncIterator[NostrListener]:
    """A listener of the account, until the block ends."""
    pool = pool_of(clock, *relays)
    profile = NostrProfile(pool.keys, clock, relays, pool, "keepsaid")
    people = NostrPeople(AGENT, inbox)
    line = NostrLine(clock, shown or LineLog())
    listener = NostrListener(pool.keys, line, people, profile, legacy=legacy)
    task = asyncio.create_task(listener.listen(inbox))
    try:
        yield listener
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await pool.close()


@asynccontextmanager
async def sending(
    inbox: MemoryInbox, clock: Clock, own: str, *others: str, fallback: Sequence[str] = ()
) -> AsyncIterator[NostrChannel]:
    """The account as it sends; `others` are relays of others that may be dialled on this machine."""
    pool = pool_of(clock, own, trusted=(*others, *fallback))
    pace = SendingPace(clock, Rate(0.0), Rate(0.0))
    channel = NostrChannel(pool, NostrPeople(AGENT, inbox), pace, fallback)
    try:
        yield channel
    finally:
        await channel.close()


def reply_of(
    text: str, conversation: str, *, number: int = 1, reply_to: str | None = None, tried_from: int = 0
) -> StoredReply:
    lane = Lane("nostr", AGENT, conversation, lane_key(conversation))
    draft = ReplyDraft(number, text, reply_to=reply_to)
    return StoredReply(number, lane, 1, "sending", draft, created_at=1_750_000_000_000, tried_from=tried_from)


async def hear(inbox: MemoryInbox, clock: Clock, relay: NostrRelayServer, person: NostrPerson) -> str:
    """Let a person write to the account, and return the conversation."""

    def rooms() -> list[str]:
        return [one.conversation for one in inbox.kept.values() if one.sender == person.public]

    async with listening(inbox, clock, relay.url):
        await relay.wait_for(lambda: relay.subscribed > 0)
        await relay.store(person.write("hello", AGENT)[1])
        await inbox.wait_for(lambda: bool(rooms()))
    return rooms()[0]
