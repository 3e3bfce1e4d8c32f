"""Encrypted rooms of Matrix, with a person whose device encrypts by another implementation (matrix-nio)."""

from __future__ import annotations

from tests.unit.matrix_cast import ANN, ROOM, contacted, decrypting, reply_of, sender_of, server

from keepsaid.domain.reply import Delivered
from keepsaid.testing.listening import MemoryInbox
from keepsaid.testing.providers.matrix import MatrixServer
from keepsaid.testing.providers.matrix_peer import MatrixPeer

MEGOLM = "m.megolm.v1.aes-sha2"


def encrypted(matrix: MatrixServer, *users: str) -> MatrixPeer:
    """An encrypted room with Ann and others, and Ann's phone."""
    matrix.room(ROOM, ANN, *users, encryption=MEGOLM)
    return MatrixPeer(matrix)


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
        sessions = {one.content["session_id"] for one in matrix.sent}
        uploads = [one for one in matrix.keys.uploads if "device_keys" in one]
    assert len(sessions) == 1
    assert len(uploads) == 2, "Ann's, and one of the account"
