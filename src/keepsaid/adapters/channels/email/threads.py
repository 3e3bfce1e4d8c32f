"""Threads of mail: of each the subject and the last ids, which an answer has to name.

They are kept as cursors, at most 1,000 of an account: a new thread takes the place of the one that rested longest.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from keepsaid.adapters.channels.email.headers import normal_id
from keepsaid.domain.line import Cursor
from keepsaid.ports.channel import InboundSink
from keepsaid.values import frozen

_CURSOR = "thread:"
_IDS_MAX = 12
_SUBJECT_CHARS_MAX = 300


@frozen
class MailThread:
    """A thread with one person: the id of its first mail, its subject, and the ids of its last mails, oldest first.

    Ids are as they came, without angle brackets; `used` counts up with each mail of the account.
    """

    person: str
    root: str
    subject: str
    ids: tuple[str, ...]
    used: int = 0

    def spelled(self, number: str) -> str:
        """An id as its mail spells it: the case of its domain may differ."""
        return next((one for one in self.ids if normal_id(one) == number), number)


class EmailThreads:
    """The threads of one account, read from the inbox when they are first asked for."""

    def __init__(self, account: str, inbox: InboundSink, kept_max: int = 1_000) -> None:
        self._account = account
        self._inbox = inbox
        self._kept_max = kept_max
        self._slots: dict[str, MailThread] = {}
        self._by_root: dict[tuple[str, str], str] = {}
        self._roots: dict[tuple[str, str], str] = {}
        self._used = 0
        self._is_loaded = False
        self._loading = asyncio.Lock()

    async def load(self) -> None:
        """Read the threads, unless they are. Raises StoreError."""
        async with self._loading:
            if self._is_loaded:
                return
            for name, value in (await self._inbox.cursors(self._account)).items():
                if name.startswith(_CURSOR) and (thread := _thread_in(value)) is not None:
                    self._put(name, thread)
            self._used = max((thread.used for thread in self._slots.values()), default=0)
            self._is_loaded = True

    def root_of(self, person: str, ids: Iterable[str]) -> str | None:
        """The root of the thread with a person in which one of some ids is; None where none is known."""
        return next((root for one in ids if (root := self._roots.get((person, normal_id(one)))) is not None), None)

    def find(self, person: str, root: str | None, answered: str | None) -> MailThread | None:
        """The thread with a person by its root, or by the id of a mail in it."""
        known = root or (self.root_of(person, [answered]) if answered else None)
        slot = self._by_root.get((person, known)) if known else None
        return self._slots.get(slot) if slot else None

    def note(self, person: str, root: str, subject: str, numbers: Sequence[str]) -> Cursor:
        """Take a mail of a person into its thread; returns the cursor to store with the mail.

        `numbers` are the ids it names, its own last.
        """
        slot = self._by_root.get((person, root)) or self._free_slot()
        before = self._slots.get(slot)
        known = before.ids if before is not None and before.root == root and before.person == person else ()
        ids = (*(one for one in known if one not in numbers), *dict.fromkeys(numbers))
        self._used += 1
        words = subject[:_SUBJECT_CHARS_MAX]
        thread = MailThread(person, root, words, ids[-_IDS_MAX:], self._used)
        self._put(slot, thread)
        return Cursor(self._account, slot, _written(thread))

    async def keep_sent(self, thread: MailThread, numbers: Sequence[str]) -> None:
        """Keep the ids of mails that are sent in a thread, so that answers to them find it. Raises StoreError."""
        cursor = self.note(thread.person, thread.root, thread.subject, numbers)
        await self._inbox.put_all((), (cursor,))

    def _free_slot(self) -> str:
        if len(self._slots) < self._kept_max:
            return next(name for n in range(len(self._slots), -1, -1) if (name := f"{_CURSOR}{n}") not in self._slots)
        return min(self._slots, key=lambda name: self._slots[name].used)

    def _put(self, slot: str, thread: MailThread) -> None:
        if (former := self._slots.get(slot)) is not None:
            self._by_root.pop((former.person, former.root), None)
            for number in _names(former):
                self._roots.pop((former.person, number), None)
        self._slots[slot] = thread
        self._by_root[thread.person, thread.root] = slot
        for number in _names(thread):
            self._roots[thread.person, number] = thread.root


def _names(thread: MailThread) -> Iterator[str]:
    yield normal_id(thread.root)
    yield from (normal_id(one) for one in thread.ids)


def _written(thread: MailThread) -> str:
    fields = {"person": thread.person, "root": thread.root, "subject": thread.subject, "ids": thread.ids}
    return json.dumps({**fields, "used": thread.used}, ensure_ascii=False)


def _thread_in(value: str) -> MailThread | None:
    try:
        told: Mapping[str, object] = json.loads(value)
        person, root, subject = (str(told[name]) for name in ("person", "root", "subject"))
        ids, used = told["ids"], told["used"]
    except (ValueError, KeyError, TypeError):
        return None
    if not isinstance(ids, list) or not isinstance(used, int):
        return None
    return MailThread(person, root, subject, tuple(str(one) for one in ids), used)
