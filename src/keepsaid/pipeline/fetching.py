"""Fetching: what came with messages is downloaded from its channel after their commit, within limits, and kept."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from keepsaid.domain.commits import Commit
from keepsaid.domain.fetching import (
    AWAIT_MS,
    AWAITED,
    BROUGHT,
    NOT_BROUGHT,
    PIECE_BYTES,
    FileJob,
    FileLease,
    KeepBrought,
    KeepFile,
    KeepPiece,
    LeaveFile,
    PutOffFile,
    RecoverFiles,
    TakeAwaited,
    TakeFiles,
    pieces_of,
)
from keepsaid.domain.ids import show
from keepsaid.domain.media_types import kind_of
from keepsaid.errors import ChannelError, FileRefused, FileUnavailable, KeepsaidError, ModelError, StoreError
from keepsaid.ports.channel import Channel, FileChannel
from keepsaid.ports.model import Recording, Transcriber
from keepsaid.ports.runtime import Clock, point
from keepsaid.ports.store import Store
from keepsaid.text.normal import cut, normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.files")
_AT_ONCE_MAX = 4
_TRIES_MAX = 6
_FIRST_WAIT_MS, _LONGEST_WAIT_MS = 1_000, 300_000
_UNROUTED_WAIT_MS, _UNROUTED_WAIT_MS_MAX = 20, 5_000
"""What came with a message that is not routed yet is looked at again after this, and then after twice as long each
time: its conversation may be paused for days.
"""

_REASON_CHARS_MAX = 500

_FULL_WAIT_MS = 60_000
_WORDS_MAX = 20_000
_ENDED = "it could not be fetched: the program ended during its last try"
_SPOKEN = ("audio/", "video/")
_MEGABYTE = 1_000_000


@frozen
class FetchTerms:
    """How much is fetched: bytes of a file, seconds for one download, and seconds to write down what is said in it.

    Nothing is where it is not `enabled`.
    """

    bytes_max: int = 20_000_000
    fetch_s: float = 60.0
    words_s: float = 60.0
    enabled: bool = True

    @property
    def lease_ms(self) -> int:
        """For how long nobody else fetches what is taken."""
        return int((self.fetch_s + self.words_s + 30.0) * 1_000)


class LostFileLease(Exception):
    """Another process fetches the file, or its message is gone: what was fetched is not kept."""


@frozen
class FetchDeps:
    """What fetching works with: `hint` is set when there may be more to fetch, `is_full` says that the disk has no room
    for files.
    """

    store: Store
    clock: Clock
    hint: asyncio.Event
    is_full: Callable[[], bool] = bool


@dataclass(slots=True, eq=False)
class FileFetcher:
    """Fetches what is due, a few files at a time; `transcriber` writes down what is said in recordings."""

    deps: FetchDeps
    channels: Mapping[str, Channel]
    terms: FetchTerms = FetchTerms()
    transcriber: Transcriber | None = None
    _fetching: set[asyncio.Task[None]] = field(default_factory=set, init=False)
    _stopped: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _looks: int = field(default=0, init=False)

    async def work(self) -> int | None:
        """Start fetching what is due; returns when more may be."""
        if self._stopped.is_set():
            return None
        due, now = await self.deps.store.files.next_due(), self.deps.clock.due_ms()
        free = _AT_ONCE_MAX - len(self._fetching)
        if due is None or due > now or not free:
            self._looks = 0 if free else self._looks
            return due if free else None
        if self.deps.is_full():
            return now + _FULL_WAIT_MS
        jobs = await self.deps.store.apply(TakeFiles(free, now, now + self.terms.lease_ms))
        if self._stopped.is_set():
            return None
        for job in jobs:
            task = asyncio.create_task(self._fetch(job), name=f"fetch-{job.lease.message_id}-{job.lease.number}")
            self._fetching.add(task)
            task.add_done_callback(self._ended)
        if jobs:
            self._looks = 0
            return await self.deps.store.files.next_due()
        self._looks += 1
        return now + min(_UNROUTED_WAIT_MS_MAX, _UNROUTED_WAIT_MS << min(self._looks - 1, 16))

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._fetching.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            _log.error("a file was not fetched, and is tried again later", exc_info=error)
        self.deps.hint.set()

    async def recover(self) -> int:
        """At the start of the one process that fetches: what another began to fetch is due at once."""
        return await self.deps.store.apply(RecoverFiles(self.deps.clock.due_ms()))

    async def bring(self, message_id: int, contents: Sequence[bytes]) -> bool:
        """Write what came with a message, in the order of its files; returns once all of it is on disk.

        What is there already is not written again. False if somebody else writes the same, or the message is gone.
        Raises StoreError.
        """
        taken = await self.deps.store.apply(TakeAwaited(message_id, self.deps.clock.due_ms() + AWAIT_MS))
        for lease in taken:
            if not await self._written(lease, contents[lease.number - 1]):
                return False
        if taken:
            self.deps.hint.set()
        return True

    async def _written(self, lease: FileLease, content: bytes) -> bool:
        pieces = pieces_of(len(content))
        for n in range(pieces):
            piece = content[n * PIECE_BYTES : (n + 1) * PIECE_BYTES]
            if not await self.deps.store.apply(KeepPiece(lease, n, piece)):
                return False
            point("brought.piece")
        return await self.deps.store.apply(KeepBrought(lease, pieces))

    async def stop(self) -> None:
        """Stop fetching; what is under way is fetched again after the next start."""
        self._stopped.set()
        under_way = tuple(self._fetching)
        for task in under_way:
            task.cancel()
        await asyncio.gather(*under_way, return_exceptions=True)

    async def _fetch(self, job: FileJob) -> None:
        """Fetch a file once: it is kept, left for a reason, or put off."""
        point("fetch.before")
        try:
            await self._commit(await self._outcome(job))
        except LostFileLease:
            _log.info("a file of %s is not needed any more", show("message", job.lease.message_id))
        except StoreError as error:
            ids = {"code": error.code, "message": job.lease.message_id}
            _log.warning("a file is not kept, and fetched again later: %s", error.what, extra=ids)
        point("fetch.after")

    async def _outcome(self, job: FileJob) -> Commit[bool]:
        channel: object = self.channels.get(job.channel)
        file, lease = job.attachment, job.lease
        if not self.terms.enabled:
            return LeaveFile(lease, "files.fetch is false")
        if file.ref in (AWAITED, BROUGHT):
            return await self._brought(job)
        if not isinstance(channel, FileChannel):
            return LeaveFile(lease, f"the channel {job.channel} fetches no files")
        if file.size > self.terms.bytes_max:
            return LeaveFile(lease, self._too_large())
        if job.tries > _TRIES_MAX:
            return LeaveFile(lease, _ENDED)
        try:
            async with asyncio.timeout(self.terms.fetch_s):
                return await self._keep(job, channel.fetch(job.account, file))
        except TimeoutError:
            return self._later(job, f"it did not come within {self.terms.fetch_s:g} s")
        except FileUnavailable as error:
            return self._later(job, _reason(error), error.retry_after_s)
        except FileRefused as error:
            return LeaveFile(lease, _reason(error))
        except ChannelError as error:
            return self._later(job, _reason(error))

    async def _brought(self, job: FileJob) -> Commit[bool]:
        """The end of a file whose sender brings its bytes: with all of them it is kept as what its head shows."""
        lease, size = job.lease, job.attachment.size
        if job.attachment.ref == AWAITED:
            return LeaveFile(lease, NOT_BROUGHT)
        content = await self.deps.store.files.content(lease.message_id, lease.number)
        if len(content) != size or job.tries > _TRIES_MAX:
            return LeaveFile(lease, "it is not whole" if len(content) != size else _ENDED)
        return KeepFile(lease, pieces_of(size), kind_of(content[:PIECE_BYTES], job.attachment.kind), size)

    async def _keep(self, job: FileJob, pieces: AsyncGenerator[bytes, None]) -> Commit[bool]:
        """Write a file in pieces as it comes; its head says what it is."""
        size, written, waiting, head = 0, 0, bytearray(), b""
        async with aclosing(pieces) as coming:
            async for piece in coming:
                size += len(piece)
                if size > self.terms.bytes_max:
                    return LeaveFile(job.lease, self._too_large())
                waiting += piece
                while len(waiting) >= PIECE_BYTES:
                    head = head or bytes(waiting[:PIECE_BYTES])
                    await self._commit(KeepPiece(job.lease, written, bytes(waiting[:PIECE_BYTES])))
                    written += 1
                    del waiting[:PIECE_BYTES]
        if waiting or not written:
            head = head or bytes(waiting)
            await self._commit(KeepPiece(job.lease, written, bytes(waiting)))
            written += 1
        kind = kind_of(head, job.attachment.kind)
        return KeepFile(job.lease, written, kind, size)

    def _too_large(self) -> str:
        return f"it is larger than {self.terms.bytes_max / _MEGABYTE:g} MB"

    def _later(self, job: FileJob, why: str, after_s: float | None = None) -> Commit[bool]:
        """Put a file off, longer each time, or leave it after the last try."""
        if job.tries >= _TRIES_MAX:
            return LeaveFile(job.lease, f"it could not be fetched: {why}")
        wait_ms = min(_LONGEST_WAIT_MS, _FIRST_WAIT_MS * 4 ** (job.tries - 1))
        if after_s is not None:
            wait_ms = max(wait_ms, int(after_s * 1_000))
        return PutOffFile(job.lease, self.deps.clock.due_ms() + wait_ms, why)

    async def _commit(self, commit: Commit[bool]) -> None:
        if isinstance(commit, KeepFile):
            commit = await self._with_words(commit)
        if not await self.deps.store.apply(commit):
            raise LostFileLease

    async def _with_words(self, done: KeepFile) -> KeepFile:
        """The end of a file, with what is said in it where it is a recording and somebody can write that down."""
        if (transcriber := self.transcriber) is None or not done.kind.startswith(_SPOKEN):
            return done
        lease, kind = done.lease, done.kind
        content = await self.deps.store.files.content(lease.message_id, lease.number)
        recording = Recording(content, kind, f"{lease.number}.{kind.partition('/')[2]}")
        try:
            async with asyncio.timeout(self.terms.words_s):
                words = await transcriber.transcribe(recording)
        except TimeoutError:
            return self._wordless(done, transcriber.name, "it took too long")
        except ModelError as error:
            return self._wordless(done, transcriber.name, _reason(error))
        return KeepFile(lease, done.pieces, kind, done.size, cut(normalise(words.strip()), _WORDS_MAX))

    def _wordless(self, done: KeepFile, who: str, why: str) -> KeepFile:
        _log.warning("%s did not write down what is said in a recording: %s", who, why)
        return KeepFile(done.lease, done.pieces, done.kind, done.size, reason=f"its words are not known: {why}")


def _reason(error: KeepsaidError) -> str:
    """What an error says, fit to store: it may quote a provider."""
    return cut(normalise(error.what), _REASON_CHARS_MAX)
