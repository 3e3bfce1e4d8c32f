"""Intake: checks a message, gives it an id, stores it, and then acknowledges it; refuses messages on a full disk."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import field
from difflib import get_close_matches
from functools import partial

from keepsaid.domain import batch, commits, message, process
from keepsaid.domain.attachment import attachments_of
from keepsaid.domain.message import SYSTEM, BodyKey, Content, Inbound, Origin, ProviderMarks
from keepsaid.domain.recorded_talk import AT_ONCE, RecordTalk
from keepsaid.errors import DiskReserve, InputError, KeyConflict, TooLarge, UnknownChannel
from keepsaid.ports import runtime, store_views
from keepsaid.text.normal import normalise
from keepsaid.values import frozen

_log = logging.getLogger("keepsaid.buffer")
_MEGABYTE = 1_000_000


class DiskSpaceGuard:
    """Refuses messages while less than `floor_mb` is free. The disk is only read by `look`, never for a message.

    The space below the floor is for replies, steps and the write-ahead log.
    """

    def __init__(self, space: runtime.Space, floor_mb: int) -> None:
        self._space = space
        self._floor_mb = floor_mb
        self._refusal: str | None = None

    @property
    def reached(self) -> bool:
        """Whether too little is left to take anything in."""
        return self._refusal is not None

    async def work(self) -> None:
        """Read the free space, as a service."""
        self.look()

    def look(self) -> None:
        """Read the free space; logs when intake stops and when it goes on."""
        free, floor_mb = self._space.free_bytes(), self._floor_mb
        before, self._refusal = self._refusal, None
        if free < floor_mb * _MEGABYTE:
            self._refusal = f"{free / _MEGABYTE:,.1f} MB of disk are free; below {floor_mb} MB nothing is taken in"
        if self._refusal is not None and before is None:
            _log.warning("intake stops: %s", self._refusal, extra={"code": DiskReserve.code})
        if self._refusal is None and before is not None:
            _log.warning("intake goes on: %.1f MB of disk are free", free / _MEGABYTE, extra={"code": DiskReserve.code})

    def check(self) -> None:
        """Raise DiskReserve when nothing may come in."""
        if self._refusal is not None:
            raise DiskReserve(self._refusal)


_INLINE_BYTES_MAX = 64_000
"""A larger payload is hashed in a thread."""

_INLINE_CHARS_MAX = 4_096
"""A longer text outside ASCII is made fit to store in a thread, so that it does not hold up the event loop."""


@frozen
class IntakeLimits:
    """Limits of a message: bytes of its payload, characters of its text and of any name.

    `place_bytes_max` is for account, conversation and topic together: an index has to hold them three times, in 2,700
    bytes where the stores are in PostgreSQL. `id_bytes_max` is for the sender and each id.
    """

    payload_bytes_max: int = 26_214_400
    text_chars_max: int = 1_000_000
    name_chars_max: int = 1_024
    place_bytes_max: int = 800
    id_bytes_max: int = 1_024
    same_body_ms: Mapping[str, int] = field(default_factory=dict)
    """Milliseconds in which the same payload is a duplicate under any id, by channel; 0 or no entry: never."""

    def check_index(self, inbound: Inbound) -> None:
        """Raise InputError for names that are too long for an index."""
        origin = inbound.origin
        within = inbound.topic or inbound.marks.reply_to or ""
        if _size(origin.account, origin.conversation, within) > self.place_bytes_max:
            what = f"account, conversation and topic (or the id replied to) have more than {self.place_bytes_max} bytes"
            raise InputError(f"{what} together; the hash of a name will do")
        if any(_size(name or "") > self.id_bytes_max for name in (origin.sender, *_ids(inbound.marks))):
            raise InputError(f"no sender or id may have more than {self.id_bytes_max:,} bytes")


def storable(inbound: Inbound) -> Inbound:
    """The message with every string made fit to store: NFC, no NUL, no lone surrogates; the payload stays raw."""
    return inbound if _is_fit(_whole(inbound)) else _normalised(inbound)


def _strings(inbound: Inbound) -> tuple[str | None, ...]:
    origin, content, marks = inbound.origin, inbound.content, inbound.marks
    names = origin.channel, origin.account, origin.conversation, origin.sender, origin.name
    return (
        *names,
        content.text,
        content.event,
        *_ids(marks),
        inbound.topic,
        inbound.reply_url,
        inbound.conversation_name,
    )


def _whole(inbound: Inbound) -> str:
    """Every string of a message, joined."""
    return "".join([text for text in _strings(inbound) if text])


def _is_fit(text: str) -> bool:
    return text.isascii() and "\0" not in text


def _normalised(inbound: Inbound) -> Inbound:
    origin, content = inbound.origin, inbound.content
    fit = [None if text is None else normalise(text) for text in _strings(inbound)]
    channel, account, conversation, sender, name, text, event = (one or "" for one in fit[:7])
    return Inbound(
        Origin(channel, account, conversation, sender, name, origin.direct, origin.trust),
        Content(content.payload, text, event),
        ProviderMarks(*fit[7:10]),
        inbound.priority,
        topic=fit[10],
        reply_url=fit[11],
        key=inbound.key,
        conversation_name=fit[12] or "",
        addressed=inbound.addressed,
        more_ms=inbound.more_ms,
        by_bot=inbound.by_bot,
        files=inbound.files,
        forks_after=inbound.forks_after,
        incognito=inbound.incognito,
        whole=inbound.whole,
        placing=inbound.placing,
    )


_SHRINKS = 4
"""Characters that may become one when a text is normalised."""


def _refuse_oversized(inbound: Inbound, limits: IntakeLimits) -> None:
    """Refuse what is far too long before time is spent on it; the limits proper hold for what is stored."""
    strings, text = _strings(inbound), inbound.content.text
    if len(text) > _SHRINKS * limits.text_chars_max:
        raise TooLarge(f"the text has {len(text):,} characters; {limits.text_chars_max:,} are allowed")
    for given in strings[:5] + strings[6:]:  # without the text
        if given is not None and len(given) > _SHRINKS * limits.name_chars_max:
            raise InputError(f"no name, id or URL may have more than {limits.name_chars_max} characters")


def _ids(marks: ProviderMarks) -> tuple[str | None, ...]:
    return marks.external_id, marks.provider_id, marks.reply_to


def _size(*names: str) -> int:
    """The bytes of names together, in UTF-8."""
    return sum(len(name) if name.isascii() else len(name.encode()) for name in names)


def _hashes(inbound: Inbound, same_body_ms: int) -> tuple[bytes, bytes]:
    return inbound.content_hash, inbound.body_hash if same_body_ms else b""


@frozen
class MessageIntake:
    """The single way into the buffer."""

    operations: store_views.Notes
    clock: runtime.Clock
    ids: runtime.Ids
    windows: Mapping[str, batch.Window]
    limits: IntakeLimits
    reserve: DiskSpaceGuard | None = None
    lanes: message.LaneRules = message.LaneRules()

    async def receive(self, inbound: Inbound) -> commits.Received:
        """Store a message; returns once it is on disk, or says that it was there before.

        Raises UnknownChannel, TooLarge or another InputError with nothing stored, KeyConflict when its
        external id was used with other content, DiskReserve when too little disk is free, and StoreError
        when the disk refuses.
        """
        arrival, window = await self.arrival(inbound)
        inbound = arrival.inbound
        if inbound.conversation_name:
            await self._name_conversation(inbound, arrival.at)
        clock_back_ms = max(0, self.clock.due_ms() - arrival.at)
        received = await self.operations.apply(commits.Receive(arrival, window, self.lanes, clock_back_ms))
        if received.intake is commits.IntakeResult.CONFLICT:
            key = inbound.marks.external_id
            conflict = KeyConflict(f"the id {key!r} was used before on {inbound.origin.channel} with other content")
            conflict.first_id = received.id
            raise conflict
        return received

    async def arrival(self, inbound: Inbound) -> tuple[commits.Arrival, batch.Window]:
        """A message that is fit to store, with its hashes, and the window of its channel; nothing is stored.

        Raises UnknownChannel, TooLarge or another InputError, and DiskReserve when too little disk is free.
        """
        whole = _whole(inbound)
        if not _is_fit(whole) or len(whole) > self.limits.name_chars_max:  # else nothing in it is too long
            inbound = await self._storable(inbound, whole)
        usual = self._checked(inbound)
        window = AT_ONCE if inbound.whole else usual.held_open(inbound.more_ms)
        if self.reserve is not None:
            self.reserve.check()
        same_body_ms = self.limits.same_body_ms.get(inbound.origin.channel, 0)
        hashes = partial(_hashes, inbound, same_body_ms)
        is_large = len(inbound.content.payload) > _INLINE_BYTES_MAX
        content, body = await asyncio.to_thread(hashes) if is_large else hashes()
        now = self.clock.now_ms()
        body_key = BodyKey(body, now + same_body_ms) if body else None
        return commits.Arrival(self.ids.next(), inbound, now, inbound.key_hash, content, body_key), window

    async def _name_conversation(self, inbound: Inbound, now: int) -> None:
        """Keep the title of the conversation, if it is another than the one that is kept."""
        name, title = message.conversation_note(inbound.lane), inbound.conversation_name
        if await self.operations.note(name, now) != title:
            await self.operations.apply(process.Note(name, title, process.ENDLESSLY, now))

    async def _storable(self, inbound: Inbound, whole: str) -> Inbound:
        """The message, fit to store. Raises TooLarge and InputError for what is far too long."""
        _refuse_oversized(inbound, self.limits)
        if _is_fit(whole):
            return inbound
        if len(whole) > _INLINE_CHARS_MAX:
            return await asyncio.to_thread(_normalised, inbound)
        return _normalised(inbound)

    def _checked(self, inbound: Inbound) -> batch.Window:
        origin, content, limits = inbound.origin, inbound.content, self.limits
        if (window := self.windows.get(origin.channel)) is None:
            near = get_close_matches(origin.channel, self.windows, 1)
            known = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(sorted(self.windows))}"
            raise UnknownChannel(f"there is no channel {origin.channel!r}; {known}")
        if not content.text.strip() and not content.event and not inbound.files and not attachments_of(content):
            raise InputError("the message is empty: it has no text, has no attachment, and is not an event")
        if len(content.payload) > limits.payload_bytes_max:
            raise TooLarge(f"the payload has {len(content.payload):,} bytes; {limits.payload_bytes_max:,} are allowed")
        if len(content.text) > limits.text_chars_max:
            raise TooLarge(f"the text has {len(content.text):,} characters; {limits.text_chars_max:,} are allowed")
        for name in (origin.account, origin.sender, origin.conversation):
            if not name or len(name) > limits.name_chars_max:
                raise InputError(f"account, sender and conversation need 1 to {limits.name_chars_max} characters each")
        # what the program says names its lane, and nobody else can
        if origin.sender == SYSTEM and inbound.key is None:
            raise InputError(f"nobody may be called {SYSTEM!r}: so the program calls itself")
        for given in (origin.name, content.event, *_ids(inbound.marks), inbound.topic, inbound.conversation_name):
            if given is not None and len(given) > limits.name_chars_max:
                raise InputError(f"no name or id may have more than {limits.name_chars_max} characters")
        limits.check_index(inbound)
        return window


@frozen
class TalkIntake:
    """The way in for what another agent and its people said; `owner` is this process."""

    intake: MessageIntake
    owner: str
    hints: runtime.Wakeups
    inactive_ms: int

    async def record(self, said: Sequence[Inbound]) -> tuple[commits.Received, ...]:
        """Keep messages of one lane, in order, in one commit; returns a receipt for each.

        Raises InputError with nothing stored, StoreError, and KeyConflict where one's external id was used with other
        content: the others are stored then.
        """
        arrivals = [(await self.intake.arrival(one))[0] for one in said]
        clock, ids = self.intake.clock, self.intake.ids
        at, steady = clock.now_ms(), clock.steady_ms()
        commit = RecordTalk(tuple(arrivals), ids.next(), ids.next(), self.owner, at, steady, self.inactive_ms)
        received = await self.intake.operations.apply(commit)
        self.hints.record.set()
        for n, (inbound, one) in enumerate(zip(said, received, strict=True), start=1):
            if one.intake is commits.IntakeResult.CONFLICT:
                what = f"the key of message {n} of this call was used before in {inbound.origin.conversation!r}"
                raise KeyConflict(f"{what} for other words", safe="What is new of the others is recorded.")
        return received
