"""Encrypted rooms of Matrix when the process ends, or the disk refuses: no key is lost, no ratchet goes back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from tests.unit.matrix_cast import (
    ANN,
    BEGAN_MS,
    BOB,
    ROOM,
    api_of,
    contacted,
    decrypting,
    encrypted,
    reply_of,
    sender_of,
    server,
)

from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.line import MatrixAccount
from keepsaid.domain.line import LineState
from keepsaid.domain.reply import Delivered
from keepsaid.domain.reply_parts import ReplyPart
from keepsaid.errors import ChannelError, StoreError
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox, never, times
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.mischief import Mischief, harmless, one_after_the_other


async def test_a_restart_keeps_keys_and_sessions() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            ann.say("one")
            await inbox.wait_for(lambda: "one" in inbox.texts)
            await sender_of(account).send(reply_of("first"))
        ann.say("two")
        async with decrypting(matrix, inbox) as account:
            await inbox.wait_for(lambda: "two" in inbox.texts)
            await sender_of(account).send(reply_of("second", number=2))
        assert ann.texts() == ["first", "second"]
        assert len({one.content["session_id"] for one in matrix.sent}) == 1
        assert len([one for one in matrix.keys.uploads if "device_keys" in one]) == 2, "Ann's, and one of the account"


@pytest.mark.parametrize("is_half", [True, False])
async def test_what_the_store_refused_is_read_again(is_half: bool) -> None:
    """The messages may be stored while the keys that came with them are not: the same sync is read again."""
    inbox, clock, shown = MemoryInbox(), VirtualClock(BEGAN_MS), LineLog()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
        inbox.refuses, inbox.half_refuses = (never, times(1)) if is_half else (times(1), never)
        ann.say("one")
        async with decrypting(matrix, inbox, clock, shown):
            await shown.wait_for(LineState.DOWN)
            await clock.advance(60_000)
            await shown.wait_for(LineState.UP)
            ann.say("two")
            await inbox.wait_for(lambda: "two" in inbox.texts)
        assert inbox.texts == ["one", "two"]


async def test_a_process_that_ends_between_messages_and_keys_loses_neither() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            kept = dict(inbox.stored)
            ann.holds_keys = True
            ann.say("early")
            await inbox.wait_for_count(1)
        inbox.stored = kept
        ann.release()
        async with decrypting(matrix, inbox):
            await inbox.wait_for(lambda: "early" in inbox.texts)
            ann.say("then")
            await inbox.wait_for(lambda: "then" in inbox.texts)
        assert inbox.texts == ["encrypted", "early", "then"]


async def test_nothing_is_encrypted_before_its_ratchet_is_stored() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            channel = sender_of(account)
            inbox.refuses = times(1)
            with pytest.raises(StoreError):
                await channel.split(reply_of("first"))
            assert (matrix.sent, matrix.calls.get("sendToDevice")) == ([], None)
            await channel.send(reply_of("first"))
        assert ann.texts() == ["first"]


def places(bodies: Sequence[str]) -> list[str]:
    return [json.loads(body)[form]["ciphertext"] for body in bodies for form in ("content", "marked")]


async def test_a_process_that_ends_before_the_first_try_sends_what_was_stored() -> None:
    """The key of the room waits in the store with the part, and every try sends the same bytes."""
    inbox, reply = MemoryInbox(), reply_of("kept")
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            lost = await sender_of(account).split(reply)
            bodies = await sender_of(account).split(reply)
        assert not set(places(lost)) & set(places(bodies))
        async with decrypting(matrix, inbox) as account:
            for _ in range(2):
                result = await sender_of(account).send_part(reply, ReplyPart(reply.id, 0, bodies[0]))
                assert result.outcome is Delivered.CONFIRMED
        assert ann.texts() == ["kept"]
        assert [one.content for one in matrix.sent] == [json.loads(bodies[0])["content"]]


@pytest.mark.parametrize("method", ["keys/query", "keys/claim", "sendToDevice", "joined_members"])
@pytest.mark.parametrize("act", [Mischief.DROP, Mischief.RESET_AFTER, Mischief.FAIL_AFTER])
async def test_a_request_for_keys_that_fails_sends_nothing_yet(method: str, act: Mischief) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            channel = sender_of(account)
            await account.rooms.is_encrypted(ROOM)
            matrix.mischief = one_after_the_other(act, method=method)
            result = await channel.send(reply_of("once"))
            tries = 1
            while result.outcome is not Delivered.CONFIRMED and tries < 5:
                assert (result.outcome, result.outage, matrix.sent) == (Delivered.RETRY, True, [])
                result, tries = await channel.send(reply_of("once")), tries + 1
            matrix.mischief = harmless
        assert ann.texts() == ["once"]


async def test_what_cannot_be_encrypted_now_is_tried_again() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            await account.user()
            matrix.mischief = lambda method, _: Mischief.FAIL if method == "joined_members" else Mischief.ACCEPT
            with pytest.raises(ChannelError):
                await sender_of(account).split(reply_of("later"))


async def test_a_member_that_left_cannot_read_what_follows() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann, bob = encrypted(matrix, BOB), MatrixPeer(matrix, BOB, "BOBPHONE")
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            channel = sender_of(account)
            await channel.send(reply_of("one"))
            matrix.rooms.enter(ROOM, BOB, "leave")
            await channel.send(reply_of("two", number=2))
            tablet = MatrixPeer(matrix, ANN, "TABLET")
            ann.say("I have a tablet")
            await inbox.wait_for_count(1)
            await channel.send(reply_of("three", number=3))
            matrix.keys.remove(ANN, "TABLET")
            ann.say("I have none")
            await inbox.wait_for_count(2)
            await channel.send(reply_of("four", number=4))
        sessions: list[Any] = [one.content["session_id"] for one in matrix.sent]
        assert ann.texts() == ["one", "two", "three", "four"]
        assert (bob.texts(), tablet.texts()) == (["one"], ["three"])
        assert [sessions.index(one) for one in sessions] == [0, 1, 1, 3]


async def test_a_homeserver_that_wants_fewer_requests_is_left_alone_as_long_as_it_says() -> None:
    inbox, clock = MemoryInbox(), VirtualClock(BEGAN_MS)
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox, clock) as account:
            await contacted(inbox)
            channel = sender_of(account, clock)
            await account.rooms.is_encrypted(ROOM)
            matrix.mischief = one_after_the_other(Mischief.SLOW_DOWN, method="keys/query")
            for _ in range(3):
                assert (await channel.send(reply_of("patience"))).outcome is Delivered.RETRY
            assert matrix.calls["keys/query"] == 3, "two of the account itself, and one of its peers"
            await clock.advance(1_200)
            await channel.send(reply_of("patience"))
        assert ann.texts() == ["patience"]


async def test_keys_that_the_homeserver_refuses_leave_other_rooms_alone() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        encrypted(matrix)
        matrix.room("!plain:test", ANN)
        matrix.keys.refuses = True
        async with decrypting(matrix, inbox, shown=shown):
            await contacted(inbox)
            matrix.say("in plain words", "!plain:test")
            await inbox.wait_for(lambda: "in plain words" in inbox.texts)
            await shown.until_reason("does not take the keys")


async def test_a_hundred_messages_wait_for_a_key() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            ann.holds_keys = True
            for number in range(99):
                ann.say(f"message {number}")
            await inbox.wait_for_count(99)
            content = ann.seal("m.room.message", ROOM, {"msgtype": "m.text", "body": "more 0"})
            for number in range(2):
                matrix.send("m.room.encrypted", ROOM, ANN, content, unsigned={"age": number})
            await inbox.wait_for_count(101)
            ann.release()
            await inbox.wait_for(lambda: "more 0" in inbox.texts)
        read = [text for text in inbox.texts if text != "encrypted"]
        assert read == [*(f"message {number}" for number in range(1, 99)), "more 0"]


async def test_a_room_that_was_encrypted_stays_so_whatever_the_homeserver_says() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
        matrix.rooms.add(ROOM, "m.room.encryption", ANN, {}, state_key="")
        api = api_of(matrix)
        account = MatrixAccount(api, crypto=MatrixCrypto(api, VirtualClock(BEGAN_MS), inbox))
        await sender_of(account).send(reply_of("still a secret"))
        await api.close()
        assert ann.texts() == ["still a secret"]
