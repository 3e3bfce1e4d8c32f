"""Encrypted rooms of Matrix, with a person whose device encrypts by another implementation (matrix-nio)."""

from __future__ import annotations

import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from tests.unit.matrix_cast import (
    ANN,
    BEGAN_MS,
    MEGOLM,
    ROOM,
    api_of,
    contacted,
    decrypting,
    encrypted,
    lane_in,
    reply_of,
    sender_of,
    server,
)

from keepsaid.adapters.channels.matrix.e2ee import MatrixCrypto
from keepsaid.adapters.channels.matrix.line import MatrixAccount
from keepsaid.adapters.channels.matrix.olm import OLM, is_signed
from keepsaid.domain.message import EDITED, REACTION, UNREADABLE, topic_of
from keepsaid.domain.reply import Delivered
from keepsaid.errors import FileRefused
from keepsaid.ports.channel import ReactionTarget
from keepsaid.testing.clock import VirtualClock
from keepsaid.testing.listening import LineLog, MemoryInbox
from keepsaid.testing.providers.matrix_peer import MatrixPeer
from keepsaid.testing.providers.matrix_rooms import USER


async def test_people_and_the_agent_talk_in_an_encrypted_room() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            number = ann.say("hello")
            await inbox.wait_for(lambda: "hello" in inbox.texts)
            result = await sender_of(account).send(reply_of("hello yourself"))
        assert result.outcome is Delivered.CONFIRMED
        assert (inbox.last.external_id, inbox.last.provider_id) == (f"matrix:{number}", number)
        assert ann.texts() == ["hello yourself"]
        assert "hello yourself" not in str(matrix.sent)


async def test_the_line_names_the_device_that_reads() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        encrypted(matrix)
        async with decrypting(matrix, inbox, shown=shown):
            await shown.until_reason("encrypted rooms are read by the device SCRIPTED")


async def test_a_device_whose_keys_are_elsewhere_is_not_used() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        ann = encrypted(matrix)
        MatrixPeer(matrix, USER, matrix.device)
        async with decrypting(matrix, inbox, shown=shown):
            await contacted(inbox)
            ann.say("hello")
            await inbox.wait_for_count(1)
            await shown.until_reason("log in again for a new device")
        assert inbox.last.event == UNREADABLE
        assert len([one for one in matrix.keys.uploads if "device_keys" in one]) == 2


async def test_edits_threads_and_reactions_are_those_of_plain_rooms() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            number = ann.say("hello")
            ann.edit(number, "hello there")
            await inbox.wait_for(lambda: "hello there" in inbox.texts)
            assert (inbox.last.event, inbox.last.provider_id) == (EDITED, number)
            related: dict[str, Any] = {"m.relates_to": {"rel_type": "m.thread", "event_id": number}}
            ann.say("in a thread", **related)
            await inbox.wait_for(lambda: "in a thread" in inbox.texts)
            assert inbox.last.topic == number
            matrix.react(number, "👍")
            await inbox.wait_for(lambda: inbox.last.event == REACTION)
            lane = lane_in(thread=number)
            await sender_of(account).send(reply_of("answered there", lane))
            await sender_of(account).react(lane_in(), ReactionTarget(number), "🎉")
        assert topic_of(lane) == number
        assert matrix.sent[-1].content["m.relates_to"]["event_id"] == number
        assert ann.texts() == ["answered there"]
        assert matrix.reactions[-1].content["m.relates_to"]["key"] == "🎉"


def sealed_file(plain: bytes) -> tuple[bytes, dict[str, Any]]:
    """A file as a client uploads it, and what it says of it."""
    cipher = Cipher(algorithms.AES(bytes(range(32))), modes.CTR(bytes(16))).encryptor()
    content = cipher.update(plain) + cipher.finalize()
    digest = sha256(content).digest()
    return content, {
        "v": "v2",
        "key": {"k": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "alg": "A256CTR", "kty": "oct"},
        "iv": "AAAAAAAAAAAAAAAAAAAAAA",
        "hashes": {"sha256": b64encode(digest).decode().rstrip("=")},
    }


@pytest.mark.parametrize("is_genuine", [True, False])
async def test_a_file_is_decrypted_if_it_has_the_hash_of_its_message(is_genuine: bool) -> None:
    inbox, plain = MemoryInbox(), b"a file " * 100_000
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            content, told = sealed_file(plain)
            kept = matrix.media.attach(content if is_genuine else content[:-1] + b"?", "a.txt")
            file = {**told, "url": kept.pop("url")}
            ann.send("m.room.message", ROOM, {**kept, "file": file})
            await inbox.wait_for_count(1)
            [attached] = inbox.last.files
            channel = sender_of(account)
            if is_genuine:
                assert b"".join([piece async for piece in channel.fetch(USER, attached)]) == plain
            else:
                with pytest.raises(FileRefused, match="hash"):
                    _ = [piece async for piece in channel.fetch(USER, attached)]


async def test_a_key_that_comes_late_brings_its_messages_once() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            ann.holds_keys = True
            number = ann.say("early")
            await inbox.wait_for_count(1)
            assert (inbox.last.event, inbox.last.text) == (UNREADABLE, "encrypted")
        async with decrypting(matrix, inbox):
            ann.release()
            await inbox.wait_for_count(2)
            assert (inbox.last.text, inbox.last.external_id) == ("early", f"matrix:{number}")
            ann.say("then")
            await inbox.wait_for(lambda: "then" in inbox.texts)
        assert inbox.texts == ["encrypted", "early", "then"]


async def test_an_event_is_not_believed_from_another_sender_than_that_of_its_key() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix, "@bob:test")
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            content = ann.seal("m.room.message", ROOM, {"msgtype": "m.text", "body": "as Bob"})
            matrix.send("m.room.encrypted", ROOM, "@bob:test", content)
            matrix.send("m.room.encrypted", ROOM, ANN, {**content, "session_id": "unknown"})
            await inbox.wait_for_count(2)
        assert inbox.texts == ["encrypted", "encrypted"]


async def test_nobody_deletes_messages_of_others_by_an_encrypted_event() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann, eve = encrypted(matrix, "@eve:test"), MatrixPeer(matrix, "@eve:test", "EVEPHONE")
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            number = ann.say("mine")
            await inbox.wait_for_count(1)
            eve.send("m.room.redaction", ROOM, {"redacts": number})
            await inbox.wait_for_count(2)
            matrix.redact(number)
            await inbox.wait_for_count(3)
        assert [one.event for one in inbox.kept.values()] == ["", UNREADABLE, EDITED]


async def test_a_message_that_is_sent_again_is_refused_also_after_a_restart() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            content = ann.seal("m.room.message", ROOM, {"msgtype": "m.text", "body": "once"})
            matrix.send("m.room.encrypted", ROOM, ANN, content)
            await inbox.wait_for_count(1)
            matrix.send("m.room.encrypted", ROOM, ANN, content)
            await inbox.wait_for_count(2)
        async with decrypting(matrix, inbox):
            matrix.send("m.room.encrypted", ROOM, ANN, content)
            await inbox.wait_for_count(3)
        assert inbox.texts == ["once", "encrypted", "encrypted"]


async def test_a_device_that_did_not_sign_its_keys_is_not_written_to() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        other = MatrixPeer(matrix, ANN, "FORGED")
        keys = matrix.keys.devices[ANN]["FORGED"]
        keys["keys"]["curve25519:FORGED"] = ann.olm.account.identity_keys["curve25519"]
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            await sender_of(account).send(reply_of("for Ann"))
        assert (ann.texts(), other.texts()) == (["for Ann"], [])
        assert (ANN, "FORGED") not in matrix.keys.letters


async def test_a_device_that_changes_its_key_is_not_trusted() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            await sender_of(account).send(reply_of("one"))
            assert ann.texts() == ["one"]
            other = MatrixPeer(matrix, ANN, ann.device)
            other.say("by another key")
            await inbox.wait_for_count(1)
            await sender_of(account).send(reply_of("two", number=2))
        assert inbox.texts == ["encrypted"]
        assert other.texts() == []


async def test_one_time_keys_are_replenished() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            keys = matrix.keys.one_time[USER, matrix.device]
            for name in list(keys)[10:]:
                del keys[name]
            ann.say("hello")
            await matrix.wait_for(lambda: len(keys) >= 45)


async def test_a_room_gets_a_new_session_after_a_week_or_a_hundred_messages() -> None:
    inbox, clock = MemoryInbox(), VirtualClock(BEGAN_MS)
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox, clock) as account:
            await contacted(inbox)
            channel = sender_of(account, clock)
            for number in range(1, 102):
                await channel.send(reply_of(f"message {number}", number=number))
            await clock.advance(7 * 86_400_000)
            await channel.send(reply_of("message 102", number=102))
        sessions = [one.content["session_id"] for one in matrix.sent]
        assert len(set(sessions[:100])) == 1
        assert len(set(sessions)) == 3
        assert ann.texts() == [f"message {number}" for number in range(1, 103)]


async def test_without_a_device_encrypted_rooms_are_named() -> None:
    inbox, shown = MemoryInbox(), LineLog()
    async with server() as matrix:
        encrypted(matrix)
        matrix.device = ""
        async with decrypting(matrix, inbox, shown=shown) as account:
            await contacted(inbox)
            await shown.until_reason("no device")
            result = await sender_of(account).send(reply_of("in plain words"))
        assert isinstance(account.crypto, MatrixCrypto)
        assert (result.outcome, matrix.sent) == (Delivered.DEAD, [])


async def test_a_long_text_in_any_script_fits_into_encrypted_events() -> None:
    inbox, text = MemoryInbox(), "日本語の長い文章です。" * 4_000
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            result = await sender_of(account).send(reply_of(text))
        assert result.outcome is Delivered.CONFIRMED
        assert "".join(ann.texts()) == text


async def test_a_broken_session_with_a_device_is_replaced() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            await sender_of(account).send(reply_of("one"))
            ours = matrix.keys.devices[USER][matrix.device]["keys"][f"curve25519:{matrix.device}"]
            sealed = {ours: {"type": 1, "body": "AwogAAAA"}}
            letter = {"algorithm": OLM, "sender_key": ann.olm.account.identity_keys["curve25519"], "ciphertext": sealed}
            matrix.send_to_devices(ANN, "m.room.encrypted", {USER: {matrix.device: letter}})
            await matrix.wait_for(lambda: matrix.calls["sendToDevice"] == 2)
            await sender_of(account).send(reply_of("two", number=2))
        assert matrix.calls["keys/claim"] == 2
        assert ann.texts() == ["one", "two"]


async def test_devices_are_looked_up_again_after_a_restart() -> None:
    """What changed while nobody listened is known before anything is encrypted."""
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox) as account:
            await contacted(inbox)
            await sender_of(account).send(reply_of("one"))
        tablet = MatrixPeer(matrix, ANN, "TABLET")
        api = api_of(matrix)
        account = MatrixAccount(api, crypto=MatrixCrypto(api, VirtualClock(BEGAN_MS), inbox))
        await sender_of(account).send(reply_of("two", number=2))
        await api.close()
        assert (ann.texts(), tablet.texts()) == (["one", "two"], ["two"])


@pytest.mark.parametrize(
    "letter",
    [
        {},
        {"algorithm": OLM},
        {"algorithm": OLM, "sender_key": "?", "ciphertext": {"OURS": {"type": 0, "body": "?"}}},
        {"algorithm": OLM, "sender_key": "A" * 43, "ciphertext": {"OURS": {"type": 0, "body": "AwogAAAA"}}},
        {"algorithm": OLM, "sender_key": "A" * 43, "ciphertext": {"OURS": {"type": "x", "body": 7}}},
        {"algorithm": OLM, "sender_key": ["A"], "ciphertext": "OURS"},
    ],
)
async def test_no_letter_stops_the_listener(letter: dict[str, Any]) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            ours = matrix.keys.devices[USER][matrix.device]["keys"][f"curve25519:{matrix.device}"]
            made = json.loads(json.dumps(letter).replace("OURS", ours))
            matrix.send_to_devices("@eve:test", "m.room.encrypted", {USER: {matrix.device: made}})
            for content in ({}, {"algorithm": MEGOLM, "session_id": 1, "ciphertext": "?"}, {"algorithm": MEGOLM}):
                matrix.send("m.room.encrypted", ROOM, ANN, content)
            ann.say("hello")
            await inbox.wait_for(lambda: "hello" in inbox.texts)
        assert inbox.texts == ["encrypted"] * 3 + ["hello"]


async def test_the_account_signs_its_device_once() -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        encrypted(matrix)
        for _ in range(2):
            async with decrypting(matrix, inbox):
                await contacted(inbox)
        told, keys = matrix.keys.signing[USER], matrix.keys.devices[USER][matrix.device]
        [master] = told["master_key"]["keys"].values()
        [mine] = told["self_signing_key"]["keys"].values()
        assert is_signed(told["self_signing_key"], master, USER, master)
        assert is_signed(keys, mine, USER, mine)
        assert is_signed(keys, keys["keys"][f"ed25519:{matrix.device}"], USER, matrix.device)
        assert matrix.calls["device_signing/upload"] == matrix.calls["signatures/upload"] == 1


async def test_an_account_whose_signing_keys_are_elsewhere_is_used_nevertheless(
    caplog: pytest.LogCaptureFixture,
) -> None:
    inbox = MemoryInbox()
    async with server() as matrix:
        ann = encrypted(matrix)
        matrix.keys.signing[USER] = {"master_key": {"user_id": USER, "usage": ["master"], "keys": {"ed25519:A": "A"}}}
        async with decrypting(matrix, inbox):
            await contacted(inbox)
            ann.say("hello")
            await inbox.wait_for(lambda: "hello" in inbox.texts)
        assert "verify SCRIPTED there" in caplog.text
        assert "device_signing/upload" not in matrix.calls
