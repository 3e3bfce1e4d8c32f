"""The account of a secret key, looked up at its relays: which of them let it read, and what its owner should do."""

from __future__ import annotations

import asyncio

from keepsaid.adapters.channels.nostr.keys import WRAP
from keepsaid.adapters.channels.nostr.pool import NostrPool
from keepsaid.adapters.channels.nostr.socket import NostrDown, NostrRefused
from keepsaid.errors import ChannelError
from keepsaid.ports.channel import AccountReport

_BACKUP = "keep a copy of the secret key in a safe place: nobody can restore it, and no other key reads its messages"


async def look_up(pool: NostrPool) -> AccountReport:
    """The account of the keys of a pool, whose id is the public key; closes the pool.

    Raises ChannelError if no relay is set, or none of them lets the account read.
    """
    if not pool.own:
        raise ChannelError("Nostr needs at least one relay", hint="set nostr.relays, as in wss://relay.example")
    try:
        answers = await asyncio.gather(*(_read_from(pool, url) for url in pool.own))
    finally:
        await pool.close()
    failed = [one for one in answers if one]
    if len(failed) == len(answers):
        raise ChannelError(f"no relay lets the account read: {failed[0]}", hint="see nostr.relays, and the network")
    return AccountReport("nostr", pool.keys.public, pool.keys.npub(), (*failed, _BACKUP))


async def _read_from(pool: NostrPool, url: str) -> str:
    """Read one message of the account from a relay; returns why that fails, "" if it does not."""
    try:
        socket = await pool.open(url)
        await socket.search({"kinds": [WRAP], "#p": [pool.keys.public], "limit": 1})
    except NostrDown as error:
        return str(error)
    except NostrRefused as error:
        return f"{url}: {error}"
    return ""
