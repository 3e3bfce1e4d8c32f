"""Reading a folder from where it was read before: each group of mails is stored together with the cursor behind it."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from keepsaid.adapters.channels.email.account import NAME, EmailAccount
from keepsaid.adapters.channels.email.imap import FolderState, ImapFolder, ImapLost, ImapRefused, MailFacts
from keepsaid.adapters.channels.email.read import BYTES_MAX
from keepsaid.adapters.channels.email.threads import EmailThreads
from keepsaid.adapters.channels.email.updates import MailReader, ReadMail, in_thread
from keepsaid.domain.line import Cursor
from keepsaid.ports.channel import InboundSink, Incoming
from keepsaid.ports.runtime import Clock

_GROUP_MAILS, _GROUP_BYTES = 50, 8_000_000
_RESCAN_MS = 30 * 86_400_000
_SKEW_MS = 600_000
"""How far the clocks of the server and of this machine may differ."""

_REFUSED_MAX = 3
"""After this number of refusals a mail that the server does not give is stored as one that cannot be read."""


class MailboxReader:
    """Stores what comes into a folder, in the order of its UIDs; nothing is left out, and nothing is read twice."""

    def __init__(self, account: EmailAccount, reader: MailReader, threads: EmailThreads, clock: Clock) -> None:
        self._account = account
        self._reader = reader
        self._threads = threads
        self._clock = clock
        self._refusals: Counter[int] = Counter()
        self._validity = 0
        self._read_to = 0

    async def begin(self, folder: ImapFolder, state: FolderState, inbox: InboundSink) -> None:
        """Find the place to read on from. At the first contact that is the end of the folder.

        If the server has numbered its mails again, those of the last 30 days are read, but none from before the first
        contact; what was stored before is known by its key. Raises StoreError, ImapLost and ImapRefused.
        """
        await self._threads.load()
        stored = await inbox.cursors(self._account.address)
        self._validity = state.validity
        place = _place_in(stored.get(f"uid:{folder.folder}", ""))
        if place is None:
            now = Cursor(self._account.address, f"since:{folder.folder}", str(self._clock.now_ms()))
            await inbox.put_all((), (now, self._cursor(folder, state.validity, state.next_uid - 1)))
            place = state.validity, state.next_uid - 1
        elif place[0] != state.validity:
            self._refusals.clear()
            since = stored.get(f"since:{folder.folder}", "")
            await self._rescan(folder, state, inbox, int(since) if since.isdecimal() else 0)
            place = state.validity, state.next_uid - 1
        self._read_to = place[1]

    async def read_new(self, folder: ImapFolder, inbox: InboundSink) -> None:
        """Store what came since. Raises StoreError, ImapLost and ImapRefused; then call it again later."""
        found = await folder.newer(self._read_to)
        for at in range(0, len(found), _GROUP_MAILS):
            uids = found[at : at + _GROUP_MAILS]
            facts = await self._facts(folder, uids)
            for group in _groups(uids, facts):
                messages, cursors = await self._read(folder, group, facts)
                behind = self._cursor(folder, self._validity, group[-1])
                await inbox.put_all(messages, (*cursors, behind))
                self._read_to = group[-1]

    async def _rescan(self, folder: ImapFolder, state: FolderState, inbox: InboundSink, first_ms: int) -> None:
        """Store the mails of the last 30 days; the cursor is set once all are stored."""
        since_ms = max(first_ms - _SKEW_MS, self._clock.now_ms() - _RESCAN_MS)
        found = [uid for uid in await folder.since(since_ms) if uid < state.next_uid]
        for at in range(0, len(found), _GROUP_MAILS):
            uids = found[at : at + _GROUP_MAILS]
            facts = await self._facts(folder, uids)
            wanted = [uid for uid in uids if uid in facts and not 0 < facts[uid].received_ms < since_ms]
            for group in _groups(wanted, facts):
                messages, cursors = await self._read(folder, group, facts)
                await inbox.put_all(messages, cursors)
        await inbox.put_all((), (self._cursor(folder, state.validity, state.next_uid - 1),))

    async def _facts(self, folder: ImapFolder, uids: Sequence[int]) -> Mapping[int, MailFacts]:
        facts = await folder.facts(uids)
        await self._check_deleted(folder, uids, facts)
        return facts

    async def _read(
        self, folder: ImapFolder, uids: Sequence[int], facts: Mapping[int, MailFacts]
    ) -> tuple[list[Incoming], list[Cursor]]:
        """Mails as messages, and the cursors of their threads."""
        small = [uid for uid in uids if uid in facts and facts[uid].size <= BYTES_MAX]
        bodies = await self._bodies(folder, small)
        large = [uid for uid in uids if uid in facts and uid not in small]
        heads = await folder.heads(large) if large else {}
        read: dict[int, ReadMail] = await asyncio.to_thread(
            lambda: {uid: self._reader.read(raw) for uid, raw in bodies.items()}
        )
        messages: list[Incoming] = []
        cursors: dict[str, Cursor] = {}
        for uid in uids:
            if uid in read:
                message, moved = in_thread(read[uid], self._account, self._threads)
                messages.append(message)
                cursors |= {cursor.name: cursor for cursor in moved}
            elif uid in facts:
                what = f"[the mail has {facts[uid].size:,} bytes; at most {BYTES_MAX:,} are read]"
                what = what if uid in large else "[the mail server refuses to give the mail]"
                key = f"{NAME}:{folder.folder}:{self._validity}:{uid}"
                messages.append(self._reader.kept(heads.get(uid, b""), key, what))
        return messages, list(cursors.values())

    async def _bodies(self, folder: ImapFolder, uids: Sequence[int]) -> dict[int, bytes]:
        """The mails of a group; where the server refuses them together, one by one."""
        if not uids:
            return {}
        try:
            found = await folder.mails(uids)
        except ImapRefused:
            found = {}
            for uid in uids:
                found |= await self._one_body(folder, uid)
        await self._check_deleted(folder, [uid for uid in uids if not self._is_refused(uid)], found)
        return found

    async def _one_body(self, folder: ImapFolder, uid: int) -> dict[int, bytes]:
        try:
            return await folder.mails([uid])
        except ImapRefused:
            self._refusals[uid] += 1
            if not self._is_refused(uid):
                raise
            return {}

    def _is_refused(self, uid: int) -> bool:
        return self._refusals[uid] >= _REFUSED_MAX

    async def _check_deleted(self, folder: ImapFolder, uids: Sequence[int], found: Mapping[int, object]) -> None:
        """Check that what the server did not give is deleted. Raises ImapLost where it is still there."""
        if missing := {uid for uid in uids if uid not in found}:
            there = missing.intersection(await folder.newer(min(missing) - 1))
            if there:
                raise ImapLost("the server did not give a mail that is there")

    def _cursor(self, folder: ImapFolder, validity: int, uid: int) -> Cursor:
        return Cursor(self._account.address, f"uid:{folder.folder}", f"{validity}:{uid}")


def _place_in(value: str) -> tuple[int, int] | None:
    """UIDVALIDITY and UID in the value of a cursor."""
    validity, _, uid = value.partition(":")
    return (int(validity), int(uid)) if validity.isdecimal() and uid.isdecimal() else None


def _groups(uids: Sequence[int], facts: Mapping[int, MailFacts]) -> Iterator[list[int]]:
    """UIDs in their order, as many in a group as have 8 MB together; at least one."""
    group: list[int] = []
    size = 0
    for uid in uids:
        more = facts[uid].size if uid in facts else 0
        if group and size + more > _GROUP_BYTES:
            yield group
            group, size = [], 0
        group.append(uid)
        size += more
    if group:
        yield group
