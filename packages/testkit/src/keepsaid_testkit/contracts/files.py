"""The contract of files: fetched once their message is routed, under a lease, in pieces; gone with their message."""

from __future__ import annotations

from dataclasses import replace

from keepsaid.domain.commits import EpisodesKept, MarkReplyShown, Prune, Requeue
from keepsaid.domain.fetching import (
    AWAIT_MS,
    AWAITED,
    BROUGHT,
    NOT_BROUGHT,
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
)
from keepsaid.domain.files import FileState, StoredFile
from keepsaid.domain.forgetting import ForgetTargets, MoveForgetting, PutBack, RequestForgetting, ScrubForgotten
from keepsaid.domain.message import Attachment, Content, ProviderMarks
from keepsaid.domain.retention import Stale
from keepsaid.domain.route import Action
from keepsaid.testing.builders import ACCOUNT, CHANNEL, ROOM, lane_of, said, verdict
from keepsaid_testkit.contracts.store_driver import ContractStore, StoreDriver

PHOTO = Attachment("photo", "image/jpeg", "ref-1", 9)
BY_SENDER = Attachment("notes.txt", "text/plain", AWAITED, 6)
VOICE = Attachment("voice.ogg", "audio/ogg", "ref-2")
_LEASE_MS = 100


async def with_files(road: StoreDriver, *files: Attachment, by: Action = Action.FORWARD) -> tuple[int, int]:
    """A message that brought files, routed; its id and that of its batch."""
    queued = await road.queue(replace(said("look at this"), files=files), by=verdict(by))
    return queued.first.id, queued.batch_id


async def take(store: ContractStore, at: int = 1, limit: int = 9) -> tuple[FileJob, ...]:
    """Take what is to be fetched."""
    return await store.apply(TakeFiles(limit, at, at + _LEASE_MS))


async def fetch(store: ContractStore, job: FileJob, *pieces: bytes, words: str = "") -> bool:
    """Keep the bytes of a file."""
    kept = [await store.apply(KeepPiece(job.lease, n, piece)) for n, piece in enumerate(pieces)]
    assert len(set(kept)) == 1
    done = KeepFile(job.lease, len(pieces), "image/png", sum(map(len, pieces)), words)
    return await store.apply(done) and kept[0]


async def file_of(store: ContractStore, message_id: int) -> StoredFile:
    """The one file of a message."""
    [found] = await store.files.of_messages((message_id,))
    return found


class FileContract:
    """How files are fetched and kept."""

    async def test_a_file_waits_until_its_message_is_routed(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        assert await store.files.next_due() is None
        received = await road.receive(replace(said("look at this"), files=(PHOTO, VOICE)))
        assert await take(store) == ()
        assert await store.files.next_due() == 0
        await road.route(lane_of())
        first, second = await take(store)
        assert (first.lease.message_id, first.lease.number, first.tries) == (received.id, 1, 1)
        assert (first.channel, first.account, first.conversation) == (CHANNEL, ACCOUNT, ROOM)
        assert (first.attachment, second.attachment) == (PHOTO, VOICE)
        assert await store.files.next_due() == 1 + _LEASE_MS

    async def test_what_is_fetched_is_kept_in_its_pieces(self, store: ContractStore) -> None:
        message_id, _ = await with_files(StoreDriver(store), PHOTO)
        [job] = await take(store)
        assert await fetch(store, job, b"\x89PNG\x00", b"\xff" * 300_000)
        assert await file_of(store, message_id) == StoredFile(
            message_id, 1, "photo", "image/png", 300_005, FileState.KEPT
        )
        assert await store.files.content(message_id, 1) == b"\x89PNG\x00" + b"\xff" * 300_000
        placed = await store.files.placed(message_id, 1)
        assert placed is not None
        assert placed.lane == lane_of()
        assert await store.files.placed(message_id, 2) is None
        assert await store.files.next_due() is None
        assert await take(store, 999) == ()

    async def test_the_payload_of_a_message_is_found_by_its_id(self, store: ContractStore) -> None:
        """Of an account, the newest; of nobody else, and no longer than the message is remembered."""
        road = StoreDriver(store)
        marks = ProviderMarks(provider_id="mail-1@example.net")
        for payload in (b"older", b"\x00\xff newer"):
            await road.receive(replace(said("look"), marks=marks, content=Content(payload, "look")))
        assert await store.files.payload(CHANNEL, ACCOUNT, "mail-1@example.net") == b"\x00\xff newer"
        assert await store.files.payload(CHANNEL, "another", "mail-1@example.net") is None
        assert await store.files.payload("another", ACCOUNT, "mail-1@example.net") is None
        assert await store.files.payload(CHANNEL, ACCOUNT, "mail-2@example.net") is None

    async def test_a_claimed_batch_has_its_files(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        message_id, _ = await with_files(road, PHOTO)
        claimed = await road.claim_one()
        assert [(one.message_id, one.state) for one in claimed.files] == [(message_id, FileState.WAITING)]

    async def test_who_took_it_too_long_ago_keeps_nothing(self, store: ContractStore) -> None:
        """Nor can it leave the file, or put it off; what it wrote is written over."""
        message_id, _ = await with_files(StoreDriver(store), PHOTO)
        [late] = await take(store)
        assert await store.apply(KeepPiece(late.lease, 0, b"old")) is True
        assert await store.apply(KeepPiece(late.lease, 1, b"old")) is True
        assert await take(store) == ()
        [job] = await take(store, 1 + _LEASE_MS)
        assert (job.tries, job.lease.fence) == (2, late.lease.fence + 1)
        assert not await fetch(store, late, b"old")
        assert not await store.apply(LeaveFile(late.lease, "gone"))
        assert not await store.apply(PutOffFile(late.lease, 9, "later"))
        assert await fetch(store, job, b"new")
        assert await store.files.content(message_id, 1) == b"new"
        assert not await fetch(store, job, b"again")

    async def test_after_a_start_it_is_fetched_at_once(self, store: ContractStore) -> None:
        """And who began it before keeps nothing."""
        await with_files(StoreDriver(store), PHOTO)
        [before] = await take(store)
        assert await store.apply(RecoverFiles(2)) == 1
        assert await store.apply(RecoverFiles(2)) == 0
        assert not await fetch(store, before, b"old")
        [job] = await take(store, 2)
        assert job.tries == 2
        assert await fetch(store, job, b"new")

    async def test_what_is_said_in_a_recording_is_part_of_the_message(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        message_id, _ = await with_files(road, VOICE)
        [job] = await take(store)
        assert await fetch(store, job, b"OggS", words="my dog is called Rex")
        message = (await road.story(message_id)).message
        assert (message.text, message.damaged) == ("look at this\nmy dog is called Rex", False)
        assert (await file_of(store, message_id)).words == "my dog is called Rex"
        assert (await road.claim_one()).messages[0].text == message.text

    async def test_what_is_left_is_so_with_its_reason(self, store: ContractStore) -> None:
        message_id, _ = await with_files(StoreDriver(store), PHOTO)
        [job] = await take(store)
        assert await store.apply(KeepPiece(job.lease, 0, b"half"))
        assert await store.apply(PutOffFile(job.lease, 50, "no network"))
        assert await store.files.next_due() == 50
        [again] = await take(store, 50)
        assert await store.apply(LeaveFile(again.lease, "too large"))
        found = await file_of(store, message_id)
        assert (found.state, found.reason) == (FileState.LEFT, "too large")
        assert await store.files.content(message_id, 1) == b""
        assert await store.files.next_due() is None

    async def test_of_what_is_dropped_nothing_is_fetched(self, store: ContractStore) -> None:
        """Until a person has it queued after all."""
        message_id, batch_id = await with_files(StoreDriver(store), PHOTO, by=Action.DROP)
        assert await take(store) == ()
        assert (await file_of(store, message_id)).state is FileState.LEFT
        assert await store.apply(Requeue(batch_id, 2, "needed after all"))
        [job] = await take(store, 3)
        assert job.lease.message_id == message_id

    async def test_it_goes_when_its_message_is_forgotten(self, store: ContractStore) -> None:
        """Also while it is being fetched; that of another message stays."""
        road = StoreDriver(store)
        await road.settle(replace(said("look at the zebra"), files=(PHOTO, VOICE)))
        stays, _ = await with_files(road, PHOTO)
        jobs = await take(store)
        gone = jobs[0].lease.message_id
        assert await fetch(store, jobs[0], b"zebra")
        assert await fetch(store, jobs[2], b"stays")
        wanted = ForgetTargets(messages=(gone,), turns=await store.reach.answering((gone,)))
        assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50, ()))
        await store.apply(ScrubForgotten(900, 60))
        assert await store.files.of_messages((gone,)) == ()
        assert await store.files.content(gone, 1) == b""
        assert await store.apply(KeepPiece(jobs[1].lease, 0, b"late")) is False
        assert await store.files.content(stays, 1) == b"stays"

    async def test_it_comes_back_when_forgetting_is_undone(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        await road.settle(replace(said("look at the zebra"), files=(PHOTO,)))
        [job] = await take(store)
        gone = job.lease.message_id
        assert await fetch(store, job, b"zebra", b"\x00\xff")
        before = await file_of(store, gone)
        wanted = ForgetTargets(messages=(gone,), turns=await store.reach.answering((gone,)))
        assert await store.apply(RequestForgetting(900, "id", "owner", wanted, 50, (), 900))
        await store.apply(ScrubForgotten(900, 60))
        for verb in ("hide", "erase", "scrub", "checkpoint", "finish", "undo"):
            assert await store.apply(MoveForgetting(900, verb, 70))
        assert await store.files.of_messages((gone,)) == ()
        assert await store.apply(PutBack(900, 81))
        assert await file_of(store, gone) == before
        assert await store.files.content(gone, 1) == b"zebra\x00\xff"

    async def test_it_goes_when_its_message_is_pruned(self, store: ContractStore) -> None:
        road = StoreDriver(store)
        reply_id = await road.settle(replace(said("look at this"), files=(PHOTO,)))
        [job] = await take(store)
        assert await fetch(store, job, b"pixels")
        batch = (await road.story(job.lease.message_id)).batch
        assert batch is not None
        await store.apply(MarkReplyShown(reply_id, 1))
        await store.apply(EpisodesKept((batch.id,)))
        assert (await store.apply(Prune(Stale.MESSAGES, 1_000, 1_000))).messages == 1
        assert await store.files.of_messages((job.lease.message_id,)) == ()
        assert await store.files.content(job.lease.message_id, 1) == b""


class BroughtFileContract:
    """How files are kept whose bytes come with their message."""

    async def test_what_its_sender_brings_is_fetched_once_it_is_whole(self, store: ContractStore) -> None:
        """Until then nobody takes it, also after a start; then its pieces are there already."""
        road = StoreDriver(store)
        message_id, _ = await with_files(road, BY_SENDER, PHOTO)
        other, _ = await with_files(road, BY_SENDER)
        assert [job.attachment for job in await take(store)] == [PHOTO]
        assert await store.apply(RecoverFiles(2)) == 1
        [lease] = await store.apply(TakeAwaited(message_id, AWAIT_MS))
        assert lease[:2] == (message_id, 1)
        for n, piece in enumerate((b"not", b"es!", b"old")):
            assert await store.apply(KeepPiece(lease, n, piece))
        assert await store.apply(KeepBrought(lease, 2))
        assert await store.apply(TakeAwaited(message_id, AWAIT_MS)) == ()
        first, _ = await take(store, 2)
        assert (first.attachment.ref, first.tries) == (BROUGHT, 1)
        assert await store.files.content(message_id, 1) == b"notes!"
        assert await store.apply(KeepFile(first.lease, 2, "text/plain", 6))
        assert (await store.files.of_messages((message_id,)))[0].state is FileState.KEPT
        assert await store.apply(TakeAwaited(message_id, AWAIT_MS)) == ()
        assert len(await store.apply(TakeAwaited(other, AWAIT_MS))) == 1

    async def test_of_two_who_bring_a_file_the_later_one_does(self, store: ContractStore) -> None:
        message_id, _ = await with_files(StoreDriver(store), BY_SENDER)
        [early] = await store.apply(TakeAwaited(message_id, AWAIT_MS))
        [late] = await store.apply(TakeAwaited(message_id, AWAIT_MS))
        assert await store.apply(KeepPiece(early, 0, b"early!")) is False
        assert await store.apply(KeepBrought(early, 1)) is False
        assert await store.apply(KeepPiece(late, 0, b"late!!"))
        assert await store.apply(KeepBrought(late, 1))
        assert await store.apply(KeepBrought(FileLease(*late[:2], late.fence + 1), 1)) is False
        assert await store.files.content(message_id, 1) == b"late!!"

    async def test_what_nobody_brought_is_left_and_can_still_be_brought(self, store: ContractStore) -> None:
        """What was left for another reason cannot."""
        message_id, _ = await with_files(StoreDriver(store), BY_SENDER, BY_SENDER)
        due = await store.files.next_due()
        assert due is not None
        assert await take(store, due - 1) == ()
        first, second = await take(store, due)
        assert await store.apply(LeaveFile(first.lease, NOT_BROUGHT))
        assert await store.apply(LeaveFile(second.lease, "files.fetch is false"))
        [lease] = await store.apply(TakeAwaited(message_id, due + AWAIT_MS))
        assert (lease.number, (await store.files.of_messages((message_id,)))[0].reason) == (1, "")
        assert await store.files.next_due() == due + AWAIT_MS
