"""An account at a scripted homeserver: an inbox in memory that can refuse, a line that is looked at, and replies."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from keepsaid.adapters.channels.matrix.api import MatrixApi
from keepsaid.adapters.channels.matrix.channel import MatrixChannel
from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.invites import Allowed
from keepsaid.adapters.channels.matrix.line import MatrixAccount, MatrixLine
from keepsaid.adapters.channels.matrix.listener import MatrixListener
from keepsaid.adapters.channels.pace import Rate, SendingPace
from keepsaid.domain.message import Lane, lane_key
from keepsaid.domain.reply import ReplyDraft, StoredReply
from keepsaid.ports.runtime import Clock
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.matrix_rooms import USER

ROOM, ANN, BOB = "!room:test", "@ann:test", "@bob:test"
MEGOLM = "m.megolm.v1.aes-sha2"
BEGAN_MS = 1_750_000_000_000


def api_of(matrix: MatrixServer) -> MatrixApi:
    return MatrixApi(matrix.token, matrix.url)


@asynccontextmanager
async def listening(
    matrix: MatrixServer,
    inbox: MemoryInbox,
    clock: Clock | None = None,
    shown: LineLog | None = None,
    allowed: Allowed = (),
) -> AsyncIterator[MatrixAccount]:
    """A listener of the account that made its first contact, until the block ends."""
    line = MatrixLine(clock or VirtualClock(BEGAN_MS), shown or LineLog())
    async with _attending(MatrixAccount(api_of(matrix)), inbox, line, allowed) as account:
        yield account


@asynccontextmanager
async def decrypting(
    matrix: MatrixServer, inbox: MemoryInbox, clock: Clock | None = None, shown: LineLog | None = None
) -> AsyncIterator[MatrixAccount]:
    """A listener that reads encrypted rooms too, until the block ends."""
    api, clock = api_of(matrix), clock or VirtualClock(BEGAN_MS)
    made = MatrixAccount(api, crypto=MatrixCrypto(api, clock, inbox))
    async with _attending(made, inbox, MatrixLine(clock, shown or LineLog())) as account:
        yield account


@asynccontextmanager
async def _attending(
    account: MatrixAccount, inbox: MemoryInbox, line: MatrixLine, allowed: Allowed = ()
) -> AsyncIterator[MatrixAccount]:
    task = asyncio.create_task(MatrixListener(account, line, allowed).listen(inbox))
    try:
        yield account
    finally:
        assert not task.done(), task.exception()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        await account.api.close()


async def contacted(inbox: MemoryInbox) -> None:
    """Wait until the first cursor is stored: what is said from now on is a message."""
    await inbox.wait_for(lambda: "since" in inbox.stored)


def sender_of(account: MatrixAccount, clock: Clock | None = None) -> MatrixChannel:
    """The account of a listener as it sends."""
    return MatrixChannel(
        account, SendingPace(clock or VirtualClock(BEGAN_MS), Rate(0.0), Rate(0.0)), clock or VirtualClock(BEGAN_MS)
    )


@asynccontextmanager
async def channel_of(matrix: MatrixServer, clock: Clock | None = None) -> AsyncIterator[MatrixChannel]:
    """The account as it sends."""
    channel = sender_of(MatrixAccount(api_of(matrix)), clock)
    try:
        yield channel
    finally:
        await channel.close()


def server(**settings: object) -> MatrixServer:
    """A homeserver whose clock says when the virtual one began."""
    return MatrixServer(now_ms=lambda: BEGAN_MS, **settings)  # type: ignore[arg-type]


def encrypted(matrix: MatrixServer, *users: str) -> MatrixPeer:
    """An encrypted room with Ann and others, and Ann's phone."""
    matrix.room(ROOM, ANN, *users, encryption=MEGOLM)
    return MatrixPeer(matrix)


def lane_in(room: str = ROOM, thread: str | None = None, account: str = USER) -> Lane:
    conversation = f"matrix:{room}"
    return Lane("matrix", account, conversation, lane_key(conversation, thread))


def reply_of(
    text: str, lane: Lane | None = None, *, number: int = 1, reply_to: str | None = None, tried_from: int = 0
) -> StoredReply:
    draft = ReplyDraft(number, text, reply_to=reply_to)
    return StoredReply(number, lane or lane_in(), 1, "sending", draft, created_at=BEGAN_MS, tried_from=tried_from)
